package prflow

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/base/textedit"
)

// text is something of a request that will be read by others: a file's content, the title, the body, a path.
type text struct {
	label  string // a file's path, "title" or "body"
	what   string // for messages
	value  string
	isPath bool // a path or another name: its characters are for others to judge
}

// texts lists all texts of a request, title and body first.
func (r CreateRequest) texts() []text {
	out := []text{{label: "title", what: "title", value: r.Title}, {label: "body", what: "body", value: r.Body}}
	for i, f := range r.Files {
		switch {
		case f.Content != nil:
			out = append(out, text{label: f.Path, what: "content of " + quote(f.Path), value: *f.Content})
		case len(f.Edits) > 0: // they could not be made
			out = append(out, text{label: f.Path, what: "edits of " + quote(f.Path), value: newTexts(f.Edits)})
		}
		at := fmt.Sprintf("files[%d].path", i)
		out = append(out, text{label: at, what: at, value: f.Path, isPath: true})
	}
	for _, n := range r.names() {
		out = append(out, text{label: n[0], what: n[0], value: n[1], isPath: true})
	}
	return append(out, r.replyTexts()...)
}

// names returns the arguments that are given that name something, with their values. A provider is asked by them.
func (r CreateRequest) names() (out [][2]string) {
	for _, n := range [][2]string{{"repo_owner", r.RepoOwner}, {"repo_name", r.RepoName}, {"base_branch", r.BaseBranch},
		{"change_type", r.ChangeType}} {
		if n[1] != "" {
			out = append(out, n)
		}
	}
	return out
}

// isName reports whether a text is one of names.
func isName(t text) bool { return t.isPath && !strings.HasPrefix(t.label, "files[") }

// newTexts joins the new texts of the edits, each on lines of its own.
func newTexts(edits []textedit.Edit) string {
	parts := make([]string, len(edits))
	for i, e := range edits {
		parts[i] = e.New
	}
	return strings.Join(parts, "\n")
}

// quote renders an untrusted name as printable ASCII, cut at 120 bytes.
func quote(s string) string {
	return fmt.Sprintf("%+q", s[:min(len(s), 120)])
}

// replyTexts returns the answers, for the gate of the content.
func (r CreateRequest) replyTexts() (out []text) {
	if r.Reply != "" {
		out = append(out, text{label: "reply", what: "reply", value: r.Reply})
	}
	for i, reply := range r.Replies {
		at := fmt.Sprintf("replies[%d].text", i)
		out = append(out, text{label: at, what: at, value: reply.Text})
	}
	return out
}

// isReply reports whether a text is one of replyTexts.
func isReply(t text) bool {
	return t.what == t.label && !t.isPath && t.what != "title" && t.what != "body"
}
