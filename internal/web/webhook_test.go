package web_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/web"
	"github.com/claudeops/claudeops/internal/web/api"
)

const hookSecret = "a secret of the operator"

// acceptor takes deliveries about joe/infra, each once.
type acceptor struct {
	mu    sync.Mutex
	taken []string
	block bool // until the context ends
}

func (a *acceptor) Accept(ctx context.Context, provider string, d forge.Delivery) (bool, error) {
	if a.block {
		<-ctx.Done()
		return false, fault.From(ctx.Err())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if d.Owner+"/"+d.Repo != "joe/infra" {
		return false, nil
	}
	for _, known := range a.taken {
		if strings.HasPrefix(known, provider+" "+d.ID+" ") {
			return false, fault.New(fault.Conflict, "this delivery was taken before")
		}
	}
	a.taken = append(a.taken, fmt.Sprintf("%s %s %v", provider, d.ID, d.Numbers))
	return true, nil
}

func hooked(t *testing.T) (*world, *acceptor) {
	t.Helper()
	a := &acceptor{}
	return newWorld(t, func(w *world) {
		w.web.Webhooks = api.Webhooks{Follower: a, Senders: web.KnownWebhooks(hookSecret)}
		w.tokens = []string{"a-token-that-nobody-sends"}
	}), a
}

func merge(repo string, number int) string {
	return fmt.Sprintf(
		`{"action":"closed","number":%[2]d,"pull_request":{"number":%[2]d,"merged":true},"repository":{"full_name":%[1]q}}`,
		repo, number)
}

func signature(body string) string {
	h := hmac.New(sha256.New, []byte(hookSecret))
	_, _ = h.Write([]byte(body))
	return hex.EncodeToString(h.Sum(nil))
}

// github sends a delivery as GitHub does; edits come last.
func (w *world) github(id, event, body string, edits ...edit) reply {
	w.Helper()
	return w.do("POST", "/webhooks/github", body,
		append([]edit{header("X-GitHub-Delivery", id), header("X-GitHub-Event", event),
			header("X-Hub-Signature-256", "sha256="+signature(body)), from("192.0.2.1:1")}, edits...)...)
}

func TestWebhooksAreTakenIgnoredOrRefused(t *testing.T) {
	t.Parallel()
	w, a := hooked(t)
	body := merge("joe/infra", 7)
	for _, row := range []struct {
		name   string
		got    reply
		status int
		said   string
		code   fault.Code
	}{
		{"a merge", w.github("a", "pull_request", body), 202, "taken", ""},
		{"the same again", w.github("a", "pull_request", body), 409, "", fault.Conflict},
		{"a redelivery under another id", w.github("b", "pull_request", body), 202, "taken", ""},
		{"a ping", w.github("c", "ping", `{"zen":"Speak like a human."}`), 200, "pong", ""},
		{"an event that does not matter", w.github("d", "star", `{}`), 202, "ignored", ""},
		{"another repository", w.github("e", "pull_request", merge("joe/other", 7)), 202, "ignored", ""},
		{"without an id", w.github("", "pull_request", body), 400, "", fault.InvalidArgument},
		{"no JSON", w.github("f", "pull_request", "payload=1"), 400, "", fault.InvalidArgument},
		{"a wrong signature", w.github("g", "pull_request", body,
			set("X-Hub-Signature-256", "sha256="+signature(body+" "))), 401, "", fault.Unauthenticated},
		{"no signature", w.github("g", "pull_request", body, set("X-Hub-Signature-256", "")), 401, "",
			fault.Unauthenticated},
		{"a form", w.github("g", "pull_request", body, set("Content-Type", "application/x-www-form-urlencoded")), 415,
			"", fault.InvalidArgument},
		{"no type", w.github("g", "pull_request", body, set("Content-Type", "")), 415, "", fault.InvalidArgument},
		{"compressed", w.github("g", "pull_request", body, header("Content-Encoding", "gzip")), 415, "",
			fault.InvalidArgument},
		{"too large", w.github("g", "pull_request", strings.Repeat(" ", 1<<20)+body), 413, "", fault.InvalidArgument},
		{"another host", w.github("g", "pull_request", body, host("evil.example")), 403, "", fault.Forbidden},
		{"at Gitea's address", w.do("POST", "/webhooks/gitea", body, header("X-GitHub-Delivery", "g"),
			header("X-GitHub-Event", "pull_request"),
			header("X-Hub-Signature-256", "sha256="+signature(body))), 401, "", fault.Unauthenticated},
		{"Gitea's", w.do("POST", "/webhooks/gitea", body, header("X-Gitea-Delivery", "a"),
			header("X-Gitea-Event", "pull_request"),
			header("X-Gitea-Signature", signature(body))), 202, "taken", ""},
		{"another method", w.get("/webhooks/github"), 405, "", fault.InvalidArgument},
		{"another forge", w.do("POST", "/webhooks/gitlab", body), 404, "", fault.NotFound},
	} {
		if row.got.StatusCode != row.status || row.got.code() != string(row.code) || row.code == "" &&
			row.got.json["status"] != row.said {
			t.Errorf("%s: %d %s", row.name, row.got.StatusCode, row.got.body)
		}
		if strings.Contains(string(row.got.body), hookSecret) || strings.Contains(string(row.got.body), signature(body)) {
			t.Errorf("%s: the answer tells too much: %s", row.name, row.got.body)
		}
	}
	if diff := cmp.Diff([]string{"github a [7]", "github b [7]", "gitea a [7]"}, a.taken); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
	if len(w.fake.Script.Calls()) != 0 || len(w.attempts()) != 0 {
		t.Errorf("the provider was asked %v, and %d rows were recorded", w.fake.Script.Calls(), len(w.attempts()))
	}
	form := w.github("g", "pull_request", body, set("Content-Type", "application/x-www-form-urlencoded"))
	if !strings.Contains(string(form.body), "application/json in the webhook's settings") {
		t.Errorf("it does not say what to do: %s", form.body)
	}
	w.person = "a-token-that-nobody-sends"
	w.measures(
		`claudeops_webhook_deliveries_total{provider="github",result="taken"} 2`,
		`claudeops_webhook_deliveries_total{provider="github",result="conflict"} 1`,
		`claudeops_webhook_deliveries_total{provider="github",result="pong"} 1`,
		`claudeops_webhook_deliveries_total{provider="github",result="unauthenticated"} 2`)
}

func TestWithoutASecretWebhooksAreOff(t *testing.T) {
	t.Parallel()
	w, a := hooked(t)
	w.web.Webhooks.Senders = web.KnownWebhooks("")
	got := w.github("a", "pull_request", merge("joe/infra", 7))
	w.want(got, 503, fault.ProviderDisabled)
	if !strings.Contains(string(got.body), "GITHUB_WEBHOOK_SECRET") || len(a.taken) != 0 {
		t.Errorf("got %s, taken %v", got.body, a.taken)
	}
	w.want(w.do("POST", "/webhooks/gitea", merge("joe/infra", 7), header("X-Gitea-Signature", "")), 503,
		fault.ProviderDisabled)
}

func TestWhoeverGuessesIsToldToWaitAndTheForgeIsNot(t *testing.T) {
	t.Parallel()
	w, _ := hooked(t)
	body := merge("joe/infra", 7)
	guess := func() reply {
		return w.github("a", "pull_request", body, set("X-Hub-Signature-256", "sha256=00"), from("198.51.100.9:9"))
	}
	for range 20 {
		w.want(guess(), 401, fault.Unauthenticated)
	}
	blocked := guess()
	w.want(blocked, 429, fault.LimitReached)
	if blocked.Header.Get("Retry-After") != "60" {
		t.Errorf("Retry-After is %q", blocked.Header.Get("Retry-After"))
	}
	w.want(w.github("b", "pull_request", body, from("198.51.100.9:10")), 202, "") // the right one, from the same address
	w.want(guess(), 429, fault.LimitReached)
	w.want(w.github("c", "pull_request", body), 202, "")
	w.advance(time.Minute)
	w.want(guess(), 401, fault.Unauthenticated)
}

func TestGuessesFromEverywhereDoNotShutOutTheForge(t *testing.T) {
	t.Parallel()
	w, _ := hooked(t)
	body := merge("joe/infra", 7)
	for i := range 1100 {
		w.want(w.github("a", "pull_request", body, set("X-Hub-Signature-256", ""),
			from(fmt.Sprintf("10.9.%d.%d:1", i/250, i%250))), 401, fault.Unauthenticated)
	}
	w.want(w.github("b", "pull_request", body), 202, "")
}

func TestAWebhookIsAnsweredInTimeWhateverTheRecordsDo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, a := hooked(t)
		a.block = true
		began := time.Now()
		w.want(w.github("a", "pull_request", merge("joe/infra", 7)), 504, fault.Timeout)
		if took := time.Since(began); took >= 5*time.Second { // Gitea waits no longer
			t.Errorf("it took %s", took)
		}
	})
}

