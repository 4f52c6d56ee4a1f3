package web_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Who has to sign in again is led back to the change, and what they wrote is in its form.
func TestWhatWasWrittenOutlivesTheSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	r := &reviewer{world: w}
	w.web.Providers.Reviewer = r
	w.build()
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	const at = "/pulls/fake/joe/infra/1"
	gone := header("Cookie", "claudeops_session="+strings.Repeat("x", 43))
	for _, one := range []struct {
		name string
		form url.Values
		back []string // of the address that follows signing in
	}{
		{"a comment", url.Values{"action": {"comment"}, "comment": {"Mind the ümlaut & the rest"}},
			[]string{"say=comment", "words=Mind+the"}},
		{"side by side", url.Values{"action": {"approve"}, "comment": {"good"}, "view": {"split"}, "part": {"2"}},
			[]string{"say=approve", "view=split", "part=2"}},
		{"too long", url.Values{"action": {"comment"}, "comment": {strings.Repeat("word ", 500)}}, nil},
		{"unknown", url.Values{"action": {"push"}, "comment": {"x"}}, nil},
	} {
		page := w.read(w.submit(at+"/review", one.form, gone), one.name, 401)
		page.has("Your sign-in has ended", strings.TrimSpace(one.form.Get("comment")))
		next := ""
		for _, f := range page.find("input") {
			if attr(f, "name") == "next" {
				next = attr(f, "value")
			}
		}
		if !strings.HasPrefix(next, at) || one.back == nil && next != at {
			t.Errorf("%s: goes on at %q", one.name, next)
		}
		for _, want := range one.back {
			if !strings.Contains(next, want) {
				t.Errorf("%s: %q lacks %s", one.name, next, want)
			}
		}
	}
	ann := w.signIn(w.token("ann", gitprovider.TierRemediate, "read", "review"))
	w.page(at+"?say=comment&words=Mind+the+rest", 200, with(ann)).has("Nothing was sent", "Mind the rest")
	w.page(at+"?say=merge&words=x", 200, with(w.signIn(w.token("eve", 2, "read")))).has("You may look")
}
