package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

func TestStatusesOfAProposal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	a := w.do("POST", "/api/v1/prs", request(nil))
	w.want(a, 201, "")
	if a.json["number"] != float64(1) || w.attempts()[0].Door != record.DoorREST || w.attempts()[0].Caller != "somebody" {
		t.Errorf("got %s, recorded %+v", a.body, w.attempts()[0])
	}
	again := w.do("POST", "/api/v1/prs", request(nil))
	w.want(again, 200, "")
	if again.json["reused"] != true {
		t.Errorf("got %s", again.body)
	}
	dry := newWorld(t, func(w *world) { w.flow.Authority.DryRun = true })
	a = dry.do("POST", "/api/v1/prs", request(nil))
	dry.want(a, 200, "")
	if a.json["dry_run"] != true || dry.fake.Script.Writes() != 0 {
		t.Errorf("got %s", a.body)
	}
}

func TestABodyThatCannotBeReadIsRefusedAndRecorded(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		body   string
		edits  []edit
		status int
	}{
		"no content type":     {request(nil), []edit{drop("Content-Type")}, 415},
		"a form":              {request(nil), []edit{set("Content-Type", "application/x-www-form-urlencoded")}, 415},
		"plain text":          {request(nil), []edit{set("Content-Type", "text/plain")}, 415},
		"two content types":   {request(nil), []edit{header("Content-Type", "text/plain")}, 415},
		"another charset":     {request(nil), []edit{set("Content-Type", "application/json; charset=utf-16")}, 415},
		"gzip":                {request(nil), []edit{header("Content-Encoding", "gzip")}, 415},
		"too large":           {`{"title":"` + strings.Repeat("x", 4<<20) + `"}`, nil, 413},
		"no JSON":             {`{"title":`, nil, 400},
		"half of a surrogate": {strings.Replace(request(nil), `Disks`, `\ud800`, 1), nil, 400},
		"two objects":         {request(nil) + request(nil), nil, 400},
		"an array":            {`[` + request(nil) + `]`, nil, 400},
		"deep":                {strings.Repeat(`{"a":`, 10000), nil, 400},
		"an empty key":        {request(nil), []edit{header("Idempotency-Key", "")}, 400},
		"two keys": {request(nil), []edit{header("Idempotency-Key", "a"), header("Idempotency-Key", "b")},
			400},
		"a long key":              {request(nil), []edit{header("Idempotency-Key", strings.Repeat("k", 256))}, 400},
		"a key with a space":      {request(nil), []edit{header("Idempotency-Key", "a b")}, 400},
		"a key that is not ASCII": {request(nil), []edit{header("Idempotency-Key", "ä")}, 400},
	}
	w := newWorld(t, nil)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := len(w.attempts())
			a := w.do("POST", "/api/v1/prs", c.body, c.edits...)
			w.want(a, c.status, fault.InvalidArgument)
			rows := w.attempts()
			if len(rows) != before+1 || rows[0].Code != fault.InvalidArgument || rows[0].Door != record.DoorREST ||
				w.fake.Script.Writes() != 0 {
				t.Errorf("%d rows more, %d writes, the last is %+v", len(rows)-before, w.fake.Script.Writes(), rows[0])
			}
		})
	}
	w.want(w.do("POST", "/api/v1/prs", request(nil), set("Content-Type", "Application/JSON; charset=UTF-8")), 201, "")
}

func TestRefusalsSayWhenToComeBackAndWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	other := request(files(file("checks/inodes.md", "create", "# Other\n")))
	a := w.do("POST", "/api/v1/prs", other)
	w.want(a, 409, fault.DuplicatePR)
	if existing, _ := a.json["existing_pr"].(map[string]any); existing["number"] != float64(1) ||
		existing["title"] == nil || existing["untrusted"] != fault.UntrustedTitle {
		t.Errorf("got %s", a.body)
	}
	w.fake.World(t, gitprovider.RepoRef{Owner: "joe", Name: "infra"}).Close(1)
	a = w.do("POST", "/api/v1/prs", other)
	w.want(a, 429, fault.CooldownActive)
	if a.Header.Get("Retry-After") != "86400" || a.json["retry_after_seconds"] != float64(86400) ||
		a.json["retryable"] != true {
		t.Errorf("Retry-After %q: %s", a.Header.Get("Retry-After"), a.body)
	}
}

