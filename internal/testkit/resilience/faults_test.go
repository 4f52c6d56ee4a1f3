package resilience

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// trouble is one way in which a request goes wrong, and the codes that a caller may be answered with. That the flow
// gets over it is always right.
type trouble struct {
	name  string
	fault httpfault.Fault
	stays bool // every later request goes wrong, too
	codes []fault.Code
}

// plan has the n-th request go wrong.
func (w *world) plan(tr trouble, n int) {
	if tr.stays {
		w.forge.Faults().PlanFrom(n, tr.fault)
	} else {
		w.forge.Faults().PlanNth(n, tr.fault)
	}
}

func troubles(elsewhere string) []trouble {
	status := func(code int, header ...string) httpfault.Fault {
		f := httpfault.Fault{Kind: httpfault.Status, Status: code, Header: http.Header{}, Body: `{"message":"no"}`}
		f.Header.Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			f.Header.Set(header[i], header[i+1])
		}
		return f
	}
	broken := []fault.Code{fault.UpstreamError, fault.Timeout}
	denied := []fault.Code{fault.ProviderDisabled, fault.RepoNotAllowed}
	return []trouble{
		{"the connection is reset before the server acted", httpfault.Fault{Kind: httpfault.ResetBefore}, false, broken},
		{"the connection is reset after the server acted", httpfault.Fault{Kind: httpfault.ResetAfter}, false, broken},
		{"the server is gone from here on", httpfault.Fault{Kind: httpfault.ResetBefore}, true, broken},
		{"the server acts and answers nobody from here on", httpfault.Fault{Kind: httpfault.ResetAfter}, true, broken},
		{"502 after success", httpfault.Fault{Kind: httpfault.BadGatewayAfter}, false, broken},
		{"a stall", httpfault.Fault{Kind: httpfault.Stall}, false, broken},
		{"a stall after success", httpfault.Fault{Kind: httpfault.StallAfter}, false, broken},
		{"a truncated body", httpfault.Fault{Kind: httpfault.Truncated}, false, broken},
		{"an oversized body", httpfault.Fault{Kind: httpfault.Oversized}, false, broken},
		{"HTML instead of JSON", httpfault.Fault{Kind: httpfault.HTML}, false, broken},
		{"401", status(401), false, denied},
		{"403", status(403), false, append(denied, fault.Conflict)},
		{"404", status(404), false, []fault.Code{fault.NotFound, fault.UpstreamError}},
		{"409", status(409), false, append(broken, fault.Conflict, fault.NotFound)},
		{"422", status(422), false, append(broken, fault.Conflict, fault.NotFound, fault.NoChange, fault.InvalidArgument,
			fault.ProviderDisabled)}, // an app's token is refused so
		{"429", status(429), false, []fault.Code{fault.RateLimited}},
		{"429 with a short Retry-After", status(429, "Retry-After", "1"), false, []fault.Code{fault.RateLimited}},
		{"429 with a long Retry-After", status(429, "Retry-After", "3600"), false, []fault.Code{fault.RateLimited}},
		{"403 with a Retry-After", status(403, "Retry-After", "3600"), false, []fault.Code{fault.RateLimited}},
		{"500", status(500), false, broken},
		{"503", status(503), false, broken},
		{"a redirect to another host", httpfault.Fault{Kind: httpfault.Redirect, Target: elsewhere}, false,
			append([]fault.Code{fault.ProviderDisabled}, broken...)},
	}
}

// alike are troubles of one effect on the forge and one sort of answer. A request that writes meets one of each list,
// in turn. What the client makes of each is for the tests of package transport.
func alike() [][]string {
	return [][]string{
		{"the connection is reset before the server acted", "500", "503"},
		{"the connection is reset after the server acted", "502 after success", "a truncated body"},
		{"an oversized body", "HTML instead of JSON"},
		{"401", "403"},
		{"429", "429 with a long Retry-After", "403 with a Retry-After"},
	}
}

// meets reports whether the n-th request of a sequence meets the trouble, which is the i-th. tries is a method of k.
func (k kind) meets(s sequence, n int, tr trouble, i int, tries func(s sequence, n, i int) bool) bool {
	if s[n-1] && !k.lags {
		return tr.isTurn(s.write(n))
	}
	return tries(s, n, i)
}

