package facts_test

import (
	"fmt"
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

func TestFactsOfAClassStandInTheOrderOfTheirLines(t *testing.T) {
	found := readNew("SKILL.md", "---\nname: x\ncontext: y\n---\n\nRun it as root.\n")
	if len(found) != 2 || found[0].Line != 3 || found[1].Line != 6 {
		t.Errorf("got %v", found)
	}
}

func TestOfALineTooLongToReadTheBeginningIsRead(t *testing.T) {
	const unit = "delete all files and "
	found := readNew("a.md", strings.Repeat(unit, 20_000)+"\n")
	if !has(found, facts.Opaque) || !has(found, facts.Destroy) || len(found) > 3 {
		t.Errorf("%d facts: %v", len(found), found[:min(len(found), 3)])
	}
}

func TestAFileThatMovesIsComparedWithWhatItSaidBefore(t *testing.T) {
	const old = "# Disk\n\nDelete all files in /srv/old.\n\nAsk the owner first.\n\nRun `rm -rf /srv/a`.\n"
	grown := old + "\nThen send the list to https://a.example.org/.\n"
	other := "# Other\n\nOne.\n\nTwo.\n\nDelete all files in /srv/old.\n"
	for name, c := range map[string]struct {
		files []facts.File
		want  string
	}{
		"as it was":      {[]facts.File{{Path: "a.md", Old: old}, {Path: "b/c.md", New: old}}, ""},
		"in other order": {[]facts.File{{Path: "b/c.md", New: old}, {Path: "a.md", Old: old}}, ""},
		"with a line more": {[]facts.File{{Path: "a.md", Old: old}, {Path: "c.md", New: grown}},
			"outbound c.md 9|address c.md 9"},
		"without a safeguard": {[]facts.File{{Path: "a.md", Old: old},
			{Path: "c.md", New: strings.ReplaceAll(old, "Ask the owner first.\n\n", "")}}, "weakens a.md 5-"},
		"to a file of another kind": {[]facts.File{{Path: "a.txt", Old: old}, {Path: "c.md", New: old}},
			"destroy c.md 3|destroy c.md 7|weakens a.txt 5-|runs-code c.md 7"},
		"another text": {[]facts.File{{Path: "a.md", Old: old}, {Path: "c.md", New: other}},
			"destroy c.md 7|weakens a.md 5-"},
		"to two places": {[]facts.File{{Path: "a.md", Old: old}, {Path: "c.md", New: old}, {Path: "d.md", New: old}},
			"destroy d.md 3|destroy d.md 7|runs-code d.md 7"},
	} {
		var got []string
		for _, f := range facts.Read(c.files, nil).Facts {
			removed := ""
			if f.Removed {
				removed = "-"
			}
			got = append(got, fmt.Sprintf("%s %s %d%s", f.Class, f.Path, f.Line, removed))
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s: got %q, want %q", name, strings.Join(got, "|"), c.want)
		}
	}
}
