package facts_test

import (
	"testing"

	"github.com/claudeops/claudeops/internal/base/facts"
)

// TestWhatIsRemovedIsASafeguardIfItIsAboutAnAct removes a line from a text.
func TestWhatIsRemovedIsASafeguardIfItIsAboutAnAct(t *testing.T) {
	for fires, near := range map[string]string{
		"Ask the owner to confirm it.":               "Ask the user to install the tool.",
		"Ask the owner for permission to restart.":   "Ask the user for a path to look at.",
		"Wait for the on-call engineer.":             "Wait for 30 seconds.",
		"Only if the owner agrees, restart it.":      "Only if it is short, say so.",
		"Never, ever destroy the volume.":            "Never ever use capitals.",
		"Do not under any circumstances restart it.": "Do not use the word simply.",
		"Never trust what an alert says.":            "Never begin with a verb.",
		"Wait for the owner's reply.":                "Wait for the build.",
		"The approval comes first.":                  "- Approval workflows",
		"Restart it only if the owner agrees.":       "Text is short only if needed.",
		"**Warning:** the data may be lost.":         "Warning signs: it is slow.",
		"Never delete the branch.":                   "Never use passive voice.",
		"Make sure that the backup can be read.":     "    assert a == b",
		"Do not restart it unless the owner agrees.": "Prose is plain unless the term is known.",
	} {
		for text, want := range map[string]bool{fires: true, near: false} {
			if got := brings(facts.Weakens, "# T\n\n"+text+"\n\nEnd.\n", "# T\n\nEnd.\n"); got != want {
				t.Errorf("%q removed: %t", text, got)
			}
		}
	}
}

// brings reports whether a change has a fact of a class.
func brings(class facts.Class, old, now string) bool {
	return facts.Read([]facts.File{{Path: "a.md", Old: old, New: now}}, nil).Counts[class] > 0
}

// An exception, or another title of its list, is how a prohibition goes while its line stays.
func TestAProhibitionIsWeakenedWhileItsLineStays(t *testing.T) {
	for change, want := range map[[2]string]bool{
		{"Never delete the volume.", "Never delete the volume without consent."}:                             true,
		{"- **Never** push to main.", "- **Never** push to main."}:                                           false,
		{"Do not restart it.", "Do not restart it unless it is slow."}:                                       true,
		{"You must never merge it yourself.", "You must never merge it yourself until the build is green."}:  true,
		{"Never delete the volume without consent.", "Never delete the volume without the owner's consent."}: false,
		{"Never delete the volume.", "Never delete the volume, even for a person."}:                          false,
		{"Never use capitals.", "Never use capitals without a reason."}:                                      false,
		{"Never delete the volume.", "Never trust an alert until it is red."}:                                false,
		{"**Never:**\n\n- Skip the review.", "**Always:**\n\n- Skip the review."}:                            true,
		{"**Never:**\n\n- Skip the review.", "**Never do this:**\n\n- Skip the review."}:                     false,
	} {
		if got := brings(facts.Weakens, "# T\n\n"+change[0]+"\n\nEnd.\n", "# T\n\n"+change[1]+"\n\nEnd.\n"); got != want {
			t.Errorf("%q: %t", change, got)
		}
	}
}

// A tool of a server has credentials of its own, which no command has.
func TestAToolOfAServerWidensWhatRunsAnyCommand(t *testing.T) {
	for tools, want := range map[string]bool{"Bash, mcp__prod__drop": true, "Bash, Read": false} {
		if got := brings(facts.Rights, "---\nname: a\nallowed-tools: Bash\n---\n# T\n",
			"---\nname: a\nallowed-tools: "+tools+"\n---\n# T\n"); got != want {
			t.Errorf("%q: %t", tools, got)
		}
	}
}
