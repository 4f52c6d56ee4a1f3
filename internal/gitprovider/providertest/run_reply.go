package providertest

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func (s *Scene) replier() gitprovider.Replier {
	s.t.Helper()
	replier, can := s.p.(gitprovider.Replier)
	if !can {
		s.t.Fatal("the provider is no gitprovider.Replier")
	}
	return replier
}

// linesSaid returns the comments on lines of all remarks, by their first lines.
func linesSaid(s *Scene, number int) map[string]gitprovider.LineComment {
	s.t.Helper()
	out := map[string]gitprovider.LineComment{}
	for _, r := range s.remarks(number) {
		for _, c := range r.Lines {
			first, _, _ := strings.Cut(c.Body, "\n")
			out[first] = c
		}
	}
	return out
}

// reviseReply checks that replies stand at the lines of their comments, are ours, and are recognised by their first
// lines.
func reviseReply(t *testing.T, h Harness) {
	s := newScene(t, h)
	people, can := s.World.(LineReviewer)
	if !can {
		return
	}
	pr := s.Propose("claude-ops/check/disk", Update("checks/disk.md", "a\nb\nc\n"))
	people.ReviewLines(pr.Number, "ann", gitprovider.ReviewChangesRequested, "Look at the lines.",
		gitprovider.LineComment{Path: "checks/disk.md", Line: 2, Body: "Why b?"},
		gitprovider.LineComment{Path: "checks/disk.md", Line: 3, Body: "Why c?"})
	said := linesSaid(s, pr.Number)
	why, whyToo := said["Why b?"], said["Why c?"]
	if why.ID == "" || whyToo.ID == "" || why.ID == whyToo.ID {
		t.Fatalf("the ids of the comments are %q and %q", why.ID, whyToo.ID)
	}
	first, second := gitprovider.ReplyOpening+"(request R1, comment 1).", gitprovider.ReplyOpening+
		"(request R1, comment 2)."
	s.Must(s.replier().Reply(s.ctx, s.Ref(), pr.Number, []gitprovider.LineReply{
		{To: why, Text: first + "\n\nSo.", Quoting: first + "\n\n> Why b?\n\nSo."},
		{To: whyToo, Text: second + "\n\nThus.", Quoting: second + "\n\n> Why c?\n\nThus."},
	}))
	said = linesSaid(s, pr.Number)
	for opening, to := range map[string]gitprovider.LineComment{first: why, second: whyToo} {
		at, there := said[opening]
		if !there || at.Path != to.Path || at.Line != to.Line || !at.IsAnswer() {
			t.Errorf("the reply is %+v (there: %t), to %+v", at, there, to)
		}
	}
	for _, r := range s.remarks(pr.Number) {
		if r.IsAnswer() && r.State != gitprovider.ReviewCommented && r.State != "" {
			t.Errorf("a reply counts as a verdict: %+v", r)
		}
	}
	if last := s.remark(pr.Number); last == nil || last.Author != s.login("ann") {
		t.Errorf("the last remark is %+v, and not what ann said", last)
	}
}

func reviseReplyMissing(t *testing.T, h Harness) {
	s := newScene(t, h)
	s.Propose("claude-ops/check/disk")
	to := gitprovider.LineComment{ID: "1", Path: "checks/disk.md", Line: 1}
	s.Code(s.replier().Reply(s.ctx, s.Ref(), 4711, []gitprovider.LineReply{{To: to, Text: "x", Quoting: "x"}}),
		fault.NotFound)
}
