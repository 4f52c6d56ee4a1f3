package strictjson

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

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
