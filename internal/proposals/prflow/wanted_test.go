package prflow_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// kept returns the recorded part of the change that a refused attempt asked for.
func (b *bench) kept(row record.Attempt) *record.RefusedChange {
	b.Helper()
	kept, err := b.store.History.Wanted(b.Context(), row.RequestID)
	if err != nil {
		b.Fatal(err)
	}
	return kept
}

func TestWhatARefusedAttemptWantedIsKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	edit := file("checks/disk.md", "update")
	delete(edit, "content")
	edit["edits"] = []any{map[string]any{"old": "nowhere", "new": "Look twice."}}
	_, row := b.mustRefuse(request(files(file("prompts/x.md", "create", "# X\n"), file("checks/old.md", "delete"), edit)),
		fault.ScopeDenied)
	got := b.kept(row)
	if got == nil || got.Body.Text == "" || len(got.Files) != 3 {
		t.Fatalf("%+v", got)
	}
	want := record.RefusedFile{Path: "prompts/x.md", Action: gitprovider.ActionCreate,
		RefusedText: record.RefusedText{Text: "# X\n"}}
	if got.Files[0] != want || got.Files[1].Action != gitprovider.ActionDelete || got.Files[1].Text != "" ||
		got.Files[2].Text != "Look twice." || !got.Files[2].Edits {
		t.Errorf("%+v", got.Files)
	}
}

func TestATextWithASecretIsNotKeptAndTheOthersAre(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	token := "ghp_" + strings.Join([]string{"z9Kq2LmX", "7vTbR4Wn", "8cYd1FgH", "5jPs3AuE", "6oZi"}, "")
	_, row := b.mustRefuse(request(files(file("checks/a.md", "create", "x\n"+token+"\n"),
		file("checks/b.md", "create", "# B\n"))), fault.ContentDenied)
	got := b.kept(row)
	if got == nil || got.Files[0].Text != "" || got.Files[0].Withheld != "rule secret:github-pat, line 2" ||
		got.Files[1].Text != "# B\n" {
		t.Errorf("%+v", got)
	}
	_, row = b.mustRefuse(request(with("title", token)), fault.ContentDenied)
	if got := b.kept(row); got != nil {
		t.Errorf("with a secret in the title: %+v", got)
	}
	large := strings.Repeat("x\n", 150<<10)
	_, row = b.mustRefuse(request(files(file("checks/a.md", "create", large), file("checks/b.md", "create", "# B\n"))),
		fault.ContentDenied)
	if got := b.kept(row); got == nil || got.Files[0].Text != "" || got.Files[0].Withheld == "" ||
		got.Files[1].Text != "# B\n" {
		t.Errorf("with a file that is not searched: %+v", got)
	}
}

func TestWhatBecameAProposalIsNotKeptTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(request(nil))
	if got := b.kept(b.attempts()[0]); got != nil {
		t.Errorf("%+v", got)
	}
}

func TestOfALongTextTheBeginningIsKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	long := strings.Repeat("a line ü\n", 5000)
	_, row := b.mustRefuse(request(func(r map[string]any) {
		r["body"] = "## Why\n\n" + strings.Repeat("Because. ", 500)
		r["files"] = []any{file("prompts/x.md", "create", long), file("prompts/y.md", "create", "# Y\n")}
	}), fault.ScopeDenied)
	got := b.kept(row)
	if got == nil || len(got.Files) != 2 {
		t.Fatalf("%+v", got)
	}
	first := got.Files[0]
	sum := sha256.Sum256([]byte(long))
	if len(first.Text) < 500 || !strings.HasPrefix(long, first.Text) ||
		!strings.Contains(first.Rest, fmt.Sprintf("of %d bytes", len(long))) ||
		!strings.Contains(first.Rest, hex.EncodeToString(sum[:])) {
		t.Errorf("%+v", first)
	}
	if !strings.HasPrefix(got.Body.Text, "## Why") || got.Body.Rest == "" {
		t.Errorf("%+v", got.Body)
	}
}