func TestAnIdempotencyKeyAnswersTheSameAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.tokens = []string{"first-token-for-tests", "second-token-for-tests"} })
	post := func(token, key, body string) reply {
		return w.do("POST", "/api/v1/prs", body, bearer(token), header("Idempotency-Key", key))
	}
	const ann, joe = "first-token-for-tests", "second-token-for-tests"
	first := post(ann, "k1", request(nil))
	w.want(first, 201, "")
	again := post(ann, "k1", request(nil))
	w.want(again, 201, "")
	if string(again.body) != string(first.body) || again.Header.Get("Idempotency-Replayed") != "true" ||
		len(w.attempts()) != 1 {
		t.Errorf("got %s after %s, %d attempts", again.body, first.body, len(w.attempts()))
	}
	w.want(post(ann, "k1", request(map[string]any{"title": "Another"})), 409, fault.Conflict)
	if rows := w.attempts(); rows[0].Code != fault.Conflict {
		t.Errorf("the conflict is not recorded: %+v", rows[0])
	}
	w.want(post(joe, "k1", request(nil)), 200, "") // another caller's key is another key; the change is reused
	w.advance(24 * time.Hour)
	w.want(post(ann, "k1", request(nil)), 200, "")
}

func TestARefusalIsNotKeptForItsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	key := header("Idempotency-Key", "k")
	w.fake.Script.FailBefore(forgetest.MethodSnapshot, fault.New(fault.UpstreamError, "down"))
	w.want(w.do("POST", "/api/v1/prs", request(nil), key), 502, fault.UpstreamError)
	w.want(w.do("POST", "/api/v1/prs", request(nil), key), 201, "")
}

func TestATokensTierOnlyLowers(t *testing.T) {
	t.Parallel()
	cases := []struct {
		own, ceiling gitprovider.Tier
		code         fault.Code
		recorded     gitprovider.Tier
	}{
		{2, 1, fault.TierDenied, 1}, {2, 2, "", 2}, {2, 3, "", 2}, {1, 3, fault.TierDenied, 1}, {3, 2, "", 2},
	}
	for _, c := range cases {
		w := newWorld(t, func(w *world) { w.flow.Authority.Tier = c.own })
		token := w.token("ci", c.ceiling, access.Propose)
		a := w.do("POST", "/api/v1/prs", request(nil), bearer(token))
		if a.code() != string(c.code) || w.attempts()[0].Tier != c.recorded || w.attempts()[0].Caller != "ci" {
			t.Errorf("server %d, token %d: %s, recorded %+v", c.own, c.ceiling, a.body, w.attempts()[0])
		}
	}
}

func TestADryRunIsPromoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.flow.Authority.DryRun = true })
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 200, "")
	id := w.attempts()[0].RequestID
	w.signedIn()
	w.want(w.do("POST", "/api/v1/proposals/"+id+"/promote", ""), 403, fault.ReadOnly)
	w.flow.Authority.DryRun = false
	w.build()
	a := w.do("POST", "/api/v1/proposals/"+id+"/promote", "")
	w.want(a, 201, "")
	if row := w.attempts()[0]; row.Action != record.ActionPromote || row.Outcome != record.OutcomeOpened {
		t.Errorf("recorded %+v", row)
	}
	w.want(w.do("POST", "/api/v1/proposals/"+id+"/promote", ""), 200, "")
	w.want(w.do("POST", "/api/v1/proposals/nothing/promote", ""), 404, fault.NotFound)

	proposer := w.token("proposer", 2, access.Propose, access.Read)
	before := len(w.attempts())
	w.want(w.do("POST", "/api/v1/proposals/"+id+"/promote", "", bearer(proposer)), 403, fault.Forbidden)
	if len(w.attempts()) != before+1 || w.attempts()[0].Code != fault.Forbidden {
		t.Errorf("the attempt of a caller who may not is not recorded")
	}
}

func TestNoAnswerHoldsATokenOfOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, a := range []reply{
		w.do("POST", "/api/v1/prs", request(map[string]any{"title": ownToken})),
		w.do("POST", "/api/v1/prs", request(files(file("checks/"+ownToken+".md", "create", "x\n")))),
		w.get("/api/v1/proposals"), w.get("/api/v1/audit"), w.get("/" + ownToken),
		w.get("/api/v1/proposals?" + ownToken + "=1"),
		w.get("/api/v1/proposals/" + ownToken),
	} {
		var text any
		if err := json.Unmarshal(a.body, &text); err != nil || strings.Contains(string(a.body), ownToken) {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	}
}

