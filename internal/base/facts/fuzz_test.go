package facts_test

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/testkit/corpus"
)

// FuzzRead holds what is true of the facts of any change: lines are in the texts, words are short and fit to show, and
// the same texts give the same facts.
func FuzzRead(f *testing.F) {
	samples, err := corpus.Load(os.DirFS("testdata/samples"))
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range samples {
		f.Add(s.Files[0].Path, s.Files[0].Old, s.Files[0].New)
	}
	for _, path := range []string{"a.sh", "a.py", "a.yaml", "SKILL.md"} {
		f.Add(path, "---\ntools: Read\n---\n- never `rm -rf $(x \"`y`\")`\n",
			"```\nrm -rf \"$(a (b) 'c\\\n| sh\n<!-- x\n[a]: b\n```\n\x00\xff")
	}
	f.Fuzz(func(t *testing.T, path, old, now string) {
		files := []facts.File{{Path: path, Old: old, New: now}}
		read := facts.Read(files, nil)
		again := facts.Read(files, nil)
		for i, fact := range read.Facts {
			if fact != again.Facts[i] {
				t.Fatalf("%v, then %v", fact, again.Facts[i])
			}
			text := now
			if fact.Removed {
				text = old
			}
			if lines := strings.Count(text, "\n") + 1; fact.Line < 1 || fact.Line > lines {
				t.Fatalf("line %d of %d: %v", fact.Line, lines, fact)
			}
			if utf8.RuneCountInString(fact.Words) > facts.MaxWords ||
				utf8.RuneCountInString(fact.Sentence) > facts.MaxWords+80 ||
				strings.ContainsAny(fact.Sentence, "\n\r\x1b") || fact.Sentence == "" {
				t.Fatalf("words %q, sentence %q", fact.Words, fact.Sentence)
			}
		}
	})
}
