//go:build lint

package architecture

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unplain has the words that make a native reader stumble, as a pattern over a text in lower case, each with what to
// say instead.
func unplain() map[string]string {
	return map[string]string{
		`(?:is|are|was|were) no `:         "is not a, is not",
		`sa(?:ys|id) of `:                 "says about",
		`of whom\b`:                       "say it in two sentences",
		`whoever\b`:                       "anyone who, a caller who, or name who it is",
		`nobody knows`:                    "it is not known, unknown",
		`(?:became|becomes|become) of `:   "how it ended, what happens to",
		`comes of `:                       "follows from",
		`(?:has|have|had) to be told`:     "must be told",
		`in the way of`:                   "prevents, blocks",
		`hears? of `:                      "notices, learns of",
		`as it must\b`:                    "say what failed",
		`(?:for|to) nobody in particular`: "say what for",
	}
}

// Comments and literals that are broken over lines read as one text.
var (
	anyUnplain = regexp.MustCompile(`\b(?:` + strings.Join(slices.Collect(maps.Keys(unplain())), "|") + `)`)
	// Ordinary English that the list finds as well.
	ordinary = regexp.MustCompile(`\bthere (?:really )?(?:is|are|was|were) no |` +
		`\b(?:is|are|was|were) no (?:longer|more|less|fewer|such|matter|different|other|one)\b`)
)

func flowing(text string) string {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	text = strings.NewReplacer(`" + "`, "", "` + \"", "", "\" + `", "", " // ", " ", " # ", " ", " -- ", " ").Replace(text)
	return ordinary.ReplaceAllString(text, "")
}

// stumbles returns what of a text is on the list, with the words around it and what to say instead.
func stumbles(text string) (found []string) {
	text = flowing(text)
	for _, at := range anyUnplain.FindAllStringIndex(text, -1) {
		for words, instead := range unplain() {
			if regexp.MustCompile("^(?:" + words + ")").MatchString(text[at[0]:]) {
				around := text[max(0, at[0]-40):min(len(text), at[1]+40)]
				found = append(found, fmt.Sprintf("say %q in: %s", instead, around))
			}
		}
	}
	return found
}

// TestTextsAreInPlainEnglish reads comments, messages, scripts and pages. The changelog and decisions stay as they were
// written, and so do answers that were recorded from others.
func TestTextsAreInPlainEnglish(t *testing.T) {
	root := moduleRoot(t)
	cmd := exec.Command("git", "ls-files", "-z", "--", "*.go", "*.md", "*.txtar", "*.sql", "*.sh", "*.yaml", "*.yml",
		"*.html", "*.css", "*.js", "*.mjs", "*.py", "Makefile", "Dockerfile", ".env.example")
	cmd.Dir = root
	list, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		if name == "CHANGELOG.md" || strings.HasPrefix(name, "docs/adr/") || strings.Contains(name, "/recorded/") ||
			strings.HasPrefix(name, "internal/testkit/architecture/words") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) { // taken away and not yet committed
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		read++
		for _, found := range stumbles(string(text)) {
			t.Errorf("%s: %s", name, found)
		}
	}
	if read < 500 {
		t.Errorf("only %d files were read", read)
	}
}

func TestStumblesAreFoundOverLinesAndLiterals(t *testing.T) {
	for _, text := range []string{
		"x is no folder", "// it is\n// no folder", `"it is " +` + "\n\t" + `"no folder"`, "Whoever asks",
		"what became of it",
	} {
		if len(stumbles(text)) != 1 {
			t.Errorf("%q: %v", text, stumbles(text))
		}
	}
	plain := []string{"there is no folder", "// there\n// is no folder", "it is no longer so", "it is not a folder",
		"this node"}
	if i := slices.IndexFunc(plain, func(text string) bool { return len(stumbles(text)) != 0 }); i >= 0 {
		t.Errorf("%q: %v", plain[i], stumbles(plain[i]))
	}
}
