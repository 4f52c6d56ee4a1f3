package web_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/web"
)

// Two servers have the same records: one keeps the parts of its pages, and the other makes each page anew. They show
// the same to everybody, after whatever happens. Neither keeps whole answers, whose times may be ten seconds old.
func TestPagesOfPartsThatAreKeptAreThoseThatAreMadeAnew(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := &randomRecords{Rand: rand.New(rand.NewPCG(47, seed))}
			r.world = newWorld(t, func(w *world) {
				w.web.Records.Changes = nil
				w.web.Rules.Doctor = func(context.Context) []doctor.Finding { return r.findings() }
			})
			people := []string{r.person, r.token("ann", gitprovider.TierRemediate, access.AllScopes()...),
				r.token("ben", gitprovider.TierObserve, access.Read), r.token("cem", 2, access.Read, access.Review)}
			keeping, anew := r.servers()
			for step := range 50 {
				did := r.happens(keeping, anew)
				for _, target := range []string{"/", "/?show=all", "/changes", "/changes?tab=waiting", "/audit", "/outcomes"} {
					person := bearer(people[r.IntN(len(people))])
					r.handler = anew
					want := r.get(target, person, browser)
					r.handler = keeping
					if got := firstDifference(r.get(target, person, browser).body, want.body); got != "" {
						t.Fatalf("step %d, after %s, %s: %s", step, did, target, got)
					}
				}
			}
		})
	}
}

// firstDifference returns the first line of a page that another one has otherwise; "" for none.
func firstDifference(page, other []byte) string {
	lines, others := strings.Split(string(page), "\n"), strings.Split(string(other), "\n")
	for i := range min(len(lines), len(others)) {
		if lines[i] != others[i] {
			return fmt.Sprintf("line %d is\n%s\nand made anew\n%s", i, lines[i], others[i])
		}
	}
	if len(lines) != len(others) {
		return fmt.Sprintf("%d lines, and made anew %d", len(lines), len(others))
	}
	return ""
}

// randomRecords is a world in which something happens at random.
type randomRecords struct {
	*world
	*rand.Rand
	numbers int // of proposals
	runs    []sessions.Record
	mu      sync.Mutex // servers look in the background, too
	broken  bool
}

// servers returns one that keeps parts, and one that does not, since it cannot tell when what it keeps out changes.
func (r *randomRecords) servers() (keeping, anew http.Handler) {
	r.build()
	keeping = r.handler
	redaction := r.web.Env.Redaction
	r.web.Env.Redaction = nil
	r.build()
	anew, r.web.Env.Redaction = r.handler, redaction
	return keeping, anew
}

func (r *randomRecords) findings() []doctor.Finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := doctor.Finding{Name: "provider fake", Status: doctor.OK, Detail: "it answers"}
	if r.broken {
		f.Status, f.Detail, f.Stops = doctor.Problem, "it does not answer", "proposals"
	}
	return []doctor.Finding{f}
}

// happens lets something happen, and says what.
func (r *randomRecords) happens(servers ...http.Handler) string {
	r.Helper()
	ctx := context.Background()
	events := []func() string{
		func() string { return r.propose(record.OutcomeRefused) }, func() string { return r.propose(record.OutcomeRefused) },
		func() string { return r.propose(record.OutcomeDryRun) }, func() string { return r.propose(record.OutcomeOpened) },
		func() string { return r.propose(record.OutcomeOpened) },
		r.see, r.runSession,
		func() string { r.advance(time.Duration(r.IntN(90)) * time.Second); return "seconds" },
		func() string { r.advance(time.Duration(r.IntN(40)) * time.Hour); return "hours" },
		func() string {
			r.Cleanup(scanner.Learn(fmt.Sprintf("disk %d of", r.IntN(10)))) // as titles have it
			return "a credential that is learnt"
		},
		func() string {
			r.flow.Authority.DryRun = !r.flow.Authority.DryRun
			return "a dry run that begins or ends"
		},
		func() string {
			r.mu.Lock()
			r.broken = !r.broken
			r.advance(time.Hour)
			r.mu.Unlock()
			for _, r.handler = range servers {
				r.want(r.get("/doctor", browser), 200, "") // each looks now
			}
			return "a forge that fails or answers again"
		},
		func() string {
			for _, s := range servers {
				s.(*web.Server).VerifyOnce(ctx)
			}
			return "a verification"
		},
	}
	return events[r.IntN(len(events))]()
}

func (r *randomRecords) propose(outcome record.Outcome) string {
	r.numbers++
	r.proposed(r.store, fmt.Sprintf("disk %d of <b>%d</b>", r.IntN(10), r.numbers), outcome, r.numbers)
	return string(outcome)
}

// see records what somebody saw of a pull request.
func (r *randomRecords) see() string {
	open, err := r.store.Pulls.OpenPulls(context.Background(), 100)
	must.Do(r, err)
	if len(open) == 0 {
		return "nothing"
	}
	did := []string{"an approval", "a request for changes", "a check that fails", "a merge"}[r.IntN(4)]
	seePull(r, r.store, open[r.IntN(len(open))].PullKey, func(p *record.PullRecord) {
		switch did {
		case "an approval":
			p.Approvals++
		case "a request for changes":
			p.ChangesRequested++
		case "a check that fails":
			p.Checks = gitprovider.ChecksFailure
		default:
			p.State = gitprovider.StateMerged
		}
	})
	return did
}

// runSession begins a session, or ends one that runs.
func (r *randomRecords) runSession() string {
	ctx := context.Background()
	if len(r.runs) > 0 && r.IntN(2) == 0 {
		last := r.runs[len(r.runs)-1]
		r.runs = r.runs[:len(r.runs)-1]
		last.EndedAt, last.State = r.Now(), sessions.StateSucceeded
		if r.IntN(2) == 0 {
			last.State, last.Reason = sessions.StateFailed, "it went wrong"
		}
		last.CostUSD = r.Float64()
		must.Do(r, r.store.AgentSessions.SaveSession(ctx, last))
		return "a session that ends"
	}
	run := sessions.Record{ID: fmt.Sprint("session-", r.Uint32()), StartedAt: r.Now(),
		Task: sessions.Task{Tier: gitprovider.Tier(1 + r.IntN(3)), Trigger: sessions.TriggerCommand}}
	run.State = sessions.StateRunning
	must.Do(r, r.store.AgentSessions.BeginSession(ctx, run))
	r.runs = append(r.runs, run)
	return "a session that begins"
}

// Nine pull requests fill the first rows: a dry run that waits for longer is none of them, but the oldest.
func TestTheOldestThatWaitsMayBeADryRunThatIsNotShown(t *testing.T) {
	w := newWorld(t, nil)
	w.signedIn()
	w.proposed(w.store, "a dry run", record.OutcomeDryRun, 1)
	w.advance(72 * time.Hour)
	for n := range 9 {
		if page := w.get("/", browser); n == 4 {
			w.says(page, `title="Dry run"`) // there is room
		}
		w.proposed(w.store, fmt.Sprint("opened ", n), record.OutcomeOpened, 2+n)
	}
	w.says(w.get("/", browser), `!title="Dry run"`, ">3 d<")
}
