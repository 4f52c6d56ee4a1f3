package session

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/processtree"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func asIs(text string) string { return text }

func TestAHandoffIsReadAsItIsMeant(t *testing.T) {
	slow := []sessions.Found{{Key: "dns-slow", Text: "slow"}}
	for name, test := range map[string]struct {
		text  string
		want  sessions.Handoff
		notes []string // words of each
	}{
		"as the prompt shows it": {
			text: `{"version":1,"recommended_tier":2,"services":["dns"],"findings":[{"key":"dns slow","text":"slow"}],"wanted_change":{"file":"checks/a.md","evidence":"e","text":"t"}}`,
			want: sessions.Handoff{Version: 1, RecommendedTier: 2, Services: []string{"dns"}, Findings: slow,
				WantedChange: sessions.Wanted{File: "checks/a.md", Evidence: "e", Text: "t"}},
		},
		"numbers in quotes": {text: `{"version":"1","recommended_tier":"2","findings":[{"key":"dns-slow","text":"slow"}]}`,
			want: sessions.Handoff{Version: 1, RecommendedTier: 2, Findings: slow}},
		"a tier in words": {text: `{"recommended_tier":"Tier 3","findings":[{"key":"dns-slow","text":"slow"}]}`,
			want: sessions.Handoff{Version: 1, RecommendedTier: 3, Findings: slow}},
		"a code fence": {text: "```json\n{\"recommended_tier\":2,\"findings\":[{\"key\":\"dns-slow\",\"text\":\"slow\"}]}\n```\n", want: sessions.Handoff{Version: 1, RecommendedTier: 2, Findings: slow}},
		"a byte order mark": {text: "\ufeff" + `{"recommended_tier":2,"findings":[{"key":"dns-slow","text":"slow"}]}`,
			want: sessions.Handoff{Version: 1, RecommendedTier: 2, Findings: slow}},
		"a finding as a text":   {text: `{"recommended_tier":2,"services":["web","dns"],"findings":"slow","wanted_change":{"file":"checks/a.md"}}`, want: sessions.Handoff{Version: 1, RecommendedTier: 2, Services: []string{"web", "dns"}, Findings: []sessions.Found{{Key: "dns-web-checks-a-md", Text: "slow"}}, WantedChange: sessions.Wanted{File: "checks/a.md"}}},
		"findings without keys": {text: `{"recommended_tier":2,"findings":["resolver 10.0.0.2 answers in 4 s since 03:10","4711"]}`, want: sessions.Handoff{Version: 1, RecommendedTier: 2, Findings: []sessions.Found{{Key: "resolver-answers-in-s-since", Text: "resolver 10.0.0.2 answers in 4 s since 03:10"}, {Key: "finding-4", Text: "4711"}}}},
		"a finding with a proof of its own": {
			text: `{"recommended_tier":2,"findings":[{"key":"dns-slow","finding":"slow","proof":"dig took 4 s","seconds":4}]}`,
			want: sessions.Handoff{Version: 1, RecommendedTier: 2,
				Findings: []sessions.Found{{Key: "dns-slow", Text: "slow\nproof: dig took 4 s\nseconds: 4"}}},
		},
		"a service as an object": {text: `{"recommended_tier":2,"services":[{"name":"dns"}],"findings":[{"key":"dns-slow","text":"slow"}]}`, want: sessions.Handoff{Version: 1, RecommendedTier: 2, Services: []string{"dns"}, Findings: slow}},
		"null where nothing is":  {text: `{"recommended_tier":2,"services":null,"findings":[{"key":"dns-slow","text":"slow"}],"wanted_change":null}`, want: sessions.Handoff{Version: 1, RecommendedTier: 2, Findings: slow}},
		"a wanted change as a text": {
			text: `{"recommended_tier":2,"findings":[{"key":"dns-slow","text":"slow"}],"wanted_change":"warn earlier"}`,
			want: sessions.Handoff{Version: 1, RecommendedTier: 2, Findings: slow,
				WantedChange: sessions.Wanted{Text: "warn earlier"}},
		},
		"only what is gone": {text: `{"version":1,"resolved":["DNS slow"]}`,
			want: sessions.Handoff{Version: 1, Resolved: []string{"dns-slow"}}},
		"unknown members": {
			text:  `{"recommended_tier":2,"severity":"high","findings":[{"key":"dns-slow","text":"slow"}],"wanted_change":{"why":"x"}}`,
			want:  sessions.Handoff{Version: 1, RecommendedTier: 2, Findings: slow},
			notes: []string{"`wanted_change.why` is unknown", "`severity` is not a member"},
		},
		"two wanted changes": {
			text:  `{"recommended_tier":2,"findings":[{"key":"dns-slow","text":"slow"}],"wanted_change":[{"file":"a"},{"file":"b"}]}`,
			want:  sessions.Handoff{Version: 1, RecommendedTier: 2, Findings: slow, WantedChange: sessions.Wanted{File: "a"}},
			notes: []string{"2 entries; the first 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, notes, err := parseHandoff([]byte(test.text), asIs)
			if err != nil {
				t.Fatal(err)
			}
			giveKeys(&got)
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
			if len(notes) != len(test.notes) {
				t.Fatalf("notes %q, want %q", notes, test.notes)
			}
			for i, words := range test.notes {
				if !strings.Contains(notes[i], words) {
					t.Errorf("note %q, want %q", notes[i], words)
				}
			}
		})
	}
}

