package fakegitea

import (
	"fmt"
	"strings"
	"testing"
)

func TestRequestsThatAreNotAsDescribedFailTheTest(t *testing.T) {
	for name, tc := range map[string]struct{ method, path, body, want string }{
		"an unknown route":            {get, "stargazers", "", "has no route (404)"},
		"a route for people":          {post, "pulls/1/merge", `{"Do":"merge"}`, "has no route (405)"},
		"a review of our own":         {post, "pulls/1/reviews", `{"event":"APPROVED"}`, "/event"},
		"a branch with plain slashes": {get, "git/trees/a/b", "", "has no route (404)"},
		"a method that is not there":  {put, "pulls", "", "has no route (405)"},
		"an unknown query parameter":  {get, "pulls?head=x", "", `no query parameter "head"`},
		"a query parameter of a type": {get, "pulls?page=first", "", `"page" is no integer`},
		"a repeated query parameter":  {get, "pulls?page=1&page=2", "", `"page" is there 2 times`},
		"a query where there is none": {get, "branches/main?limit=1", "", `no query parameter "limit"`},
		"an unknown member":           {post, "pulls", `{"head":"x","base":"main","title":"t","draft":true}`, "draft"},
		"a member of the wrong type":  {post, "pulls", `{"head":"x","base":"main","title":5}`, "/title"},
		"label names in a creation":   {post, "pulls", `{"head":"x","base":"main","title":"t","labels":["a"]}`, "/labels/0"},
		"an unknown member of a file": {post, "contents", `{"files":[{"operation":"create","path":"x","mode":"1"}]}`, "mode"},
		"an unknown operation": {post, "contents", `{"files":[{"operation":"frob","path":"x"}]}`,
			"/files/0/operation"},
		"a body where there is none": {get, "pulls", `{}`, "takes no body"},
		"a body that is no JSON":     {post, "labels", `name=x`, "is not JSON"},
		"a rename, which we never use": {post, "contents", `{"files":[{"operation":"update","path":"x","from_path":"y"}]}`,
			"from_path"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			var reports []string
			b.s.report = func(format string, args ...any) { reports = append(reports, fmt.Sprintf(format, args...)) }
			b.do(tc.method, tc.path, tc.body)
			if all := strings.Join(reports, "\n"); !strings.Contains(all, tc.want) {
				t.Errorf("got the complaints %q, want %q", all, tc.want)
			}
		})
	}
}

func TestNullIsTheSameAsAnAbsentMember(t *testing.T) {
	b := newBench(t)
	b.want(201, "", post, "contents", commitBody("x", "x.md"))
	b.want(201, `"labels":[]`, post, "pulls",
		`{"head":"x","base":"main","title":"t","labels":null,"assignees":null,"due_date":null}`)
}

func TestTheComparisonFindsWhatDiffers(t *testing.T) {
	r := newReplay(t)
	recorded := func() heard {
		return heard{Status: 200, Headers: map[string]string{"X-Total-Count": "2"}, Body: map[string]any{
			"name": "x", "sha": strings.Repeat("a", 40), "at": "2026-01-01T00:00:00Z", "list": []any{1.0, "b"}, "none": nil,
		}}
	}
	if problems := r.compare(recorded(), recorded()); len(problems) > 0 {
		t.Fatalf("the same differs: %v", problems)
	}
	for name, change := range map[string]func(h *heard, body map[string]any){
		"another status":         func(h *heard, _ map[string]any) { h.Status = 201 },
		"a header less":          func(h *heard, _ map[string]any) { delete(h.Headers, "X-Total-Count") },
		"a header more":          func(h *heard, _ map[string]any) { h.Headers["Link"] = "<x>" },
		"a missing member":       func(_ *heard, body map[string]any) { delete(body, "none") },
		"a further member":       func(_ *heard, body map[string]any) { body["more"] = nil },
		"another value":          func(_ *heard, body map[string]any) { body["name"] = "y" },
		"another type":           func(_ *heard, body map[string]any) { body["name"] = 1.0 },
		"null for a value":       func(_ *heard, body map[string]any) { body["name"] = nil },
		"a value for null":       func(_ *heard, body map[string]any) { body["none"] = []any{} },
		"a time that means none": func(_ *heard, body map[string]any) { body["at"] = "0001-01-01T00:00:00Z" },
		"no time":                func(_ *heard, body map[string]any) { body["at"] = "yesterday" },
		"a shorter list":         func(_ *heard, body map[string]any) { body["list"] = []any{1.0} },
		"another order":          func(_ *heard, body map[string]any) { body["list"] = []any{"b", 1.0} },
		"an id that was another": func(_ *heard, body map[string]any) { body["sha"] = strings.Repeat("b", 40) },
	} {
		got := recorded()
		change(&got, got.Body.(map[string]any))
		if problems := r.compare(recorded(), got); len(problems) == 0 {
			t.Errorf("%s is not found", name)
		}
	}
}