// fakeHooks is one hook, whose token is "right".
type fakeHooks struct {
	status session.HookStatus
	bodies []string
	asked  []string // at forges
	why    error
}

func (h *fakeHooks) RunForge(_ context.Context, provider string, asked forge.StartRequest) (session.HookRun, error) {
	h.asked = append(h.asked, fmt.Sprint(provider, asked))
	return session.HookRun{Status: h.status, Session: "one"}, h.why
}

func (h *fakeHooks) Authorize(name, token string) (policy.Hook, error) {
	if name != "alerts" || token != "right" {
		return policy.Hook{}, fault.New(fault.Unauthenticated, "wrong")
	}
	return policy.Hook{Name: name}, nil
}

func (h *fakeHooks) Run(_ context.Context, _ policy.Hook, body []byte) (session.HookRun, error) {
	h.bodies = append(h.bodies, string(body))
	return session.HookRun{Status: h.status}, nil
}

func TestAHookIsOpenedByItsTokenAlone(t *testing.T) {
	t.Parallel()
	hooks := &fakeHooks{status: session.HookStarted}
	w := newWorld(t, func(w *world) { w.web.Webhooks.Runs = hooks })
	call := func(token, name string) reply {
		return w.do("POST", "/hooks/run/"+name, `{"a":1}`, bearer(token))
	}
	for i := range 25 {
		status, code := 401, fault.Unauthenticated
		if i >= 20 {
			status, code = 429, fault.LimitReached
		}
		w.want(call(fmt.Sprint("wrong", i), "alerts"), status, code)
	}
	if len(hooks.bodies) != 0 {
		t.Fatalf("wrong tokens started %d sessions", len(hooks.bodies))
	}
	w.want(call("right", "alerts"), 202, "") // wrong ones keep it out no more
	hooks.status = session.HookBusy
	if a := call("right", "alerts"); a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("busy is %d", a.StatusCode)
	}
	hooks.status = session.HookKnown
	w.want(call("right", "alerts"), 200, "")
}

