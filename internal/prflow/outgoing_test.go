package prflow

import (
	"strings"
	"testing"
)

func TestOutgoingBodies(t *testing.T) {
	cases := map[string]struct{ in, want, warns string }{
		"plain text":                            {"Why: it fills up.\n\n- one\n", "Why: it fills up.\n\n- one\n", ""},
		"an HTML comment":                       {"a <!-- hidden --> b", "a  b", "HTML comment"},
		"a comment that does not end":           {"a <!-- hidden\nmore", "a ", "HTML comment"},
		"a comment made by removing another":    {"a <!-<!-- x -->- y -->", "a <!-- y -->"[:2], "HTML comment"},
		"a forged mark":                         {"x\n<!-- claude-ops:v1 abc def -->", "x\n", "HTML comment"},
		"a comment inside a code block":         {"```\n<!-- x -->\n```\n", "```\n\n```\n", "HTML comment"},
		"a mention":                             {"ask @ann about it", "ask @ ann about it", "ann"},
		"a mention at the start and a team":     {"@ann and @org/team.", "@ ann and @ org/team.", "org/team"},
		"an allowed mention":                    {"ask @Bob", "ask @Bob", ""},
		"a mail address":                        {"mail ann@example.org", "mail ann@example.org", ""},
		"a mention in a code span":              {"run `echo @ann` now", "run `echo @ann` now", ""},
		"a mention in a longer span":            {"``a ` @ann`` and @eve", "``a ` @ann`` and @ eve", "eve"},
		"a mention in a code block":             {"```sh\necho @ann\n```\n@eve\n", "```sh\necho @ann\n```\n@ eve\n", "eve"},
		"a block of tildes":                     {"~~~\n@ann\n```\n@ann\n~~~\n", "~~~\n@ann\n```\n@ann\n~~~\n", ""},
		"a fence that does not end hides none":  {"```\n@ann\n", "```\n@ ann\n", "ann"},
		"a fence in a list hides none":          {"- x\n  ```\n@ann\n  ```\n", "- x\n  ```\n@ ann\n  ```\n", "ann"},
		"a fence in HTML hides none":            {"<div>\n```\n@ann\n```\n</div>\n", "<div>\n```\n@ ann\n```\n</div>\n", "ann"},
		"a fence with backticks behind is none": {"``` a`\n@ann\n```\n", "``` a`\n@ ann\n```\n", "ann"},
		"a span that does not end hides none":   {"a ` @ann", "a ` @ ann", "ann"},
		"a span that another line breaks":       {"a ` b\nc ` @ann `\n", "a ` b\nc ` @ ann `\n", "ann"},
		"a span over two list items":            {"- a `\n- @ann `\n", "- a `\n- @ ann `\n", "ann"},
		"an escaped backtick":                   {"\\` @ann `", "\\` @ ann `", "ann"},
		"a closing keyword":                     {"Fixes #12.", "Fixes (see) #12.", "closes nothing"},
		"closing keywords in all forms": {"closes: #1, resolved o/r#2, fix https://h/o/r/issues/3 and fixed GH-4",
			"closes: (see) #1, resolved (see) o/r#2, fix (see) https://h/o/r/issues/3 and fixed (see) GH-4", "closes nothing"},
		"a reference without a keyword": {"see #12, prefixes #3", "see #12, prefixes #3", ""},
		"a keyword without a reference": {"fixes the disk", "fixes the disk", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := &outgoing{allowMentions: []string{"bob"}}
			if got := o.body(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			warnings := strings.Join(o.warnings, "; ")
			if (c.warns == "") != (warnings == "") || !strings.Contains(warnings, c.warns) {
				t.Errorf("warnings %q, want %q", warnings, c.warns)
			}
		})
	}
}

func TestOutgoingTitles(t *testing.T) {
	cases := map[string]string{
		"Check @ann's disk":       "Check ann's disk",
		"Fix #12":                 "Fix (see) #12",
		"Fixes o/r#12 <!-- x -->": "Fixes (see) o/r#12",
		"@@@ann":                  "ann",
		"Plain":                   "Plain",
	}
	for in, want := range cases {
		if got := (&outgoing{}).title(in); got != want {
			t.Errorf("title(%q) = %q, want %q", in, got, want)
		}
	}
	if got := (&outgoing{allowClosing: true}).title("Fixes #12"); got != "Fixes #12" {
		t.Errorf("an allowed closing became %q", got)
	}
}

// FuzzOutgoing holds that cleaning twice changes nothing more, and that no comment survives.
func FuzzOutgoing(f *testing.F) {
	for _, s := range []string{
		"@ann fixes #1 <!-- x -->", "```\n@a\n```", "`` ` @a ``", "<!-<!-- -->-->", "fix: o/r#1`", "~~~~\n#1\n~~~", "@a/b/c @a.b-", "closes `#1`",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := (&outgoing{}).body(text)
		if strings.Contains(once, "<!--") {
			t.Fatalf("%q keeps a comment: %q", text, once)
		}
		second := &outgoing{}
		if twice := second.body(once); twice != once {
			t.Fatalf("%q became %q and then %q", text, once, twice)
		}
		title := (&outgoing{}).title(text)
		if again := (&outgoing{}).title(title); again != title {
			t.Fatalf("the title %q became %q and then %q", text, title, again)
		}
	})
}
