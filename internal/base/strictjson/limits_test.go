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
		`{"at":"yesterday"}`: "at: `at` is no time as in 2006-01-02T15:04:05Z ()",
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
