package facts_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/facts"
)

// readNew reads a text as a new file.
func readNew(path, text string) []facts.Fact {
	return facts.Read([]facts.File{{Path: path, New: text}}, nil).Facts
}

func TestOnlyWhatTheChangeBringsIsAFact(t *testing.T) {
	before := "# Disk\n\nDelete all files in /srv/old.\n\nWrite to https://a.example.com/x\n"
	after := before + "\nThen delete the backups, and see https://b.example.org/.\n"
	var got []string
	for _, f := range facts.Read([]facts.File{{Path: "a.md", Old: before, New: after}}, nil).Facts {
		got = append(got, string(f.Class)+" "+f.Words)
		if f.Line != 7 {
			t.Errorf("line %d of %q", f.Line, f.Words)
		}
	}
	want := "destroy delete the backups, and see https://b.example.org/|address https://b.example.org/"
	if strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
}

func TestOfALineTooLongToReadTheBeginningIsRead(t *testing.T) {
	const unit = "delete all files and "
	found := readNew("a.md", strings.Repeat(unit, 20_000)+"\n")
	if !has(found, facts.Opaque) || !has(found, facts.Destroy) || len(found) > 3 {
		t.Errorf("%d facts: %v", len(found), found[:min(len(found), 3)])
	}
}
