package outgoing_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/outgoing"
)

// pieces returns the building blocks of bodies in TestRandomBodies.
func pieces() []string {
	return []string{
		"a", "b c", "@x", "@claude", "Fixes", "closes", "#12", "o/r#1", "GH-2", ":", "&nbsp;", "&#64;", "&#35;1", "&shy;",
		" ", " ", " ", "\n", "\n", "\n\n", "\n\n",
		"*", "**", "_", "`", "``", "```", "~~~", "~~", "[", "]", "(", ")", "![", "](u)", "](u 't')", "[r]", "[r]: u\n",
		"\n[r]: u 't'\n", "[^1]", "\n[^1]: n\n",
		"<", ">", "<b>", "</b>", "<br>", "<!--", "-->", "<?", "?>", "<![CDATA[", "]]>", "<!X", "<div>", "\n<div>\n",
		"</details>", "\n<script>\n",
		"\n- ", "\n1. ", "\n> ", "\n  ", "\n    ", "\n\t", "|", "\n|-|-|\n", "\n| a | b |\n|-|-|\n| c | d | e |\n", "\n# ",
		"{#i .c}", "\n===\n", "\n---\n",
		"\n: ", "\\", "\\[", "\\(", "\\]", "$", "$$", "[[", "]]", "https://e.org/i.png", "<https://e.org/@x>",
		"https://h.org/issues/3", "www.e.org/@y",
		"\n/merge\n", "\nbors r+\n", "\nSigned-off-by: x\n", "[skip ci]", "[skip", "ci]", "***NO_CI***", "skip-checks: true",
		"\n```sh x\n", "\n```\n", "\n~~~\n",
		"\n```mermaid\n", "- [x] ", "é", "＠z", "a@b.org", "\r\n", "!", "'", "\"", "&", ";", "#", "\x00", "\xff", "\r",
		"\u202e", "<!-- claude-ops:v1 a b -->", "\nProposed by an agent through Claude Ops",
	}
}

func TestRandomBodies(t *testing.T) {
	const bodies, most = 500, 25
	random := rand.New(rand.NewPCG(1, 2))
	all := pieces()
	for range bodies {
		var b strings.Builder
		for range 1 + random.IntN(most) {
			b.WriteString(all[random.IntN(len(all))])
		}
		if text := b.String(); acceptable(text) {
			checkBody(t, text)
		} else {
			outgoing.Rules{}.Body(text)
			outgoing.Rules{}.Title(text)
		}
		if t.Failed() {
			return
		}
	}
}

// TestRandomBodiesHideNothing puts words of their own between the pieces, and looks for each on the page.
func TestRandomBodiesHideNothing(t *testing.T) {
	const bodies, most = 500, 12
	random := rand.New(rand.NewPCG(3, 4))
	all := pieces()
	for range bodies {
		var b strings.Builder
		words := 1 + random.IntN(most)
		for n := range words {
			fmt.Fprintf(&b, "%s%sq%dz", all[random.IntN(len(all))], all[random.IntN(len(all))], n)
		}
		text := b.String() + all[random.IntN(len(all))]
		if !acceptable(text) {
			continue
		}
		rewritten, _ := outgoing.Rules{}.Body(text)
		for _, page := range []rendered{renderGitHub(t, rewritten), renderGitea(t, rewritten)} {
			for n := range words {
				if word := fmt.Sprintf("q%dz", n); !strings.Contains(page.visible+page.targets, word) {
					t.Fatalf("%q became %q, whose page does not show %s", text, rewritten, word)
				}
			}
		}
	}
}
