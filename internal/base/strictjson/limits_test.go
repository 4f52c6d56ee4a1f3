package strictjson

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type bounded struct {
	Title string   `json:"title" required:"true" minLength:"1" maxLength:"5" fix:"shorten it"`
	Body  string   `json:"body,omitempty" maxBytes:"4"`
	Name  string   `json:"name,omitempty" minLength:"2" pattern:"^[a-z]+$"`
	Kind  string   `json:"kind,omitempty" enum:"a,b"`
	Tags  []string `json:"tags,omitempty" enum:"x,y"`
	Parts []part   `json:"parts" required:"true" minItems:"1"`
	Text  *string  `json:"text,omitempty" maxLength:"1"`
}

type part struct {
	Action string `json:"action" required:"true" enum:"create,delete"`
}

func TestLimits(t *testing.T) {
	t.Parallel()
	long := "ab"
	good := func() bounded { return bounded{Title: "ünï", Parts: []part{{"create"}}} }
	tests := []struct {
		name   string
		change func(*bounded)
		want   []string
	}{
		{"within", func(*bounded) {}, nil},
		{"required text is empty", func(b *bounded) { b.Title = "" }, []string{"title: `title` is empty (shorten it)"}},
		{"characters are counted, not bytes", func(b *bounded) { b.Title = "üüüüü" }, nil},
		{"a text too long", func(b *bounded) { b.Title = "üüüüüü" }, []string{
			"title: `title` has 6 characters; at most 5 are accepted (shorten it)"}},
		{"bytes", func(b *bounded) { b.Body = "üüü" }, []string{"body: `body` has 6 bytes; at most 4 are accepted ()"}},
		{"a text too short", func(b *bounded) { b.Name = "a" },
			[]string{"name: `name` has 1 characters; at least 2 are needed ()"}},
		{"a pattern", func(b *bounded) { b.Name = "A1" }, []string{"name: `name` must match ^[a-z]+$ ()"}},
		{"a value unknown", func(b *bounded) { b.Kind = "c" }, []string{"kind: `kind` is not one of a, b ()"}},
		{"an element unknown", func(b *bounded) { b.Tags = []string{"x", "z"} },
			[]string{"tags[1]: `tags[1]` is not one of x, y ()"}},
		{"too few", func(b *bounded) { b.Parts = []part{} }, []string{"parts: `parts` is empty ()"}},
		{"within an element", func(b *bounded) { b.Parts = []part{{"create"}, {"x"}} }, []string{
			"parts[1].action: `parts[1].action` is not one of create, delete ()"}},
		{"behind a pointer", func(b *bounded) { b.Text = &long },
			[]string{"text: `text` has 2 characters; at most 1 are accepted ()"}},
		{"all at once, in order", func(b *bounded) { b.Parts, b.Title, b.Kind = nil, "", "c" }, []string{
			"title: `title` is empty (shorten it)", "kind: `kind` is not one of a, b ()", "parts: `parts` is empty ()"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := good()
			tt.change(&b)
			if diff := cmp.Diff(tt.want, lines(Limits(&b))); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALimitIsReadFromItsTag(t *testing.T) {
	t.Parallel()
	if got := Limit(reflect.TypeFor[bounded](), "title", "maxLength"); got != 5 {
		t.Errorf("got %d", got)
	}
	defer func() {
		if p := recover(); p == nil || !strings.Contains(p.(string), "no field") {
			t.Errorf("panic %v", p)
		}
	}()
	Limit(reflect.TypeFor[bounded](), "nothing", "maxLength")
}

func TestDecodeKeepsToTheLimitsOfNumbers(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][]string{
		`{}`: nil, `{"n":1}`: nil, `{"n":3}`: nil,
		`{"n":0}`:   {"n: `n` must be at least 1 (count from 1)"},
		`{"n":-1}`:  {"n: `n` must be at least 1 (count from 1)"},
		`{"n":4}`:   {"n: `n` must be at most 3 (count from 1)"},
		`{"n":"4"}`: {"n: `n` must be an integer, not a string (give an integer)"},
		`{"n":0.5}`: {"n: `n` must be an integer without fraction and exponent, not 0.5 (write it with digits only)"},
	} {
		var dst struct {
			N int `json:"n,omitempty" minimum:"1" maximum:"3" fix:"count from 1"`
		}
		if diff := cmp.Diff(want, lines(Decode([]byte(raw), &dst, Options{}))); diff != "" {
			t.Errorf("%s: violations (-want +got):\n%s", raw, diff)
		}
	}
}

func TestDecodeReadsTimes(t *testing.T) {
	t.Parallel()
	var dst struct {
		At time.Time `json:"at,omitempty"`
	}
	if violations := Decode([]byte(`{"at":"2026-11-20T12:00:00+01:00"}`), &dst, Options{}); len(violations) > 0 ||
		dst.At.UTC().Hour() != 11 {
		t.Errorf("%v, %v", dst.At, violations)
	}
	for raw, want := range map[string]string{
		`{"at":"yesterday"}`: "at: `at` is not a time such as 2006-01-02T15:04:05Z ()",
		`{"at":1}`:           "at: `at` must be a time, not a number (give a time)",
	} {
		if diff := cmp.Diff([]string{want}, lines(Decode([]byte(raw), &dst, Options{}))); diff != "" {
			t.Errorf("%s: violations (-want +got):\n%s", raw, diff)
		}
	}
}

func TestDecodeWithinLimitsSaysAllAtOnceAndNothingTwice(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][]string{
		`{"title":"a","parts":[{"action":"create"}]}`: nil,
		`{"title":"abcdef","kind":"c","x":1,"parts":[{"action":"y"},7,{}]}`: {"x", "parts[1]", "parts[2].action", "title",
			"kind", "parts[0].action"},
		`{}`:        {"title", "parts"},
		`{"title":`: {""},
	} {
		dst := bounded{Name: "untouched"}
		var paths []string
		for _, v := range DecodeWithinLimits([]byte(raw), &dst, Options{}) {
			paths = append(paths, v.Path)
		}
		if diff := cmp.Diff(want, paths); diff != "" {
			t.Errorf("%s: paths (-want +got):\n%s", raw, diff)
		}
		if replaced := dst.Name != "untouched"; replaced != (want == nil) {
			t.Errorf("%s: replaced %t", raw, replaced)
		}
	}
}

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