// What may start a session goes to the hooks, and nothing else does: nothing without a signature, above all.
func TestAnIssueAtAForgeGoesToTheHooks(t *testing.T) {
	t.Parallel()
	hooks := &fakeHooks{status: session.HookStarted}
	w := newWorld(t, func(w *world) {
		w.web.Webhooks = api.Webhooks{Follower: &acceptor{}, Senders: web.KnownWebhooks(hookSecret), Runs: hooks}
	})
	body := `{"action":"created","issue":{"number":7},"comment":{"id":31,"body":"/claude-ops"},` +
		`"repository":{"full_name":"joe/infra"}}`
	w.want(w.github("a", "issue_comment", body, set("X-Hub-Signature-256", "sha256="+signature("x"))), 401,
		fault.Unauthenticated)
	w.want(w.github("a", "issue_comment", strings.Replace(body, "/claude-ops", "> /claude-ops", 1)), 202, "")
	if len(hooks.asked) != 0 {
		t.Fatalf("asked for %v", hooks.asked)
	}
	got := w.github("a", "issue_comment", body)
	w.want(got, 202, "")
	if got.json["status"] != "started" || got.json["session"] != "one" ||
		!slices.Equal(hooks.asked, []string{"github{joe infra 7 31}"}) {
		t.Errorf("%s, asked for %v", got.body, hooks.asked)
	}
	hooks.why = fault.New(fault.Forbidden, "bob may not write")
	w.want(w.github("b", "issue_comment", body), 403, fault.Forbidden)
}
