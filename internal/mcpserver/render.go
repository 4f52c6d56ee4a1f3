package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
)

// answer renders what an operation returned: structured content, and the same as text for clients that read only that.
func answer(form *operation.Form, result any) *mcp.CallToolResult {
	text := plainJSON
	if form != nil && form.Text != nil {
		text = form.Text
	}
	return &mcp.CallToolResult{StructuredContent: result, Content: []mcp.Content{mcp.NewTextContent(text(result))}}
}

// failed renders a refusal or a failure: isError, and the error in the toolset's form; else (design §4) text beginning
// with the code, and the error object.
func failed(form *operation.Form, o operation.Operation, err error, requestID string) *mcp.CallToolResult {
	if form != nil {
		result := answer(form, form.Failure(o, err, requestID))
		result.IsError = !form.Answers
		return result
	}
	wire := fault.From(err).Wire(requestID)
	return &mcp.CallToolResult{
		IsError:           true,
		StructuredContent: map[string]any{"error": wire},
		Content:           []mcp.Content{mcp.NewTextContent(errorText(wire))},
	}
}

// errorText returns the message, then what to do about each violation. Violations that the message does not repeat are
// given in full.
func errorText(w fault.Wire) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s] %s", w.Code, w.Message)
	for _, v := range w.Violations {
		told := strings.Contains(w.Message, v.Message)
		switch {
		case told && v.Suggestion == "":
		case told && v.Path == "":
			fmt.Fprintf(&b, "\n- %s", v.Suggestion)
		case told:
			fmt.Fprintf(&b, "\n- %s: %s", v.Path, v.Suggestion)
		case v.Suggestion == "":
			fmt.Fprintf(&b, "\n- [%s] %s", v.Code, v.Message)
		default:
			fmt.Fprintf(&b, "\n- [%s] %s; %s", v.Code, v.Message, v.Suggestion)
		}
	}
	for _, v := range w.Violations {
		if v.Present != nil {
			b.WriteString(presentText(v.Path, *v.Present))
		}
	}
	for _, fact := range w.Facts() {
		b.WriteString("\n" + fact)
	}
	if w.RequestID != "" {
		fmt.Fprintf(&b, "\nrequest id: %s", w.RequestID)
	}
	return b.String()
}

// presentText shows a file to a model that reads the text alone. The lines around it have the file's own id, which no
// file can hold.
func presentText(path string, p fault.Present) string {
	out := fmt.Sprintf("\n%s now has the base_sha %s", path, p.BaseSHA)
	if p.Cut != "" {
		out += " (" + p.Cut + ")"
	}
	text := p.Text + p.Diff // one of them at most
	if text == "" {
		return out
	}
	return fmt.Sprintf("%s; %s\n--- begin %s\n%s\n--- end %s", out, p.Untrusted, p.BaseSHA,
		strings.TrimSuffix(text, "\n"), p.BaseSHA)
}

// plainJSON is JSON without HTML escapes: \u003c costs a model six characters for one.
func plainJSON(v any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil { // our result types always marshal
		return "{}"
	}
	return strings.TrimSuffix(b.String(), "\n")
}