// isTurn reports whether the trouble is met at a turn, which is counted from 0: of those that are alike it is one.
func (tr trouble) isTurn(turn int) bool {
	for _, names := range alike() {
		if at := slices.Index(names, tr.name); at >= 0 {
			return at == turn%len(names)
		}
	}
	return true
}

// other is a host that must never see a token.
func other(t *testing.T) (address string) {
	var seen atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			seen.Store(true)
		}
	}))
	t.Cleanup(func() {
		server.Close()
		if seen.Load() {
			t.Error("another host was sent the token")
		}
	})
	return server.URL
}

// sequenceOfProposal returns the requests of an undisturbed proposal.
func sequenceOfProposal(t *testing.T, k kind) sequence {
	t.Helper()
	return sequenceOf(undisturbedProposal(t, k))
}

func undisturbedProposal(t *testing.T, k kind) []httpfault.Seen {
	t.Helper()
	w := newWorld(t, k)
	result, err := w.create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.assertTheOne(result.Number)
	w.assertRecords()
	w.assertNoToken()
	return w.forge.Faults().Requests()
}

// TestWhateverGoesWrongAtWhicheverRequestARetryEndsInTheOnePullRequest is the fault table. For an app it goes on to the
// last request for a token: the others are those of the same forge without an app, but for a token that is refused.
func TestWhateverGoesWrongAtWhicheverRequestARetryEndsInTheOnePullRequest(t *testing.T) {
	for _, k := range withApp() {
		t.Run(k.title(), func(t *testing.T) {
			t.Parallel()
			elsewhere := other(t)
			requests := undisturbedProposal(t, k)
			undisturbed, last := sequenceOf(requests), len(requests)
			if k.app != nil {
				last = lastToken(requests)
			}
			for n := 1; n <= len(undisturbed); n++ {
				for i, tr := range troubles(elsewhere) {
					if n > last && tr.name != "401" || n <= last && !k.meets(undisturbed, n, tr, i, k.tries) {
						continue
					}
					t.Run(fmt.Sprintf("%s at request %d", tr.name, n), func(t *testing.T) {
						t.Parallel()
						w := newWorld(t, k)
						w.plan(tr, n)
						w.recover(t.Context(), tr.codes)
					})
				}
			}
		})
	}
}

// lastToken returns the number of the last request for a token of an app.
func lastToken(requests []httpfault.Seen) (n int) {
	for i, r := range requests {
		if strings.HasSuffix(r.Path, "/access_tokens") {
			n = i + 1
		}
	}
	return n
}

// recover proposes, with the trouble that is planned, and proposes again without.
func (w *world) recover(ctx context.Context, codes []fault.Code) {
	w.t.Helper()
	first, err := w.create(ctx)
	if code := fault.CodeOf(err); err != nil && !slices.Contains(codes, code) {
		w.t.Errorf("the code is %s (%v; %v), want one of %v", code, err, fault.From(err).Cause, codes)
	}
	w.assertAtMostOne("after the trouble")
	w.forge.Faults().Forget()

	again, retryErr := w.create(context.WithoutCancel(ctx))
	if retryErr != nil {
		w.t.Fatalf("the retry failed: %v (%v); the first answer was %+v, %v", retryErr, fault.From(retryErr).Cause, first,
			err)
	}
	if err == nil && again.Number != first.Number {
		w.t.Errorf("answered with #%d and then with #%d", first.Number, again.Number)
	}
	w.assertTheOne(again.Number)
	w.assertRecords()
	w.assertNoToken()
}

func TestACallerWhoGoesAwayAtWhicheverRequestLeavesNothingHalfMade(t *testing.T) {
	for _, k := range withApp() {
		t.Run(k.title(), func(t *testing.T) {
			t.Parallel()
			undisturbed := sequenceOfProposal(t, k)
			for n := 1; n <= len(undisturbed); n++ {
				t.Run(fmt.Sprintf("at request %d", n), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, k)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					arrived := 0
					w.forge.Faults().Plan(func(*http.Request) bool {
						if arrived++; arrived == n {
							cancel()
						}
						return false
					}, httpfault.Fault{Kind: httpfault.HTML})
					w.recover(ctx, []fault.Code{fault.Timeout, fault.UpstreamError})
				})
			}
		})
	}
}

// closed is a forge whose address has no listener.
type closed struct {
	forge
	address string
}

func (c closed) URL() string { return c.address }

