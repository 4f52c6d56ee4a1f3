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
)

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
