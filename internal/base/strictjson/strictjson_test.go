package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// proposal has every kind of field that Decode knows.
type proposal struct {
	Owner    string   `json:"repo_owner" required:"true"`
	Title    string   `json:"title" required:"true"`
	Base     *string  `json:"base_branch,omitempty"`
	Number   int      `json:"pr_number,omitempty"`
	Draft    bool     `json:"draft,omitempty"`
	Labels   []string `json:"labels,omitempty" maxItems:"100"`
	Files    []file   `json:"files,omitempty" maxItems:"100"`
	Author   person   `json:"author"`
	Matrix   [][]int  `json:"matrix,omitempty" maxItems:"100"`
	Ignored  string   `json:"-"`
	internal string
}

type file struct {
	Path    string  `json:"path" required:"true"`
	Content *string `json:"content,omitempty"`
}

type person struct {
	Name string `json:"name,omitempty"`
}

// with is a proposal's JSON with its required fields and more.
func with(more string) string {
	return `{"repo_owner":"joe","title":"Fix",` + more + `}`
}

// lines renders violations as "path: message (suggestion)".
func lines(violations []fault.Violation) []string {
	var out []string
	for _, v := range violations {
		out = append(out, fmt.Sprintf("%s: %s (%s)", v.Path, v.Message, v.Suggestion))
	}
	return out
}

func TestDecodeFillsEveryKindOfField(t *testing.T) {
	t.Parallel()
	const raw = " \r\n{\"repo_owner\":\"joe\", \"title\":\"Gr\\u00f6\\u00dfe \\ud83d\\ude80 \\u0000 日本\", " +
		"\"base_branch\":\"\"," +
		`"pr_number":-0, "draft":true, "labels":[], "files":[{"path":"checks/a.md","content":null},` +
		`{"path":"checks/b.md","content":"x"}], "author":{"name":"Joe"}, "matrix":[[1,-2],[],[9223372036854775807]]}` + "\n"
	empty, x := "", "x"
	want := proposal{
		Owner: "joe", Title: "Größe 🚀 \x00 日本", Base: &empty, Draft: true, Labels: []string{},
		Files:  []file{{Path: "checks/a.md"}, {Path: "checks/b.md", Content: &x}},
		Author: person{Name: "Joe"}, Matrix: [][]int{{1, -2}, {}, {9223372036854775807}},
	}
	got := proposal{Title: "old", Number: 7, Ignored: "old", internal: "old"}
	if violations := Decode([]byte(raw), &got, Options{}); violations != nil {
		t.Fatalf("violations: %v", lines(violations))
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(proposal{})); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
}

func TestDecodeSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	known := "leave it out; known fields are `repo_owner`, `title`, `base_branch`, `pr_number`, `draft`, `labels`, " +
		"`files`, `author`, `matrix`"
	missing := []string{
		"repo_owner: `repo_owner` is required but missing (add `repo_owner`)",
		"title: `title` is required but missing (add `title`)",
	}
	tests := []struct {
		name, raw string
		want      []string
	}{
		{"empty input lacks the required fields", "", missing},
		{"white space is empty input", " \n\t", missing},
		{"an empty object lacks the required fields", "{}", missing},
		{"null is not an object", "null", []string{": the arguments must be an object, not null (give an object)"}},
		{"an array is not an object", `[{"title":1}]`,
			[]string{": the arguments must be an object, not an array (give an object)"}},
		{"a string is not an object", `"{}"`, []string{": the arguments must be an object, not a string (give an object)"}},
		{"a field of a nested object is missing", with(`"files":[{"path":"a"},{}]`), []string{
			"files[1].path: `files[1].path` is required but missing (add `files[1].path`)"}},
		{"a string is needed, not a number", with(`"author":{"name":3}`), []string{
			"author.name: `author.name` must be a string, not a number (give a string)"}},
		{"a string is needed, not an object", with(`"base_branch":{"a":[1,{}]}`), []string{
			"base_branch: `base_branch` must be a string, not an object (give a string)"}},
		{"an integer is needed, not a string", with(`"pr_number":"7"`), []string{
			"pr_number: `pr_number` must be an integer, not a string (give an integer)"}},
		{"a boolean is needed, not a string", with(`"draft":"true"`), []string{
			"draft: `draft` must be true or false, not a string (give true or false)"}},
		{"an array is needed, not a string", with(`"labels":"a"`), []string{
			"labels: `labels` must be an array, not a string (give an array)"}},
		{"an object is needed, not a boolean", with(`"author":true`), []string{
			"author: `author` must be an object, not a boolean (give an object)"}},
		{"elements are checked", with(`"labels":["a",null,["b"]]`), []string{
			"labels[1]: `labels[1]` must not be null (leave it out or give a string)",
			"labels[2]: `labels[2]` must be a string, not an array (give a string)"}},
		{"too many elements", with(`"matrix":[[],[` + strings.Repeat("1,", 200) + `"x"],[]]`), []string{
			"matrix[1]: `matrix[1]` has 201 entries; at most 100 are accepted (send fewer at once)"}},
		{"null for a slice", with(`"labels":null`), []string{
			"labels: `labels` must not be null (leave it out or give an array)"}},
		{"null for an integer", with(`"pr_number":null`), []string{
			"pr_number: `pr_number` must not be null (leave it out or give an integer)"}},
		{"a fraction", with(`"pr_number":1.5`), []string{
			"pr_number: `pr_number` must be an integer without fraction and exponent, not 1.5 (write it with digits only)"}},
		{"an exponent", with(`"pr_number":1e3`), []string{
			"pr_number: `pr_number` must be an integer without fraction and exponent, not 1e3 (write it with digits only)"}},
		{"a huge exponent", with(`"pr_number":1e400`), []string{
			"pr_number: `pr_number` must be an integer without fraction and exponent, not 1e400 (write it with digits only)"}},
		{"a number beyond 64 bits", with(`"pr_number":12345678901234567890`), []string{
			"pr_number: `pr_number` is out of range: 12345678901234567890 (give an integer that fits 64 bits)"}},
		{"a field in another case", with(`"Draft":true`), []string{
			"Draft: `Draft` is not a known field (did you mean `draft`?)"}},
		{"a field in camel case", with(`"baseBranch":"x"`), []string{
			"baseBranch: `baseBranch` is not a known field (did you mean `base_branch`?)"}},
		{"a letter is missing", with(`"lables":[]`), []string{
			"lables: `lables` is not a known field (did you mean `labels`?)"}},
		{"a letter is too many", with(`"filess":[]`), []string{
			"filess: `filess` is not a known field (did you mean `files`?)"}},
		{"a letter is wrong", with(`"drift":true`), []string{
			"drift: `drift` is not a known field (did you mean `draft`?)"}},
		{"a name that nothing resembles", with(`"tier":3`), []string{"tier: `tier` is not a known field (" + known + ")"}},
		{"a field that only the program sees", with(`"internal":"x"`), []string{
			"internal: `internal` is not a known field (" + known + ")"}},
		{"an unknown field in an element", with(`"files":[{"path":"a","Content":"x"}]`), []string{
			"files[0].Content: `files[0].Content` is not a known field (did you mean `content`?)"}},
		{"a field given twice", with(`"title":"Other"`), []string{
			"title: `title` is given more than once (give it once)"}},
		{"a field given twice, once with an escape", with(`"\u0074itle":1`), []string{
			"title: `title` is given more than once (give it once)"}},
		{"a value after the end", with(`"draft":true`) + ` {}`, []string{
			": the arguments must end after the JSON object: more follows byte offset 47 (send one JSON object and nothing after it)"}},
		{"rubbish after the end", with(`"draft":true`) + `}`, []string{
			": the arguments must end after the JSON object: more follows byte offset 47 (send one JSON object and nothing after it)"}},
		{"half a surrogate pair", with(`"base_branch":"a\ud800b"`), []string{
			"base_branch: `base_branch` holds half of a surrogate pair at byte offset 50 (write the whole pair, or the " +
				"character itself)"}},
		{"a surrogate pair the wrong way round", with(`"base_branch":"\ude80\ud83d"`), []string{
			"base_branch: `base_branch` holds half of a surrogate pair at byte offset 49 (write the whole pair, or the " +
				"character itself)"}},
		{"invalid UTF-8 in a value", with("\"base_branch\":\"日\xff\""), []string{
			"base_branch: `base_branch` holds invalid UTF-8 at byte offset 52 (send it as UTF-8)"}},
		{"invalid UTF-8 in a name", with("\"bas\xe9\":\"x\""), []string{
			": a name in the arguments holds invalid UTF-8 at byte offset 38 (send it as UTF-8)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dst := proposal{Title: "untouched"}
			violations := Decode([]byte(tt.raw), &dst, Options{})
			if diff := cmp.Diff(tt.want, lines(violations)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(proposal{Title: "untouched"}, dst, cmp.AllowUnexported(proposal{})); diff != "" {
				t.Errorf("dst changed:\n%s", diff)
			}
			for _, v := range violations {
				if v.Code != fault.InvalidArgument {
					t.Errorf("code %s, want invalid_argument", v.Code)
				}
			}
		})
	}
}

func TestDecodeListsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	const raw = `{"Title":1,"draft":"no","files":[{"path":1},{"content":2,"x":[]}],"pr_number":1.5,"draft":false}`
	want := []string{"Title", "draft", "files[0].path", "files[1].content", "files[1].x", "files[1].path", "pr_number",
		"draft", "repo_owner", "title"}
	var paths []string
	for _, v := range Decode([]byte(raw), &proposal{}, Options{}) {
		paths = append(paths, v.Path)
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestOptionsVaryNamesAndNUL(t *testing.T) {
	t.Parallel()
	got := lines(Decode([]byte("[]"), &proposal{}, Options{What: "policy answers"}))
	if want := []string{": the policy answers must be an object, not an array (give an object)"}; !cmp.Equal(want, got) {
		t.Errorf("violations: %v", got)
	}
	got = lines(Decode([]byte(with(`"base_branch":"a\u0000"`)), &proposal{}, Options{RefuseNUL: true}))
	want := []string{"base_branch: `base_branch` holds a NUL character at byte offset 50 (remove it)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func TestRequiredPointersMustNotBeNull(t *testing.T) {
	t.Parallel()
	var dst struct {
		Reason *string `json:"reason" required:"true"`
	}
	got := lines(Decode([]byte(`{"reason":null}`), &dst, Options{}))
	if want := []string{"reason: `reason` must not be null (leave it out or give a string)"}; !cmp.Equal(want, got) {
		t.Errorf("violations: %v", got)
	}
}

func TestSlicesMayBeNullWhereTheirFieldSaysSo(t *testing.T) {
	t.Parallel()
	var dst struct {
		Types []string `json:"types" nullable:"true" maxItems:"2"`
		Other []string `json:"other"`
	}
	if got := lines(Decode([]byte(`{"types":null,"other":["a"]}`), &dst, Options{})); len(got) > 0 || dst.Types != nil ||
		len(dst.Other) != 1 {
		t.Errorf("violations: %v, decoded %+v", got, dst)
	}
	if got := lines(Decode([]byte(`{"types":[null],"other":null}`), &dst, Options{})); len(got) != 2 {
		t.Errorf("violations: %v", got)
	}
}

func TestDecodePanicsOnMistakesOfTheProgram(t *testing.T) {
	t.Parallel()
	var number int
	tests := []struct {
		name string
		dst  any
	}{
		{"no pointer", proposal{}},
		{"a nil pointer", (*proposal)(nil)},
		{"a pointer to something else", &number},
		{"a field of an unknown kind", &struct {
			A float64 `json:"a"`
		}{}},
		{"a field without a name", &struct{ A string }{}},
		{"a bound that is not a number", &struct {
			A []string `json:"a" maxItems:"many"`
		}{}},
		{"a bound of what is not a slice", &struct {
			A string `json:"a" maxItems:"3"`
		}{}},
		{"an embedded struct", &struct {
			person `json:"person"`
			Embedded
		}{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			Decode([]byte(`{"a":1}`), tt.dst, Options{})
		})
	}
}

// Embedded is a struct to embed.
type Embedded struct {
	B string `json:"b"`
}

func TestDecodeReadsABooleanThatMayBeMissing(t *testing.T) {
	type switched struct {
		On *bool `json:"on,omitempty"`
	}
	for raw, want := range map[string]string{`{}`: "unset", `{"on":null}`: "unset", `{"on":true}`: "true",
		`{"on":false}`: "false", `{"on":"no"}`: "refused", `{"on":1}`: "refused"} {
		var s switched
		got := "unset"
		switch violations := Decode([]byte(raw), &s, Options{}); {
		case len(violations) > 0:
			got = "refused"
		case s.On != nil:
			got = fmt.Sprint(*s.On)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

// JSON Schema takes a whole number with a fraction of zeros for an integer.
func TestAFractionOfZerosIsAnInteger(t *testing.T) {
	for digits, want := range map[string]int{"7.0": 7, "12.000": 12, "3": 3} {
		var got proposal
		if violations := Decode([]byte(with(`"pr_number":`+digits)), &got, Options{}); len(violations) != 0 ||
			got.Number != want {
			t.Errorf("%s: %d, %v", digits, got.Number, violations)
		}
	}
}

// mebibyte is the size of a hostile document.
const mebibyte = 1 << 20

// hostile is a shape of JSON whose only purpose is to cost its reader time.
type hostile struct{ name, raw string }

// hostileShapes are documents of about size bytes each. Some break no rule but that the program asked for something
// else.
func hostileShapes(size int) []hostile {
	times := func(s string) string { return strings.TrimSuffix(strings.Repeat(s, size/len(s)), ",") }
	return []hostile{
		{"unknown keys", "{" + unknownKeys(size/10) + "}"},
		{"as many unknown keys as are listed, and more", "{" + unknownKeys(maxViolations) + `,"labels":[` + times(`"",`) +
			"]}"},
		{"keys like a known one", "{" + times(`"titel":1,`) + "}"},
		{"one key again and again", "{" + times(`"title":"",`) + "}"},
		{"a long key", `{"` + times("k") + `":1}`},
		{"long keys", "{" + times(`"`+strings.Repeat("k", size/64)+`":1,`) + "}"},
		{"long keys of escapes", "{" + times(`"`+strings.Repeat(`\u006b`, size/400)+`":1,`) + "}"},
		{"brackets", times("[")},
		{"objects in objects", times(`{"a":`)},
		{"nested in an unknown key", with(`"x":` + strings.Repeat("[", maxDepth-2) + times("[],") +
			strings.Repeat("]", maxDepth-2))},
		{"empty arrays in an unknown key", with(`"x":[` + times("[],") + "]")},
		{"small numbers in an unknown key", with(`"x":[` + times("1,") + "]")},
		{"empty strings in an unknown key", with(`"x":[` + times(`"",`) + "]")},
		{"a long number", with(`"pr_number":` + times("9"))},
		{"a long fraction", with(`"pr_number":0.` + times("9"))},
		{"long numbers", with(`"matrix":[[` + times(strings.Repeat("9", size/64)+",") + "]]")},
		{"small numbers", with(`"matrix":[[` + times("1,") + "]]")},
		{"empty arrays", with(`"matrix":[` + times("[],") + "]")},
		{"empty strings", with(`"labels":[` + times(`"",`) + "]")},
		{"empty objects", with(`"files":[` + times("{},") + "]")},
		{"small objects", with(`"files":[` + times(`{"path":""},`) + "]")},
		{"wrong elements", with(`"labels":[` + times("1,") + "]")},
		{"nulls", with(`"files":[` + times("null,") + "]")},
		{"escapes", with(`"base_branch":"` + times(`\u0041`) + `"`)},
		{"short escapes", with(`"base_branch":"` + times(`\n`) + `"`)},
		{"surrogate pairs", with(`"base_branch":"` + times(`\ud83d\ude80`) + `"`)},
		{"half a surrogate pair at the end", with(`"base_branch":"` + times(`\u0041`) + `\ud800"`)},
		{"invalid UTF-8 at the end", with(`"base_branch":"` + times("a") + "\xff\"")},
		{"text that never ends", with(`"base_branch":"` + times("a"))},
		{"backslashes that never end", with(`"base_branch":"` + times(`\\`))},
		{"white space", times(" ") + "{}"},
		{"rubbish", times("x")},
	}
}

// unknownKeys are the members of an object with n names, all unknown and all different.
func unknownKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%05x":1,`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// BenchmarkDecodeHostile measures a mebibyte of each shape; docs/explain/benchmarks.md says what it may cost.
func BenchmarkDecodeHostile(b *testing.B) {
	for _, shape := range hostileShapes(mebibyte) {
		b.Run(strings.ReplaceAll(shape.name, " ", "_"), func(b *testing.B) {
			raw := []byte(shape.raw)
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				Decode(raw, &proposal{}, Options{})
			}
		})
	}
}

func TestTheSearchEndsAtTheViolationAfterTheLastThatIsListed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"unknown keys", "keys like a known one", "one key again and again", "wrong elements",
		"empty objects"} {
		for _, shape := range hostileShapes(mebibyte) {
			if shape.name != name {
				continue
			}
			d := newDecoder([]byte(shape.raw), Options{What: "arguments"})
			err := d.document(reflect.ValueOf(new(proposal)).Elem())
			if !errors.Is(err, errEnough) || len(d.violations) != maxViolations+1 {
				t.Errorf("%s: %d violations, %v", name, len(d.violations), err)
			}
			if read := d.in.InputOffset(); read > 4096 {
				t.Errorf("%s: %d bytes were read until the search ended", name, read)
			}
		}
	}
}

// Allocations are work that can be counted, unlike time: what a document costs must not grow with how many values it
// has.
func TestHostileShapesAllocateLittle(t *testing.T) {
	for _, shape := range hostileShapes(256 << 10) {
		raw := []byte(shape.raw)
		if got := testing.AllocsPerRun(2, func() { Decode(raw, &proposal{}, Options{}) }); got > 1500 {
			t.Errorf("%s: %.0f allocations", shape.name, got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "null", "[]", with(`"draft":true`),
		with(`"files":[{"path":"a","content":null}],"labels":["\ud83d\ude80"],"matrix":[[1],[]]`),
		with(`"base_branch":null,"pr_number":-0`), with(`"pr_number":1e3`), with(`"title":"b","Title":1`),
		with(`"base_branch":"\ud800"`), with("\"x\xff\":\"\\u0000\""), `{"a":[[[[{}]]]]}`, with(`"draft":true`) + "x",
		strings.Repeat(`{"a":[`, 40),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var got proposal
		violations := Decode(raw, &got, Options{})
		if len(violations) > maxViolations+1 {
			t.Fatalf("%d violations", len(violations))
		}
		for _, v := range violations {
			if v.Message == "" || v.Suggestion == "" || !utf8.ValidString(v.Path+v.Message) || len(v.Message) > 1500 {
				t.Errorf("poor violation %+v", v)
			}
		}
		if violations != nil {
			if !cmp.Equal(got, proposal{}, cmp.AllowUnexported(proposal{})) {
				t.Errorf("dst was changed by refused input: %+v", got)
			}
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("accepted %q, which is not JSON", raw)
		}
		var want proposal
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatalf("accepted %q, encoding/json says %v", raw, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(proposal{})); diff != "" {
			t.Errorf("encoding/json differs (-want +got):\n%s", diff)
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var second proposal
		if violations := Decode(again, &second, Options{}); violations != nil {
			t.Errorf("refused when encoded again: %s: %v", again, lines(violations))
		}
	})
}
