package strictjson

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeReportsMalformedJSONWithItsOffset(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, raw, want string
	}{
		{"text", "hello", "the arguments must be JSON: at byte offset 0, "},
		{"a cut object", `{"title":"a",`,
			"the arguments must be complete JSON: the text stops within a value after byte offset 13"},
		{"a cut string", `{"title":"a`,
			"the arguments must be complete JSON: the text stops within a value after byte offset 11"},
		{"a cut array", `{"labels":["a"`,
			"the arguments must be complete JSON: the text stops within a value after byte offset 14"},
		{"a cut value that does not fit", `{"title":[[`,
			"the arguments must be complete JSON: the text stops within a value after byte offset 11"},
		{"a trailing comma", `{"title":"a",}`, "the arguments must be JSON: at byte offset 12, "},
		{"single quotes", `{'title':"a"}`, "the arguments must be JSON: at byte offset 1, "},
		{"a comment", `{"title":"a" /* x */}`, "the arguments must be JSON: at byte offset 13, "},
		{"a raw NUL", "{\"title\":\"a\x00\"}", "the arguments must be JSON: at byte offset 11, "},
		{"a raw newline in a string", "{\"title\":\"a\n\"}", "the arguments must be JSON: at byte offset 11, "},
		{"a byte order mark", "\ufeff{}", "the arguments must be JSON: at byte offset 0, "},
		{"NaN", `{"pr_number":NaN}`, "the arguments must be JSON: at byte offset 13, "},
		{"a leading zero", `{"pr_number":007}`, "the arguments must be JSON: at byte offset 14, "},
		{"a brace for a bracket", `{"labels":[}`, "the arguments must be JSON: at byte offset 11, "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			violations := Decode([]byte(tt.raw), &proposal{}, Options{})
			if len(violations) == 0 {
				t.Fatal("no violation")
			}
			if last := violations[len(violations)-1]; !strings.HasPrefix(last.Message, tt.want) || last.Suggestion == "" {
				t.Errorf("last violation is %+v, want %q", last, tt.want)
			}
		})
	}
}

func TestDecodeKeepsWhatItFoundBeforeMalformedJSON(t *testing.T) {
	t.Parallel()
	violations := Decode([]byte(`{"draft":1,"title":]`), &proposal{}, Options{})
	if len(violations) != 2 || violations[0].Path != "draft" ||
		!strings.Contains(violations[1].Message, "byte offset 19") {
		t.Errorf("violations: %v", lines(violations))
	}
}

func TestDecodeRefusesDeepNesting(t *testing.T) {
	t.Parallel()
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	tests := []struct {
		name, raw string
		deep      bool
	}{
		{"at the limit in an unknown field", with(`"x":` + nested(maxDepth-1)), false},
		{"beyond the limit in an unknown field", with(`"x":` + nested(maxDepth)), true},
		{"beyond the limit in a wrong type", with(`"draft":` + nested(maxDepth)), true},
		{"objects beyond the limit", with(`"x":` + strings.Repeat(`{"a":`, maxDepth) + "1" + strings.Repeat("}", maxDepth)),
			true},
		{"a million levels", strings.Repeat("[", 1_000_000), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			violations := Decode([]byte(tt.raw), &proposal{}, Options{})
			deep := len(violations) > 0 &&
				strings.HasSuffix(violations[len(violations)-1].Message, "must not be nested more than 32 levels deep")
			if deep != tt.deep {
				t.Errorf("violations: %v", lines(violations))
			}
		})
	}
}

func TestDecodeBoundsTheViolations(t *testing.T) {
	t.Parallel()
	for count, want := range map[int]int{maxViolations: maxViolations, maxViolations + 7: maxViolations + 1} {
		raw := with(`"labels":[` + strings.TrimSuffix(strings.Repeat("1,", count), ",") + "]")
		violations := Decode([]byte(raw), &proposal{}, Options{})
		if len(violations) != want {
			t.Errorf("%d violations for %d faults, want %d", len(violations), count, want)
		}
		last := violations[len(violations)-1].Message
		if count > maxViolations && last != "there are more violations than these 50; the search ended at the next one" {
			t.Errorf("the last violation says %q", last)
		}
	}
}

func TestDecodeSomeGivesWhatWasRead(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, raw string
		want      proposal
	}{
		{"beside a violation", with(`"tier":3,"labels":["a",1,"b"]`),
			proposal{Owner: "joe", Title: "Fix", Labels: []string{"a", "", "b"}}},
		{"the first of two", with(`"title":"Other"`), proposal{Owner: "joe", Title: "Fix"}},
		{"of a text that is cut", `{"repo_owner":"joe","title":"Fi`, proposal{}},
		{"of a text that is nested too deep", `{"repo_owner":"joe","x":` + strings.Repeat("[", 99), proposal{}},
		{"before the search ends", `{"repo_owner":"joe",` + unknownKeys(60) + `,"title":"Fix"}`, proposal{Owner: "joe"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := proposal{Title: "old", Number: 7}
			if violations := DecodeSome([]byte(tt.raw), &got, Options{}, nil); len(violations) == 0 {
				t.Error("no violation")
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(proposal{})); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeRepeatsLittleOfWhatWasSubmitted(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("9", 500)
	tests := []struct{ name, raw string }{
		{"a long name", with(`"` + strings.Repeat("n", 500) + `":1`)},
		{"a long number", with(`"pr_number":` + long)},
		{"a long fraction", with(`"pr_number":0.` + long)},
		{"a name with control characters", with(`"\u001b[2K\u202e\u0000x` + "`" + `\n":1`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			violations := Decode([]byte(tt.raw), &proposal{}, Options{})
			if len(violations) != 1 {
				t.Fatalf("violations: %v", lines(violations))
			}
			v := violations[0]
			if strings.Count(v.Message, "9") > maxEcho || strings.Count(v.Message, "n") > maxEcho+10 || len(v.Path) > maxEcho+3 {
				t.Errorf("%d bytes are repeated: %s", len(v.Message), v.Message)
			}
			if strings.ContainsAny(v.Path+v.Message, "\x1b\u202e\x00\n") || strings.Contains(v.Path, "`") {
				t.Errorf("unclean: %q, %q", v.Path, v.Message)
			}
		})
	}
}
