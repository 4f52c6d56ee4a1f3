package resilience

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

// lateCase describes a request that took effect only after its caller had given up.
type lateCase struct {
	stalls bool // the caller gives up by its time-out, and not since the connection broke
	after  bool // the effect comes after the identical call, and not before
	same   bool // the identical call is made by the same process
	lost   bool // the state folder is lost in between
}

func lateCases() (all []lateCase) {
	for _, after := range []bool{false, true} {
		all = append(all,
			lateCase{stalls: true, after: after},
			lateCase{after: after}, lateCase{after: after, same: true}, lateCase{after: after, lost: true})
	}
	return all
}

func (c lateCase) String() string {
	return fmt.Sprintf("stalls %t, effect after the identical call %t, same process %t, state lost %t", c.stalls, c.after,
		c.same, c.lost)
}

func (c lateCase) kind() httpfault.Kind {
	if c.stalls {
		return httpfault.LateStall
	}
	return httpfault.Late
}

// TestAnEffectThatComesLateMakesNoSecondPullRequestAndNoCooldown is the fault table of requests that are delayed beyond
// the time-out of their caller. One that reads has none.
func TestAnEffectThatComesLateMakesNoSecondPullRequestAndNoCooldown(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.title(), func(t *testing.T) {
			t.Parallel()
			undisturbed := sequenceOfProposal(t, k)
			for n := 1; n <= len(undisturbed); n++ {
				for i, c := range lateCases() {
					if !k.triesWrites(undisturbed, n, i) {
						continue
					}
					t.Run(fmt.Sprintf("request %d, %s", n, c), func(t *testing.T) {
						t.Parallel()
						w := newWorld(t, k)
						w.forge.Faults().PlanNth(n, httpfault.Fault{Kind: c.kind()})
						w.meetsLate(t.Context(), c)
					})
				}
			}
		})
	}
}

// meetsLate proposes, with the late effect that is planned, and makes the identical call before or after the effect.
func (w *world) meetsLate(ctx context.Context, c lateCase) {
	w.t.Helper()
	first := w.service()
	if _, err := w.createBy(ctx, first); err != nil && !fault.From(err).Retryable() {
		w.t.Errorf("the first answer: %v", err)
	}
	w.assertAtMostOne("after the first call")
	if !c.after {
		w.forge.Faults().ActLate()
		w.assertAtMostOne("after the late effect")
	}
	if c.lost {
		w.loseState()
	}
	again := first
	if !c.same {
		again = w.service()
	}
	result, err := w.createBy(ctx, again)
	if err != nil {
		w.t.Fatalf("the identical call: %v (%v)", err, fault.From(err).Cause)
	}
	w.assertTheOne(result.Number)
	w.forge.Faults().ActLate()
	w.assertTheOne(result.Number)
	w.assertRecords()
	last, err := w.create(ctx)
	if err != nil || !last.Reused || last.Number != result.Number {
		w.t.Errorf("the last call: %+v, %v; want #%d reused", last, err, result.Number)
	}
	w.assertTheOne(result.Number)
	w.assertNoToken()
}

// TestWhatNobodyAsksForAgainIsSettledOnceNothingCanArrive leaves the settlement to the rounds of a server.
func TestWhatNobodyAsksForAgainIsSettledOnceNothingCanArrive(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.title(), func(t *testing.T) {
			t.Parallel()
			undisturbed := sequenceOfProposal(t, k)
			for n := 1; n <= len(undisturbed); n++ {
				for i, when := range []string{"before a round", "between two rounds", "never"} {
					for _, lost := range []bool{false, true} {
						if !k.triesWrites(undisturbed, n, i) {
							continue
						}
						t.Run(fmt.Sprintf("request %d acts %s, state lost %t", n, when, lost), func(t *testing.T) {
							t.Parallel()
							newWorld(t, k).settlesLater(t.Context(), n, when, lost)
						})
					}
				}
			}
		})
	}
}