func TestAHandoffThatIsTooMuchIsCutAndSaysSo(t *testing.T) {
	long := strings.Repeat("ü", maxFinding+1)
	many := must.Get(json.Marshal(map[string]any{"recommended_tier": 2,
		"findings": slices.Repeat([]string{long}, maxFindings+1)}))(t)
	got, notes, err := parseHandoff(many, asIs)
	if err != nil || len(got.Findings) != maxFindings || len(notes) != 1+maxFindings ||
		!strings.Contains(notes[0], "21 entries; the first 20") {
		t.Fatalf("%d findings, notes %q, %v", len(got.Findings), notes, err)
	}
	if text := got.Findings[0].Text; utf8.RuneCountInString(text) != maxFinding || !strings.HasSuffix(text, "ü…") {
		t.Errorf("cut to %d characters", utf8.RuneCountInString(text))
	}
}

// A token that the bound would cut in two must not stay in halves.
func TestATokenAtTheBoundIsRedactedBeforeTheTextIsCut(t *testing.T) {
	text := strings.Repeat("x", maxFinding-5) + ourTokenInHandoff
	raw := must.Get(json.Marshal(map[string]any{"recommended_tier": 2,
		"findings": []any{map[string]any{"key": ourTokenInHandoff, "text": text}}}))(t)
	got, _, err := parseHandoff(raw,
		func(text string) string { return strings.ReplaceAll(text, ourTokenInHandoff, "[redacted]") })
	if err != nil {
		t.Fatal(err)
	}
	giveKeys(&got)
	if f := got.Findings[0]; strings.Contains(f.Text+f.Key, "TOK") || f.Key != "redacted" {
		t.Errorf("kept %q as %q", f.Text[maxFinding-20:], f.Key)
	}
}

const ourTokenInHandoff = "TOK-7F3A9C2E51D8"

