package operation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Toolset is a list of operations that an operator enables by one name.
type Toolset struct {
	Name         string // as CLAUDEOPS_TOOLSETS has it
	Instructions string // for a model that has not loaded a tool yet
	// ConfiguredInstructions returns instructions and descriptions that replace the fixed ones where they depend on the
	// configuration; nil: they do not. It is called when an MCP server starts, must answer at once, and sends no requests.
	ConfiguredInstructions func() Instructions
	// Schemas has for each tool the files schema/NAME.input.json and schema/NAME.output.json. `make golden` writes them,
	// so that no program has to make them when it starts.
	Schemas    fs.FS
	Operations []Operation
	// Found lists operations that are found while the program runs, such as scripts in a folder; nil for none. It is asked
	// for each tools/list and each call, so it must answer at once. Each has Schemas of its own. One that is no longer
	// found can still be called by clients that know it: its answer then says why it is gone.
	Found func(ctx context.Context) []Operation
	// Reject records a request for an operation that does more than read, and that never came to it: its caller may not,
	// or it could not be read. name is "" if too little of it could be read to know. A toolset that only reads has none.
	Reject func(ctx context.Context, call Call, name string, why *fault.Error)
	// Listed says which tools are shown to MCP clients; nil: all of them, and in a read-only server those that only read.
	// A call of one that is not shown comes to its operation all the same.
	Listed    func(o Operation) bool
	Resources *Resources // nil: it has none
	Prompts   []Prompt
	Form      *Form // nil: the program's own, as docs/reference/codes.md has it
}

// Instructions holds the texts for a model under a configuration.
type Instructions struct {
	Text         string
	Descriptions map[string]string // by the name of the tool; those that are not there stay
}

// CurrentInstructions returns the situation of a toolset, and without one what it always says.
func (t Toolset) CurrentInstructions() Instructions {
	if t.ConfiguredInstructions == nil {
		return Instructions{Text: t.Instructions}
	}
	return t.ConfiguredInstructions()
}

// Form defines the form of a toolset's answers and failures.
type Form struct {
	// Failure is the object of an error. requestID is "" if neither log nor audit has the call.
	Failure func(o Operation, err error, requestID string) any
	// FailureType is the struct type of what Failure returns. A tool's output schema admits it beside the output.
	FailureType reflect.Type
	// Text returns the text for a model of an answer, or of a result of Failure; nil: its JSON, as in the structured
	// content.
	Text func(answer any) string
	// Answers says that failures are answers like others, for MCP clients: isError is not set. REST has its status all the
	// same.
	Answers bool
}

// Schema returns the schema of one side of an operation, "input" or "output", without white space.
func (t Toolset) Schema(o Operation, side string) (json.RawMessage, error) {
	if own := map[string]json.RawMessage{"input": o.Schemas.Input, "output": o.Schemas.Output}[side]; own != nil {
		return own, nil
	}
	name := "schema/" + o.Name + "." + side + ".json"
	text, err := fs.ReadFile(t.Schemas, name)
	if err != nil {
		return nil, fmt.Errorf("schema of a tool (make golden writes it): %w", err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	return b.Bytes(), nil
}

// Named returns the operation with a name; the zero one if there is none.
func Named(all []Operation, name string) Operation {
	for _, o := range all {
		if o.Name == name {
			return o
		}
	}
	return Operation{}
}

// List returns the operations of toolsets, in their order.
func List(toolsets ...Toolset) (all []Operation) {
	for _, t := range toolsets {
		all = append(all, t.Operations...)
	}
	return all
}

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

// Resources provides the resources that MCP clients read by address.
type Resources struct {
	Templates []Resource // URI is a template of RFC 6570
	// List names some of what may be read. It asks no provider, and is bounded; nil: nothing is named.
	List func(ctx context.Context) []Resource
	// Read reads one. call.Arguments is nothing. An error is a *fault.Error, perhaps with a request id.
	Read func(ctx context.Context, call Call, uri string) (Content, error)
}

// Resource is something that can be read.
type Resource struct {
	URI         string
	Name        string // unique
	Description string
	Type        string // MIME type
}

// Content is the content of a resource.
type Content struct {
	Text string
	Type string
	// About holds facts that a reader needs to know about the text. Clients may show a model nothing but texts, so Note
	// repeats them.
	About map[string]any
	Note  string
}

// Shown describes an act to people: its command, and its page if it has one. Texts of pages are our own words, in which
// [words](/path) is a link to another page and `words` is code.
type Shown struct {
	Short string // in place of the summary, for the command
	Help  string // of the command, after that
	// Example is of the command, as cobra has it; "" for none.
	Example string
	Fresh   bool               // the command makes the records where there are none, rather than refuse
	View    func(out any) View // of a list, or the table of what an act did; nil for none
	JSON    func(out any) any  // a list's answer at the terminal; nil: as REST has it
	// Over reports whether what an act has begun is over. The command waits for that; nil: nothing is waited for.
	Over   func(ctx context.Context, out any) (bool, error)
	Said   func(out any, over bool) string // what the terminal says after an act; "" for nothing
	Failed func(out any) bool              // whether the command ends with the exit code of a provider; nil: never
	Page   Page
}

// Page is a list, or an act on one of its rows that a page of its own asks about first.
type Page struct {
	// Path is the list's; "" for no page. An act's is that of its form: the list's with the id of the row and a word, such
	// as /connections/{id}/cut.
	Path  string
	Title string
	Topic string // that a list follows; see live.Topic
	Link  string // of a list: in the navigation; of an act: in each row that it can be done to
	// Intro stands before a list, Empty in place of an empty one, and Needs where the visitor may not do what the rows are
	// for.
	Intro, Caption, Empty, Needs string
	Button                       string // does an act
}

// View is a list as it is shown.
type View struct {
	Empty   string     // the terminal's text for an empty list
	Table   [][]string // at the terminal: a head of capital letters, and a line for each row; times as RFC 3339
	Text    []string   // heads of the table's columns of free text, which a narrow terminal cuts
	Goes    []string   // heads of the columns that it leaves out, the first of them first
	Columns []Column   // of the page
	Rows    []Row
}

// Column is the head of one.
type Column struct {
	Name         string
	Wide, Number bool
}

// TimeCell returns a time in the table of a view; "" for none.
func TimeCell(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Row is one thing of a list. Its cells are in the order of the columns; the first one names it.
type Row struct {
	ID    string
	Name  string // in words, for who hears its link read
	Cells []Cell
	Tags  []Tag
	Note  []Cell // after the first cell
	Ask   string // what the page of its act says before the button
	Over  []Cell // says on that page that the act was done, in place of the button; nil if it was not
}

// Cell is a part of a row. Name is a word of somebody else, and is set apart from the texts around it.
type Cell struct {
	Text, Name, Link, Sub string
	When                  time.Time
}

// Class returns the class of the cells of a column in the page's style.
func (c Column) Class() string {
	switch {
	case c.Wide:
		return "wide"
	case c.Number:
		return "number"
	}
	return ""
}

// Tag is a short mark. Class is that of its style.
type Tag struct{ Text, Class string }

// WithExamples gives operations the examples of their commands, which examples has by command: one call a line.
func WithExamples(all []Operation, examples map[string]string) []Operation {
	for i, o := range all {
		if lines := examples[o.Command]; lines != "" {
			all[i].Shown.Example = "  " + strings.ReplaceAll(lines, "\n", "\n  ")
		}
	}
	return all
}
