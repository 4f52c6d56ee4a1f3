package fakegitea

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestLabellingTakesIDsOrNames(t *testing.T) {
	for name, tc := range map[string]struct {
		method, body string
		status       int
		want         []string
	}{
		"names": {post, `{"labels":["claude-ops","automated"]}`, 200,
			[]string{"automated", "claude-ops"}},
		"ids":                               {post, `{"labels":[2]}`, 200, []string{"automated"}},
		"what is there already stays":       {post, `{"labels":[]}`, 200, nil},
		"unknown names are dropped":         {post, `{"labels":["nope","automated"]}`, 200, []string{"automated"}},
		"unknown ids are dropped":           {post, `{"labels":[4711]}`, 200, nil},
		"letter case counts":                {post, `{"labels":["AUTOMATED"]}`, 200, nil},
		"a name stands for all of its kind": {post, `{"labels":["twice"]}`, 200, []string{"twice", "twice"}},
		"a mixture is refused":              {post, `{"labels":["automated",2]}`, 400, nil},
		"replacing":                         {put, `{"labels":["automated"]}`, 200, []string{"automated"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.s.Configure(b.ref, func(s *Settings) { s.Labels = append(s.Labels, Label{Name: "twice"}, Label{Name: "twice"}) })
			b.propose("x")
			if tc.method == put {
				b.want(200, "claude-ops", post, "issues/1/labels", `{"labels":["claude-ops"]}`)
			}
			b.want(tc.status, "", tc.method, "issues/1/labels", tc.body)
			var got []string
			for _, label := range into[[]labelJSON](b, b.do(get, "issues/1/labels", "")) {
				got = append(got, label.Name)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestPagesAreThirtyByDefaultAndFiftyAtMost(t *testing.T) {
	b := newBench(t)
	b.propose("x")
	b.s.Configure(b.ref, func(s *Settings) { s.Delays.LaxParallel = 60 })
	for range 59 {
		b.want(201, "", post, "pulls", pullBody("x"))
	}
	for path, want := range map[string]int{
		"pulls": 30, "pulls?limit=1000": 50, "pulls?limit=0": 30, "pulls?page=2": 30, "pulls?page=2&limit=50": 10,
		"pulls?page=3": 0, "pulls?limit=7&page=2": 7,
	} {
		got := b.do(get, path, "")
		if list := into[[]pullJSON](b, got); len(list) != want || got.header.Get("X-Total-Count") != "60" {
			t.Errorf("%s: %d of %s, want %d of 60", path, len(list), got.header.Get("X-Total-Count"), want)
		}
		if want == 0 && strings.Contains(got.header.Get("Link"), `rel="next"`) {
			t.Errorf("%s: there is a next page after the last: %s", path, got.header.Get("Link"))
		}
	}
	for i := range 60 {
		b.s.Configure(b.ref, func(s *Settings) { s.Labels = append(s.Labels, Label{Name: fmt.Sprintf("l%d", i)}) })
	}
	for query, want := range map[string]int{"limit=3": 62, "page=1": 30, "page=1&limit=1000": 50, "page=2&limit=3": 3} {
		if list := into[[]labelJSON](b, b.do(get, "labels?"+query, "")); len(list) != want {
			t.Errorf("labels?%s: %d labels, want %d", query, len(list), want)
		}
	}
}