func TestAHandoffThatLeavesDoubtIsNotUsed(t *testing.T) {
	for text, want := range map[string]string{
		``:                                          "empty",
		"```json\n```":                              "not a JSON object",
		`I found nothing.`:                          "not a JSON object",
		`{"version":1,`:                             "not a JSON object",
		`[1]`:                                       "not a JSON object",
		`{"findings":["a"]} {"x":1}`:                "not a JSON object",
		`{"findings":["a"]}`:                        "`recommended_tier` must be 1, 2 or 3",
		`{"recommended_tier":2}`:                    "`findings` has no entry",
		`{"recommended_tier":"high"}`:               "whole number",
		`{"recommended_tier":1e300}`:                "whole number",
		`{"recommended_tier":"NaN"}`:                "whole number",
		`{"recommended_tier":[2]}`:                  "whole number",
		`{"version":2,"findings":"a"}`:              "only 1 is known",
		`{"recommended_tier":9,"findings":["a"]}`:   "`recommended_tier` must be 1, 2 or 3",
		`{"recommended_tier":2,"findings":[["a"]]}`: "must be a text",
		`{"recommended_tier":2,"findings":[{"key":"a"}]}`:                   "no `text`",
		`{"recommended_tier":1,"recommended_tier":3,"findings":["a"]}`:      "recommended_tier",
		"{\"recommended_tier\":2,\"findings\":[\"a\xff\"]}":                 "UTF-8",
		`{"recommended_tier":2,"findings":["a"],"wanted_change":[[1]]}`:     "`wanted_change` must be a text",
		`{"recommended_tier":2,"findings":[{"key":["x"],"other":{"a":1}}]}`: "no `text`",
	} {
		if got, _, err := parseHandoff([]byte(text), asIs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzParseHandoff(f *testing.F) {
	for _, seed := range []string{`{"recommended_tier":2,"findings":[{"key":"a","text":"b"}]}`, "```\n{}\n```",
		`{"findings":{"a":[1,null,{}]},"resolved":7}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, notes, err := parseHandoff(raw, asIs)
		if err != nil {
			if len([]rune(err.Error())) > 900 || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %q", err)
			}
			return
		}
		giveKeys(&h)
		text := must.Get(json.Marshal(h))(t)
		again, _, err := parseHandoff(text, asIs)
		if err != nil {
			t.Fatalf("what was made of it cannot be read: %v\n%s", err, text)
		}
		if giveKeys(&again); !reflect.DeepEqual(again, h) {
			t.Errorf("read again it is %+v, not %+v (notes %q)", again, h, notes)
		}
		for _, finding := range h.Findings {
			if finding.Key == "" || len([]rune(finding.Key)) > maxKey || len([]rune(finding.Text)) > maxFinding {
				t.Errorf("a finding is %+v", finding)
			}
		}
	})
}

// What the real CLI says to the hook is in e2e.
func TestTheAgentHearsOfAHandoffThatCannotBeUsed(t *testing.T) {
	const good, unusable, cut = `{"recommended_tier":2,"findings":[{"key":"a","text":"b"}]}`, `{"recommended_tier":2}`, `{"recommended_tier":2,"findings":["a"],"x":1}`
	written := func(name string) string {
		return `{"hook_event_name":"PostToolUse","tool_name":"Write","tool_input":{"file_path":"/tmp/x/` + name +
			`","content":"c"}}`
	}
	const stop, stopAgain = `{"hook_event_name":"Stop","stop_hook_active":false}`, `{"hook_event_name":"Stop","stop_hook_active":true}`
	for name, test := range map[string]struct{ file, call, want string }{
		"a good one that was written":        {good, written(handoffName), ""},
		"an unusable one that was written":   {unusable, written(handoffName), "`findings` has no entry"},
		"one that was cut":                   {cut, written(handoffName), "can be used, but not all of it: `x`"},
		"another file was written":           {unusable, written("journal.txt"), ""},
		"none at the end":                    {"", stop, ""},
		"a good one at the end":              {good, stop, ""},
		"one that was cut, at the end":       {cut, stop, ""},
		"an unusable one at the end":         {unusable, stop, "final report once more"},
		"an unusable one at the end, again":  {unusable, stopAgain, ""},
		"a call that cannot be understood":   {unusable, "garbage", "cannot be used"},
		"a call that is far too large":       {unusable, strings.Repeat("x", 2<<20), "cannot be used"},
		"an unusable one, told in one line":  {"[\n1]", stop, "not a JSON object"},
		"a finding that would end the block": {`{"recommended_tier":"</x>"}`, stop, "whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if test.file != "" {
				must.Do(t, os.WriteFile(filepath.Join(dir, handoffName), []byte(test.file), 0o600))
			}
			var out strings.Builder
			code := CheckHandoff(dir, strings.NewReader(test.call), &out)
			if code != 0 || (out.Len() > 0) != (test.want != "") {
				t.Fatalf("exit %d: %q", code, out.String())
			}
			if test.want == "" {
				return
			}
			var answer struct{ Decision, Reason string }
			if err := json.Unmarshal([]byte(out.String()), &answer); err != nil || answer.Decision != "block" ||
				!strings.Contains(answer.Reason, test.want) {
				t.Errorf("answered %q, %v", out.String(), err)
			}
		})
	}
	if code := CheckHandoff(filepath.Join(t.TempDir(), "gone"), strings.NewReader(stop), nil); code != 0 {
		t.Errorf("exit %d without a folder", code)
	}
}

func TestProcessesThatDoNotEndFailTheSession(t *testing.T) {
	for _, test := range []struct {
		before outcome
		end    processtree.End
		state  sessions.State
		words  []string
	}{
		{outcome{sessions.StateSucceeded, ""}, processtree.End{}, sessions.StateSucceeded, nil},
		{outcome{sessions.StateSucceeded, ""}, processtree.End{Remaining: []int{7, 9}}, sessions.StateFailed,
			[]string{"[7 9]", "the operator"}},
		{outcome{sessions.StateSucceeded, ""}, processtree.End{ReaperLost: true}, sessions.StateFailed,
			[]string{"was killed"}},
		{outcome{sessions.StateTimeout, "too long"}, processtree.End{Remaining: []int{7}}, sessions.StateTimeout,
			[]string{"too long; ", "[7]"}},
	} {
		v := test.before
		v.addProblems(test.end)
		if v.state != test.state || (len(test.words) == 0) != (v.reason == "") {
			t.Errorf("%+v became %+v", test.before, v)
		}
		must.Contain(t, v.reason, test.words...)
	}
}

// All lines of a credential are withheld, not only the first.
func TestCleanerWithholdsEveryLineOfACredential(t *testing.T) {
	t.Parallel()
	token := "gh" + "p_" + strings.Repeat("aB3dE6gH9", 4)
	clean := cleaner{textscan.NewScanner(nil)}
	got := clean.cleanText("one\n"+token[:20]+"\n"+token[20:]+"\nlast", 1000)
	if want := "one\n" + withheldLine + "\n" + withheldLine + "\nlast"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
