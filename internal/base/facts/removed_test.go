package facts_test

import (
	"testing"

	"github.com/claudeops/claudeops/internal/base/facts"
)

// TestWhatIsRemovedIsASafeguardIfItIsAboutAnAct removes a line from a text.
func TestWhatIsRemovedIsASafeguardIfItIsAboutAnAct(t *testing.T) {
	for fires, near := range map[string]string{
		"Ask the owner to confirm it.":               "Ask the user to install the tool.",
		"Wait for the owner's reply.":                "Wait for the build.",
		"The approval comes first.":                  "- Approval workflows",
		"Restart it only if the owner agrees.":       "Text is short only if needed.",
		"**Warning:** the data may be lost.":         "Warning signs: it is slow.",
		"Never delete the branch.":                   "Never use passive voice.",
		"Make sure that the backup can be read.":     "    assert a == b",
		"Do not restart it unless the owner agrees.": "Prose is plain unless the term is known.",
	} {
		for text, want := range map[string]bool{fires: true, near: false} {
			found := facts.Read([]facts.File{{Path: "a.md", Old: "# T\n\n" + text + "\n\nEnd.\n", New: "# T\n\nEnd.\n"}}, nil)
			if got := found.Counts[facts.Weakens] > 0; got != want {
				t.Errorf("%q removed: %v", text, found.Facts)
			}
		}
	}
}
