package operation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Prompt is a way to begin that a person picks in an MCP client, such as a command with a slash. It leads the agent
// through the tools.
type Prompt struct {
	Name, Title, Description string
	Arguments                []PromptArgument
	// Tool is the operation that it leads to. A server offers the prompt where it shows that tool, and where Offered,
	// which is asked when the server starts, says that the tool may be used; nil: it may.
	Tool    string
	Offered func() bool
	// Text returns the prompt for the agent. The arguments have passed Check. An error is a *fault.Error, perhaps with a
	// request id.
	Text func(ctx context.Context, call Call, arguments map[string]string) (string, error)
}

// PromptArgument is an argument of a prompt, which a person gives.
type PromptArgument struct {
	Name, Description string
	Required          bool
}

// maxPromptArgument bounds what is given for one argument, in bytes.
const maxPromptArgument = 16 << 10

// Check returns invalid_argument, listing every problem, if arguments are unknown to the prompt, missing or not text.
func (p Prompt) Check(arguments map[string]string) error {
	var violations []fault.Violation
	add := func(name, message string) {
		violations = append(violations, fault.Violation{Code: fault.InvalidArgument, Path: name, Message: message})
	}
	var names []string
	for _, a := range p.Arguments {
		names = append(names, a.Name)
		switch value := arguments[a.Name]; {
		case a.Required && strings.TrimSpace(value) == "":
			add(a.Name, fmt.Sprintf("`%s` is missing: %s", a.Name, a.Description))
		case len(value) > maxPromptArgument || !utf8.ValidString(value) || strings.ContainsRune(value, 0):
			add(a.Name, fmt.Sprintf("`%s` must be text of at most %d bytes", a.Name, maxPromptArgument))
		}
	}
	unknown := false
	for name := range arguments {
		unknown = unknown || !slices.Contains(names, name)
	}
	if unknown {
		add("arguments", fmt.Sprintf("%s takes only %s", p.Name, strings.Join(names, ", ")))
	}
	if len(violations) == 0 {
		return nil
	}
	return fault.Refusal(violations)
}
