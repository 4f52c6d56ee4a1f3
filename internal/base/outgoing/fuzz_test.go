package outgoing_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/base/outgoing"
)

// footer has the form of prflow's.
const footer = "\n\n---\n\nProposed by an agent through Claude Ops at tier 2. Files: `checks/a.md`.\n\n<!-- " +
	"claude-ops:v1 e30 AAAA -->\n"

// acceptable reports whether the content gate accepts a text.
func acceptable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0) && len(content.Hidden(text)) == 0
}

func FuzzBody(f *testing.F) {
	for _, seed := range bodySeeds() {
		f.Add(seed)
	}
	files, _ := filepath.Glob("testdata/ordinary/*.md")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Fuzz(func(t *testing.T, text string) {
		switch {
		case len(text) > 10_000:
		case acceptable(text):
			checkBody(t, text)
		default:
			outgoing.Rules{}.Body(text) // it comes before the content gate refuses it, and must not panic
			outgoing.Rules{}.Title(text)
		}
	})
}

// checkBody holds what every body must have after it was rewritten.
func checkBody(t *testing.T, text string) {
	t.Helper()
	once, _ := outgoing.Rules{}.Body(text)
	if twice, _ := (outgoing.Rules{}).Body(once); twice != once {
		t.Fatalf("rewritten twice, %q became %q and then %q", text, once, twice)
	}
	if acts := actsInSource(once); acts != "" {
		t.Errorf("%q became %q, whose source has %q", text, once, acts)
	}
	github, gitea := renderGitHub(t, once), renderGitea(t, once)
	for _, page := range []rendered{github, gitea} {
		if acts := page.acts(); acts != "" {
			t.Errorf("%q became %q, which has %s", text, once, acts)
		}
		if page.comments > 0 {
			t.Errorf("%q became %q, which has a comment", text, once)
		}
	}
	// Where a text has footnotes, renderers without them read the rest of it in another way, too.
	if missing := lacks(github.visible, visibleText(t, text)); missing >= 0 && !strings.Contains(text, "[^") {
		t.Errorf("%q became %q, whose page lacks %q", text, once, missing)
	}
	for _, page := range []rendered{renderGitHub(t, once+footer), renderGitea(t, once+footer)} {
		if n := len(page.top); n < 3 || !slices.Equal(page.top[n-3:], []string{"hr", "p", "#comment"}) || page.comments != 1 {
			t.Errorf("%q became %q, after which the footer is read as %q", text, once, page.top)
		}
	}
}

func FuzzTitle(f *testing.F) {
	for _, seed := range titleSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !acceptable(text) || strings.ContainsAny(text, "\r\n\t") || len(text) > 500 {
			return
		}
		once, _ := outgoing.Rules{}.Title(text)
		if twice, _ := (outgoing.Rules{}).Title(once); twice != once {
			t.Fatalf("rewritten twice, %q became %q and then %q", text, once, twice)
		}
		page := rendered{nodes: []string{once}, blocks: []string{once}}
		if acts := page.acts() + actsInSource(once); acts != "" {
			t.Errorf("%q became %q, which has %s", text, once, acts)
		}
		if missing := lacks(once, text); missing >= 0 {
			t.Errorf("%q became %q, which lacks %q", text, once, missing)
		}
		for _, start := range []string{"fixup!", "squash!", "amend!", "wip:", "[wip]"} {
			if strings.HasPrefix(strings.ToLower(once), start) {
				t.Errorf("%q became %q, which begins with %s", text, once, start)
			}
		}
	})
}

func titleSeeds() []string {
	return []string{
		"Plain", "Fixes #12", "fixup! squash! x", "WIP: x", "[skip ci] x", "[ci skip", "x ***NO_CI***", "@ann's disk",
		"@@@ann", "<!-- x -->",
		"<img src=x>", "![a](b)", "Signed-off-by: a", "/merge", "bors r+", "Fix&#32;&#35;1", "＠ann ［ｓｋｉｐ ｃｉ］", `Fixes \#1`,
		"skip-checks: true",
		"<<b>", "fix owner/x#1 closes GH-2", "[[skip ci]]", "&#64;ann",
	}
}

func bodySeeds() []string {
	return []string{
		"@ann fixes #1 <!-- x -->", "```\n@a\n```", "`` ` @a ``", "<!-<!-- -->-->", "fix: o/r#1`", "~~~~\n#1\n~~~",
		"@a/b/c @a.b-", "closes `#1`",
		"_@e_ .@t x/@y &#64;y [@e](https://x) *@*x",
		"Fixes&nbsp;#1 Fix*es* [#2](x) closes\n#3 fixes <https://h/o/r/issues/4>",
		"<details>\n<summary>a</summary>\n\n```\nx", "<?php x", "<![CDATA[ x", "<!DOCTYPE x", "<script>\nx\n\n@a",
		"a <b>c</b> d <i", "<div>\n```\n@a\n```\n</div>",
		"[//]: # (x)", "[a]: b 'c'\n\n[a]", "[a]: b\n[a]: c\n\n[a][]", "[x](y 'z') ![i](j) [![k](l)](m)",
		"[^1]: x\n\n    y\n\na[^1]",
		"| a |\n|-|\n| b | c |\n| @d |", "# h {#id .c}", "t\n: d\n\n    @x", "- a\n  ```\n  b", "> ```sh x\n> y\n@z",
		"1. a\n\n   <!-- x\n", "``` a b\nc\n```",
		"```mermaid\nx\n```", "---\na: b\n---\nc", "$\\x$ `a` $$\ny", "\\[ a\n\nb", "[[a.png]]", "&#x202e;a &shy;b &amp;shy;",
		"[skip ci] `[no ci]` ***NO_CI***",
		"/merge\n - /lgtm\n> /approve", "bors r+\n\n@dependabot merge\n`@claude`",
		"Signed-off-by: a\n    Co-authored-by: b\n```\nReviewed-by: c",
		"https://h/a.png <https://h/@b> https://h/@c", "a\n===\nb\n---", "- [x] a\n- [ ] @b", "a  \nb\\\nc", "* * *\n***",
		"[a](<b c>) [d]() [](e)",
		"Proposed by an agent through Claude Ops at tier 3", "<br>\n@a", "fixes<br>#1", "*fixes* **#1**", "~~fixes~~ #1",
		"> fixes\n> #1", "<a@b.c> <x.@b.c>",
		"``<!-- claude-ops:v1 a b -->``", "    <!-- claude-ops:v1 a b -->", "- - - - a", "> > > @a",
		"[a]\n\n[a]: <javascript:x>", "\ta\n\tb", "a\r\nfixes #1\r\n```\r\nb",
	}
}