func TestAServerThatRefusesConnectionsLeavesNothing(t *testing.T) {
	for _, k := range withApp() {
		t.Run(k.title(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, k)
			there := w.forge
			w.forge = closed{there, httpfault.NoListener}
			if _, err := w.create(t.Context()); fault.CodeOf(err) != fault.UpstreamError {
				t.Errorf("got %v, want an upstream error", err)
			}
			w.assertRecords()
			w.forge = there
			w.recover(t.Context(), nil)
		})
	}
}

// assertDressed demands that the pull request has its labels and the mark in its body, and that list_prs shows it.
func (w *world) assertDressed(number int) {
	w.t.Helper()
	w.forge.Host().Locked(func() {
		pr := w.forge.Host().Repo(w.repo).PR(number)
		labels := slices.Sorted(slices.Values(pr.Labels))
		if !slices.Equal(labels, []string{"automated", gitprovider.LabelOurs}) {
			w.t.Errorf("#%d has the labels %q", number, labels)
		}
		if !strings.Contains(pr.Body, gitprovider.MarkOpening) {
			w.t.Errorf("#%d has the body %q", number, pr.Body)
		}
	})
	list, err := w.list(0)
	if err != nil || len(list.PRs) != 1 || list.PRs[0].Number != number || len(list.Warnings) > 0 {
		w.t.Errorf("list_prs: %+v, %v", list, err)
	}
}

// undress takes from the one pull request what reuse puts back.
func (w *world) undress(number int) {
	w.forge.Host().Locked(func() {
		pr := w.forge.Host().Repo(w.repo).PR(number)
		pr.Labels, pr.Body = nil, strings.Split(pr.Body, "<!--")[0]
	})
}

// warned reports whether an answer says that something could not be done.
func warned(result prflow.CreateResult, about string) bool {
	return slices.ContainsFunc(result.Warnings, func(w string) bool { return strings.Contains(w, about) })
}

// sequenceOfReuse returns the requests of an undisturbed identical call that has to restore labels and body.
func sequenceOfReuse(t *testing.T, k kind) sequence {
	t.Helper()
	w := newWorld(t, k)
	first, err := w.create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.undress(first.Number)
	w.forge.Faults().Forget()
	again, err := w.create(t.Context())
	if err != nil || !again.Reused || len(again.Warnings) > 0 {
		t.Fatalf("%+v, %v", again, err)
	}
	undisturbed := sequenceOf(w.forge.Faults().Requests())
	w.assertDressed(first.Number)
	return undisturbed
}

// TestWhateverGoesWrongWhileAPullRequestIsCompletedTheNextCallCompletesIt is the fault table of reuse.
func TestWhateverGoesWrongWhileAPullRequestIsCompletedTheNextCallCompletesIt(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.title(), func(t *testing.T) {
			t.Parallel()
			elsewhere := other(t)
			undisturbed := sequenceOfReuse(t, k)
			for n := 1; n <= len(undisturbed); n++ {
				for i, tr := range troubles(elsewhere) {
					if !k.meets(undisturbed, n, tr, i, k.triesAgain) {
						continue
					}
					t.Run(fmt.Sprintf("%s at request %d", tr.name, n), func(t *testing.T) {
						t.Parallel()
						w := newWorld(t, k)
						first, err := w.create(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						w.undress(first.Number)
						w.forge.Faults().Forget()
						w.plan(tr, n)
						w.completes(first.Number, tr.codes)
					})
				}
			}
		})
	}
}

// completes makes the identical call with the trouble that is planned, and again without.
func (w *world) completes(number int, codes []fault.Code) {
	w.t.Helper()
	again, err := w.create(context.Background())
	switch code := fault.CodeOf(err); {
	case err != nil && !slices.Contains(codes, code):
		w.t.Errorf("the code is %s (%v), want one of %v", code, err, codes)
	case err == nil && (!again.Reused || again.Number != number):
		w.t.Errorf("answered %+v, want #%d reused", again, number)
	case err == nil:
		w.assertHonest(number, again)
	}
	w.forge.Faults().Forget()
	last, err := w.create(context.Background())
	if err != nil || !last.Reused || last.Number != number || len(last.Warnings) > 0 {
		w.t.Errorf("the next call answered %+v, %v", last, err)
	}
	w.assertTheOne(number)
	w.assertDressed(number)
	w.assertRecords()
	w.assertNoToken()
}