func (w *world) settlesLater(ctx context.Context, n int, when string, lost bool) {
	w.t.Helper()
	w.forge.Faults().PlanNth(n, httpfault.Fault{Kind: httpfault.Late})
	first, firstErr := w.create(ctx)
	if lost {
		w.loseState()
	}
	service := w.service()
	sweeper := service.NewSweeper()
	round := func() {
		w.t.Helper()
		settled, err := service.Resume(ctx)
		for _, s := range settled {
			if err != nil || s.Error != "" || s.Live {
				w.t.Errorf("settled as %+v, %v", s, err)
			}
		}
		swept, err := sweeper.Sweep(ctx, []record.RepoName{{Provider: w.kind.name, Owner: w.repo.Owner, Name: w.repo.Name}})
		if err != nil || slices.ContainsFunc(swept, func(s prflow.Swept) bool { return s.Error != "" }) {
			w.t.Errorf("swept %+v, %v", swept, err)
		}
	}
	if when == "before a round" {
		w.forge.Faults().ActLate()
	}
	round()
	if when == "between two rounds" {
		w.forge.Faults().ActLate()
	}
	for range 3 {
		w.pass(61 * time.Minute)
		round()
	}
	branches, open := w.state()
	if len(branches) != len(open) || len(open) > 1 {
		w.t.Errorf("branches %v, open pull requests %v", branches, open)
	}
	if firstErr == nil && !slices.Equal(open, []int{first.Number}) {
		w.t.Errorf("#%d was answered, open are %v", first.Number, open)
	}
	w.assertRecords()
	result, err := w.create(ctx)
	if err != nil {
		w.t.Fatalf("the identical call: %v (%v)", err, fault.From(err).Cause)
	}
	w.assertTheOne(result.Number)
	w.assertNoToken()
}

// TestARemovalThatComesLateHitsNothing delays each request of the settlement itself, the removal of the branch among
// them.
func TestARemovalThatComesLateHitsNothing(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.title(), func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= 8; n++ {
				t.Run(fmt.Sprintf("request %d", n), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, k)
					w.leaveABranch()
					w.pass(61 * time.Minute)
					w.forge.Faults().Forget()
					w.forge.Faults().PlanNth(n, httpfault.Fault{Kind: httpfault.Late})
					if _, err := w.service().Resume(t.Context()); err != nil {
						t.Error(err)
					}
					w.forge.Faults().Forget()
					result, err := w.create(t.Context())
					if err != nil {
						t.Fatalf("the identical call: %v (%v)", err, fault.From(err).Cause)
					}
					w.forge.Faults().ActLate()
					w.assertTheOne(result.Number)
					w.assertRecords()
				})
			}
		})
	}
}

// leaveABranch proposes, and the request for the pull request is lost.
func (w *world) leaveABranch() {
	w.t.Helper()
	w.forge.Faults().Plan(opensPull, httpfault.Fault{Kind: httpfault.ResetBefore})
	if _, err := w.create(w.t.Context()); fault.CodeOf(err) != fault.UpstreamError {
		w.t.Fatalf("got %v", err)
	}
	if branches, open := w.state(); len(branches) != 1 || len(open) != 0 {
		w.t.Fatalf("branches %v, open %v", branches, open)
	}
}

func opensPull(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/pulls")
}

func removesBranch(r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	return r.Method == http.MethodDelete || err == nil && bytes.Contains(body, []byte("updateRefs"))
}

// A pull request that appears at the very moment in which its branch is removed is closed by the forge. That is not a
// rejection.
func TestAPullRequestThatOurRemovalClosesIsNoRejection(t *testing.T) {
	for _, k := range kinds() {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, state lost %t", k.title(), lost), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, k)
				w.forge.Faults().Plan(opensPull, httpfault.Fault{Kind: httpfault.Late})
				if _, err := w.create(t.Context()); fault.CodeOf(err) != fault.UpstreamError {
					t.Fatalf("got %v", err)
				}
				w.pass(61 * time.Minute)
				w.forge.Faults().Forget()
				w.forge.Faults().Plan(removesBranch, httpfault.Fault{Kind: httpfault.LateFirst})
				if _, err := w.service().Resume(t.Context()); err != nil {
					t.Fatal(err)
				}
				branches, open := w.state()
				if len(branches)+len(open) != 0 || len(w.forge.Host().Repo(w.repo).PRs) != 1 {
					t.Fatalf("branches %v, open %v: this test needs a pull request that was closed", branches, open)
				}
				if lost {
					w.loseState()
				}
				w.forge.Faults().Forget()
				result, err := w.create(t.Context())
				if err != nil {
					t.Fatalf("the next call: %v", err)
				}
				w.assertTheOne(result.Number)
				w.assertRecords()
			})
		}
	}
}