func TestOnlySoManyProposalsAreJudgedAtOnceAndReadingGoesOn(t *testing.T) {
	t.Parallel()
	const token = "a-token-for-these-tests"
	w := newWorld(t, func(w *world) { w.tokens = []string{token} })
	w.build()
	const others, most = 12, 8
	entered, release := make(chan struct{}, others), make(chan struct{})
	w.instead(prflow.ToolCreatePR, func(context.Context, operation.Call) (any, error) {
		entered <- struct{}{}
		<-release
		return prflow.CreateResult{}, nil
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		atOnce(others, func(int) { w.do("POST", "/api/v1/prs", "{}", bearer(token)) })
	}()
	for range most {
		<-entered
	}
	w.want(w.get("/api/v1/proposals", bearer(token)), 200, "")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w.want(w.do("POST", "/api/v1/prs", "{}", bearer(token), func(r *http.Request) { *r = *r.WithContext(gone) }), 504,
		fault.Timeout)
	if rows := w.attempts(); len(rows) != 1 || rows[0].Code != fault.Timeout {
		t.Errorf("recorded %+v", rows)
	}
	select {
	case <-entered:
		t.Errorf("more than %d at once", most)
	default:
	}
	close(release)
	<-done
	if rest := len(entered); rest != others-most {
		t.Errorf("%d of the others came in", rest)
	}
}

// slowHistory takes its time to say where the record stands, unless its caller goes.
type slowHistory struct {
	prflow.History
	takes time.Duration
}

func (l slowHistory) Position(ctx context.Context) (record.Position, error) {
	select {
	case <-time.After(l.takes):
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return l.History.Position(ctx)
}

func TestAProposalThatWaitsForOthersIsStillReadAsAWhole(t *testing.T) {
	t.Parallel()
	var statuses []int
	// A busy machine may take longer than the time-out to send a request. One that is cut since it waits is cut whatever
	// the time-out.
	for _, readTimeout := range []time.Duration{200 * time.Millisecond, 800 * time.Millisecond, 3200 * time.Millisecond} {
		if statuses = proposeAtOnce(t, readTimeout); !slices.Contains(statuses, http.StatusBadRequest) &&
			!slices.Contains(statuses, connectionCut) {
			break
		}
	}
	for _, status := range statuses {
		if status != http.StatusCreated {
			t.Errorf("status %d, want 201", status)
		}
	}
}

// proposeAtOnce makes one proposal more than are judged at the same time, each of which is judged for longer than the
// time-out.
func proposeAtOnce(t *testing.T, readTimeout time.Duration) (all []int) {
	w := newWorld(t, func(w *world) { w.flow.History = slowHistory{w.flow.History, 3 * readTimeout} })
	server := w.listening(func(s *http.Server) { s.ReadTimeout = readTimeout })
	all = make([]int, 9)
	atOnce(len(all), func(i int) {
		text := strings.Repeat(fmt.Sprintf("long-%d ", i), 1<<13) // more than fits into a buffer
		change := files(file(fmt.Sprintf("checks/slow-%d.md", i), "create", text))
		all[i] = post(t, server.URL+"/api/v1/prs", w.person, request(change))
	})
	return all
}

// connectionCut stands for the status of an answer that did not come.
const connectionCut = 0

func post(t *testing.T, url, token, body string) int {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Log(err)
		return connectionCut
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

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
	must.Do(w, w.store.Access.RevokeToken(context.Background(), name))
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
			secret := w.insert(access.Token{Name: "ci", MaxTier: gitprovider.TierInvestigate,
				Scopes: access.Scopes{access.Propose}, ExpiresAt: w.Now().Add(time.Minute)})
			w.meanwhile(func() { lose(w) })
			w.want(w.do("POST", "/api/v1/prs", request(nil), bearer(secret)), 401, fault.Unauthenticated)
			w.refusedWithoutAWrite(record.ActionCreate)
		})
	}
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
			must.Do(t, err)
			w.meanwhile(func() { end(w, cookie) })
			w.build()
			w.fake.Script.ForgetCalls()
			w.submit("/proposals/"+id+"/promote", nil, header("Cookie", httpx.CookieName+"="+cookie))
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
	if answer := c.answer(c.send(createPR(7))); !answer.Result.IsError ||
		!strings.Contains(fmt.Sprint(answer.Result.Structured), "unauthenticated") {
		t.Errorf("answered %+v", answer)
	}
	w.refusedWithoutAWrite(record.ActionCreate)
}
