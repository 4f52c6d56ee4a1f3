package web_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

func TestWhoeverHasNoTokenReadsAndDecidesNothing(t *testing.T) {
	t.Parallel()
	w, id := dryWorld(t, nil)
	r := &reviewer{world: w}
	w.web.Providers.Reviewer = r
	w.build()
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	w.person, w.anonymous = "", true
	w.build()
	writes, rows := w.fake.Script.Writes(), len(w.attempts())

	promoted := w.do("POST", "/api/v1/proposals/"+id+"/promote", "")
	w.want(promoted, 403, fault.Forbidden)
	for _, want := range []string{"needs the scope review", "claudeops token create --name NAME",
		"--scopes propose,review,read", "/sign-in"} {
		if !strings.Contains(promoted.json["detail"].(string), want) {
			t.Errorf("the refusal does not say %q: %s", want, promoted.body)
		}
	}
	// over the page, with a second refusal of the same kind, that has no row of its own within a minute
	w.read(w.submit("/proposals/"+id+"/promote", nil), "promote", 403).has("claudeops token create")
	for _, action := range []string{"merge", "approve", "close"} {
		w.read(w.submit("/pulls/fake/joe/infra/1/review", url.Values{"action": {action}}), action,
			403).has("claudeops token create")
	}
	w.page("/pulls/fake/joe/infra/1", 200).has("Reviewing needs the scope review")

	if w.fake.Script.Writes() != writes || len(r.done) != 0 {
		t.Errorf("%d writes, %d reviews", w.fake.Script.Writes()-writes, len(r.done))
	}
	if got := w.attempts(); len(got) != rows+3 || got[0].Code != fault.Forbidden {
		t.Errorf("%d rows of promotions and reviews, %+v", len(got)-rows, got[0])
	}
	if len(r.refused) != 3 || r.refused[0].Provider != "fake" || r.refused[0].Name != "infra" ||
		r.refused[0].Number != 1 ||
		r.refused[0].By.Door != record.DoorWeb || r.refused[0].By.String() != "anonymous" {
		t.Errorf("recorded %+v", r.refused)
	}
}
