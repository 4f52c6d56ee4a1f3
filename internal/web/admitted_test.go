package web_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/guard"
)

// meanwhile makes something happen while the gates of a proposal run, once.
func (w *world) meanwhile(do func()) {
	head := w.flow.Proof.Head
	done := false
	w.flow.Proof.Head = func(ctx context.Context) (int64, string, error) {
		if !done {
			done = true
			do()
		}
		return head(ctx)
	}
}

func (w *world) revoke(name string) {
	w.Helper()
	if err := w.store.Access.RevokeToken(context.Background(), name); err != nil {
		w.Fatal(err)
	}
}

// refusedWithoutAWrite looks at the audit and at the provider.
func (w *world) refusedWithoutAWrite(action string) {
	w.Helper()
	if n := w.fake.Script.Writes(); n != 0 {
		w.Errorf("%d writes: %v", n, w.fake.Script.Calls())
	}
	if row := w.attempts()[0]; row.Action != action || row.Outcome != record.OutcomeRefused ||
		row.Code != fault.Unauthenticated {
		w.Errorf("the audit has %+v", row.Attempt)
	}
}

func TestATokenThatIsLostDuringAProposalOpensNothing(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(w *world){
		"revoked": func(w *world) { w.revoke("ci") },
		"expired": func(w *world) { w.advance(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, strangers)
			secret := w.token("ci", gitprovider.TierInvestigate, access.Propose)
			if name == "expired" {
				w.revoke("ci")
				secret = w.expiring("late", w.Now().Add(time.Minute), access.Propose)
			}
			w.meanwhile(func() { lose(w) })
			w.want(w.do("POST", "/api/v1/prs", request(nil), bearer(secret)), 401, fault.Unauthenticated)
			w.refusedWithoutAWrite(record.ActionCreate)
		})
	}
}

// expiring makes a token that is good until a time.
func (w *world) expiring(name string, until time.Time, scopes ...access.Scope) string {
	w.Helper()
	secret := "cops_" + strings.Repeat("e", 43)
	t := access.Token{
		ID: "id-" + name, Name: name, Hash: access.Hash(secret), MaxTier: gitprovider.TierInvestigate, Scopes: scopes,
		CreatedAt: w.Now(), ExpiresAt: until,
	}
	if err := w.store.Access.InsertToken(context.Background(), t); err != nil {
		w.Fatal(err)
	}
	return secret
}

func TestALoginThatEndsDuringAPromotionOpensNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world, cookie string){
		"its token was revoked": func(w *world, _ string) { w.revoke("ann") },
		"signed out": func(w *world, cookie string) {
			if err := w.web.Access.SignOut(context.Background(), cookie); err != nil {
				w.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, strangers)
			secret := w.token("ann", gitprovider.TierRemediate, access.AllScopes()...)
			w.flow.Authority.DryRun = true
			shown := w.do("POST", "/api/v1/prs", request(nil), bearer(secret))
			w.want(shown, 200, "")
			id := w.attempts()[0].RequestID
			w.flow.Authority.DryRun = false
			w.build()
			cookie, _, err := w.web.Access.SignIn(t.Context(), secret, "")
			if err != nil {
				t.Fatal(err)
			}
			w.meanwhile(func() { end(w, cookie) })
			w.build()
			w.fake.Script.ForgetCalls()
			w.submit("/proposals/"+id+"/promote", nil, header("Cookie", guard.CookieName+"="+cookie))
			w.refusedWithoutAWrite(record.ActionPromote)
		})
	}
}

func TestAnAgentsTokenThatIsRevokedDuringItsProposalOpensNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	secret := w.agentToken("laptop", gitprovider.TierInvestigate)
	w.meanwhile(func() { w.revoke("laptop") })
	server := w.listening(nil)
	c := began(t, server.URL, secret)
	if answer, _ := c.answer(c.send(createPR(7))); !answer.Result.IsError ||
		!strings.Contains(fmt.Sprint(answer.Result.Structured), "unauthenticated") {
		t.Errorf("answered %+v", answer)
	}
	w.refusedWithoutAWrite(record.ActionCreate)
}
