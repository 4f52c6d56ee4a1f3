package cli

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
)

// A revision of which the gate says no is refused with the same words of the contract through every way in.
func TestARefusedRevisionIsAnsweredAlikeThroughEveryWayIn(t *testing.T) {
	t.Parallel()
	d := newDoors(t)
	d.policy("revise: reviewed\n")
	var create operation.Operation
	for _, o := range operation.List(new(app.App).Toolsets()...) {
		if o.Name == prflow.ToolCreatePR {
			create = o
		}
	}
	if opened := d.throughMCP(create, goodRequests()[create.Name]); opened.Code != "" {
		t.Fatalf("not opened: %v", opened)
	}
	for revises, code := range map[string]string{
		"1": "duplicate_pr", "7": "not_found", "-1": "invalid_argument", `"one"`: "invalid_argument",
		"1.5": "invalid_argument",
	} {
		arguments := strings.Replace(goodRequests()[create.Name], `"title"`, `"revises":`+revises+`,"title"`, 1)
		arguments = strings.Replace(strings.Replace(arguments, `"create"`, `"update"`, 1), `# Inodes\n`,
			`# Inodes\n\ndf -i\n`, 1)
		want := d.throughMCP(create, arguments)
		if want.Code != code {
			t.Errorf("revises %s: MCP answers %v, want %s", revises, want, code)
		}
		if diff := cmp.Diff(want, d.throughCLI(create, arguments)); diff != "" {
			t.Errorf("revises %s (-MCP +command line):\n%s", revises, diff)
		}
		if got, ok := d.throughREST(create, arguments); !ok || !cmp.Equal(want, got) {
			t.Errorf("revises %s (-MCP +REST):\n%s", revises, cmp.Diff(want, got))
		}
	}
}

// So are answers to a review that may not be posted. Replies to comments that wait for none are reported first.
func TestARefusedReplyIsAnsweredAlikeThroughEveryWayIn(t *testing.T) {
	t.Parallel()
	d := newDoors(t)
	var create operation.Operation
	for _, o := range operation.List(new(app.App).Toolsets()...) {
		if o.Name == prflow.ToolCreatePR {
			create = o
		}
	}
	good := goodRequests()[create.Name]
	if opened := d.throughMCP(create, good); opened.Code != "" {
		t.Fatalf("not opened: %v", opened)
	}
	repo := `"repo_owner":"joe","repo_name":"infra"`
	for arguments, code := range map[string]string{
		strings.Replace(good, `"title"`, `"reply":"So.","title"`, 1):                                   "invalid_argument",
		`{` + repo + `,"revises":1,"reply":"So."}`:                                                     "duplicate_pr",
		`{` + repo + `,"revises":1,"files":[],"reply":"So.","replies":[{"comment":"9","text":"So."}]}`: "duplicate_pr",
		`{` + repo + `,"revises":1}`:                                                                   "invalid_argument",
		`{` + repo + `,"revises":7,"reply":"So."}`:                                                     "not_found",
		`{` + repo + `,"revises":1,"reply":"key AKIAQ4XK7TZP2LMN5RSW "}`:                               "duplicate_pr",
	} {
		want := d.throughMCP(create, arguments)
		if want.Code != code {
			t.Errorf("%s: MCP answers %v, want %s", arguments, want, code)
		}
		if diff := cmp.Diff(want, d.throughCLI(create, arguments)); diff != "" {
			t.Errorf("%s (-MCP +command line):\n%s", arguments, diff)
		}
		if got, ok := d.throughREST(create, arguments); !ok || !cmp.Equal(want, got) {
			t.Errorf("%s (-MCP +REST):\n%s", arguments, cmp.Diff(want, got))
		}
	}
}
