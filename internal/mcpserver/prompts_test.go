package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/mcpserver"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
)

func TestTheIconIsInTheGreetingAlone(t *testing.T) {
	discover := strings.Replace(modern, "tools/list", "server/discover", 1)
	for name, c := range map[string]struct {
		o     mcpserver.Options
		lines []string
		want  []bool // of the answers, in their order
	}{
		"legacy": {mcpserver.Options{}, []string{hello, list}, []bool{true, false}},
		"modern": {mcpserver.Options{},
			[]string{discover, strings.Replace(modern, `"id":2`, `"id":3`, 1)}, []bool{true, false}},
		"in another's name":            {mcpserver.Options{Name: "other"}, []string{hello}, []bool{false}},
		"in another's name, in modern": {mcpserver.Options{Name: "other"}, []string{discover}, []bool{false}},
	} {
		answers := exchange(t, &flow{}, c.o, c.lines...)
		for i, want := range c.want {
			line := answers[i]["line"].(string)
			if strings.Contains(line, "data:image/svg+xml;base64,") != want || !strings.Contains(line, `"result"`) {
				t.Errorf("%s: answer %d: %s", name, i, line)
			}
		}
	}
}

// A prompt of which something is wrong in the program says nothing of it, and is not offered beside a tool that is not.
func TestPromptsFollowTheirTool(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	panics := func(context.Context, operation.Call, map[string]string) (string, error) { panic("the secret") }
	set := (&flow{}).toolset()
	set.Prompts = []operation.Prompt{
		{Name: "shown", Tool: prflow.ToolCreatePR, Text: panics}, {Name: "may", Tool: prflow.ToolListPRs, Offered: yes,
			Text: panics},
		{Name: "may-not", Tool: prflow.ToolListPRs, Offered: no, Text: panics},
		{Name: "of-no-tool", Tool: "merge", Text: panics},
	}
	for readOnly, want := range map[bool]string{false: `"may" "shown" `, true: `"may" `} {
		s, err := mcpserver.New([]operation.Toolset{set}, mcpserver.Options{Version: "test",
			ReadOnly: func() bool { return readOnly },
			Log:      slog.New(slog.DiscardHandler), NewID: func() string { return "id-1" }})
		if err != nil {
			t.Fatal(err)
		}
		lines := []string{hello, `{"jsonrpc":"2.0","id":2,"method":"prompts/list"}`,
			`{"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"may"}}`}
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Serve(ctx, strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
			t.Fatal(err)
		}
		answers := strings.Split(strings.TrimSpace(out.String()), "\n")
		var listed struct {
			Result struct{ Prompts []struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(answers[1]), &listed); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(answers[1], "icons") {
			t.Errorf("each prompt has the icon again: %s", answers[1])
		}
		got := ""
		for _, p := range listed.Result.Prompts {
			got += `"` + p.Name + `" `
		}
		if got != want {
			t.Errorf("read-only %t: %s", readOnly, answers[1])
		}
		if strings.Contains(answers[2], "the secret") || !strings.Contains(answers[2], `"code":-32603`) ||
			!strings.Contains(answers[2], "id-1") {
			t.Errorf("a panic is answered: %s", answers[2])
		}
	}
}