// assertHonest demands that an answer warns of what the pull request lacks.
func (w *world) assertHonest(number int, answer prflow.CreateResult) {
	w.t.Helper()
	w.forge.Host().Locked(func() {
		pr := w.forge.Host().Repo(w.repo).PR(number)
		if lacks := len(pr.Labels) < 2; lacks && !warned(answer, "labels") {
			w.t.Errorf("labels %q and no warning of it: %q", pr.Labels, answer.Warnings)
		}
		if lacks := !strings.Contains(pr.Body, gitprovider.MarkOpening); lacks && !warned(answer, "body") {
			w.t.Errorf("no mark and no warning of it: %q", answer.Warnings)
		}
	})
}

// labelling knows the request that puts labels on. Where the forge lags that is the second one: it does not know the
// pull request at the first.
func labelling(k kind) func(*http.Request) bool {
	first := k.lags
	return func(r *http.Request) bool {
		is := isLabel(r)
		skip := is && first
		first = first && !is
		return is && !skip
	}
}

func isLabel(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/labels")
}

// TestLabelsThatFailAreThereAfterTheIdenticalCall has everything go wrong at the labels of a creation, at each forge
// one of what is alike: the pull request is listed all the same, and the identical call from a process of its own puts
// them on.
func TestLabelsThatFailAreThereAfterTheIdenticalCall(t *testing.T) {
	for turn, k := range kinds() {
		t.Run(k.title(), func(t *testing.T) {
			t.Parallel()
			elsewhere := other(t)
			for _, tr := range troubles(elsewhere) {
				if !tr.isTurn(turn) {
					continue
				}
				t.Run(tr.name, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, k)
					for range 3 { // a repetition goes wrong, too
						w.forge.Faults().Plan(isLabel, tr.fault)
					}
					first, err := w.create(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					w.forge.Faults().Forget()
					w.assertHonest(first.Number, first)
					listed, err := w.service().Reader().ListAt(t.Context(), k.name, w.repo.Owner, w.repo.Name)
					if err != nil || len(listed) != 1 {
						t.Errorf("listed meanwhile: %+v, %v", listed, err)
					}
					again, err := w.create(t.Context())
					if err != nil || !again.Reused || len(again.Warnings) > 0 {
						t.Errorf("the identical call answered %+v, %v", again, err)
					}
					w.assertDressed(first.Number)
				})
			}
		})
	}
}

// TestALabelAnswerThatIsLostOrLateIsNoWarning is about warnings of what is there.
func TestALabelAnswerThatIsLostOrLateIsNoWarning(t *testing.T) {
	later := httpfault.Fault{Kind: httpfault.Status, Status: http.StatusServiceUnavailable,
		Header: http.Header{"Retry-After": {"1"}}, Body: `{"message":"later"}`}
	for name, f := range map[string]httpfault.Fault{
		"reset after the server acted": {Kind: httpfault.ResetAfter}, "502 after success": {Kind: httpfault.BadGatewayAfter},
		"a stall after success": {Kind: httpfault.StallAfter}, "half an answer": {Kind: httpfault.Truncated},
		"503 with a short Retry-After": later,
	} {
		for _, k := range kinds() {
			t.Run(k.title()+": "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, k)
				w.forge.Faults().Plan(labelling(k), f)
				first, err := w.create(t.Context())
				if err != nil || len(first.Warnings) > 0 {
					t.Fatalf("warnings %q, %v", first.Warnings, err)
				}
				w.assertDressed(first.Number)
			})
		}
	}
}

// TestAForkInTheWay is gate 7 over the adapters.
func TestAForkInTheWay(t *testing.T) {
	for _, k := range kinds() {
		for _, rule := range []policy.Duplicates{policy.DuplicatesOurs, policy.DuplicatesAny} {
			t.Run(k.title()+", duplicates "+string(rule), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, k)
				people := w.forge.Host().World(t, w.repo, nil)
				number := people.OpenFromFork("fix", "From a fork", []string{gitprovider.LabelOurs},
					memhost.File{Path: "checks/disk.md", Content: "eve's"})
				w.policy.Duplicates = rule
				result, err := w.create(t.Context())
				if rule == policy.DuplicatesAny {
					if fault.CodeOf(err) != fault.DuplicatePR || fault.From(err).Existing.Number != number {
						t.Errorf("answered %+v, %v", result, err)
					}
					return
				}
				if err != nil || !warned(result, fmt.Sprintf("#%d by eve also changes checks/disk.md", number)) {
					t.Errorf("answered %+v, %v", result, err)
				}
			})
		}
	}
}
