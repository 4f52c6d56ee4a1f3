//go:build unix

package resilience

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/claudeops/claudeops/internal/cli"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store/storetest"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

// asProgram makes this test binary run as claudeops: "hasty" passes the pauses between requests at once, "patient"
// waits.
const asProgram = "RESILIENCE_PROGRAM"

// testsAtOnce limits the parallel tests that run at a time, on however few cores.
const testsAtOnce = 32

// TestMain runs the tests, or claudeops; see asProgram.
func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	streams := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	switch os.Getenv(asProgram) {
	case "hasty":
		streams.Sleep = noSleep
		fallthrough
	case "patient":
		return cli.Run(context.Background(), os.Args[1:], streams, os.LookupEnv)
	}
	// Tests wait for processes far more than they compute.
	if err := flag.Set("test.parallel", strconv.Itoa(max(testsAtOnce, runtime.GOMAXPROCS(0)))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := records.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// program is claudeops with arguments, in an environment that names this forge alone.
func (w *world) program(args ...string) *exec.Cmd {
	w.t.Helper()
	binary, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	how := "hasty"
	if _, is := w.forge.(outside); is {
		how = "patient"
	}
	w.store.Spend()
	cmd := exec.CommandContext(w.t.Context(), binary, args...)
	cmd.Dir = w.store.Dir
	cmd.Env = []string{
		"GOGC=" + os.Getenv("GOGC"), // as make test has it: short processes spend much on garbage
		asProgram + "=" + how, "HOME=" + w.store.Dir, "CLAUDEOPS_STATE_DIR=" + w.store.Dir, "CLAUDEOPS_TIER=2",
		w.kind.options.Variables.Address + "=" + w.forge.URL(), w.kind.options.Variables.Token + "=" + w.forge.Token(),
	}
	return cmd
}

// process prepares `claudeops pr create` for what is asked for.
func (w *world) process(out *bytes.Buffer) *exec.Cmd {
	w.t.Helper()
	cmd := w.program("pr", "create", "--json", "--from", "-")
	asked := w.asked
	if asked == nil {
		asked = w.request()
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(asked), out, out
	return cmd
}

// killedAt runs the process and kills it when its n-th request arrives; the server acts on that request or does not.
func (w *world) killedAt(n int, acts bool) {
	w.t.Helper()
	arrived := 0
	w.killedWhen(func(*http.Request) bool {
		arrived++
		return arrived == n
	}, acts)
}

// killedWhen runs the process and kills it when the first request arrives that matches.
func (w *world) killedWhen(match func(*http.Request) bool, acts bool) {
	w.t.Helper()
	var out bytes.Buffer
	cmd := w.process(&out)
	kind := httpfault.ResetBefore
	if acts {
		kind = httpfault.ResetAfter
	}
	w.forge.Faults().Plan(func(r *http.Request) bool {
		if !match(r) {
			return false
		}
		_ = cmd.Process.Kill() // an error says that it has ended
		return true
	}, httpfault.Fault{Kind: kind})
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() >= 0 {
		w.t.Fatalf("it was not killed: %v\n%s", err, &out)
	}
	w.said = append(w.said, out.String())
}

// endsAt calls a service of the world, and goes on as if its process had been killed when its n-th request arrived: the
// records are those of that moment. The server acts on that request or does not, and is asked nothing after it.
func (w *world) endsAt(n int, acts bool, call func()) {
	w.t.Helper()
	var left storetest.Image
	var notRead error
	kind := httpfault.ResetBefore
	if acts {
		kind = httpfault.ResetAfter
	}
	arrived := 0
	w.forge.Faults().Plan(func(*http.Request) bool {
		if arrived++; arrived != n {
			return false
		}
		left, notRead = w.store.Image(w.t.Context())
		return true
	}, httpfault.Fault{Kind: kind})
	w.forge.Faults().PlanFrom(n+1, httpfault.Fault{Kind: httpfault.ResetBefore})
	call()
	if made := len(w.forge.Faults().Requests()); left == nil || notRead != nil {
		w.t.Fatalf("it made %d requests, %v", made, notRead)
	}
	w.store = records.Open(w.t, left, w.now)
}

// A process is killed where the server acts and the state folder stays; one of its own follows at the last request.
// Elsewhere, as in the tables below but for the first request that writes, the records are taken as they are when the
// request arrives, which is what a process that is killed leaves: see package crash. Of the requests before the first
// that writes only the last is tried: nothing is there and nothing is reserved until then.
func TestAProcessThatIsKilledAtWhicheverRequestLeavesTheNextOneToFinish(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.title(), func(t *testing.T) {
			t.Parallel()
			undisturbed := sequenceOfProposal(t, k)
			for n := 1; n <= len(undisturbed); n++ {
				for c := range 4 {
					acts, lost := c%2 == 1, c/2 == 1
					if !k.triesWrites(undisturbed, n, c) && (n != slices.Index(undisturbed, true) || acts) {
						continue
					}
					t.Run(fmt.Sprintf("request %d, the server acts: %t, the state folder is lost: %t", n, acts, lost),
						func(t *testing.T) {
							t.Parallel()
							w := newWorld(t, k)
							last := n == len(undisturbed) && acts && !lost
							if acts && !lost {
								w.killedAt(n, acts)
							} else {
								w.endsAt(n, acts, func() { _, _ = w.create(t.Context()) })
							}
							w.assertAtMostOne("after the kill")
							w.forge.Faults().Forget()
							if lost {
								w.loseState()
							}
							w.assertTheOne(w.comesNext(last).Number)
							w.assertRecords()
							w.assertNoToken()
						})
				}
			}
		})
	}
}

// comesNext makes the request once more after a process was killed, by a process or by a service on its records.
func (w *world) comesNext(process bool) prflow.CreateResult {
	w.t.Helper()
	if process {
		return w.finished()
	}
	if w.store.IsSpent() {
		w.takeKey()
	}
	result, err := w.create(w.t.Context())
	if err != nil {
		w.t.Fatalf("the next one failed: %v", err)
	}
	return result
}

// newRevisedFor is newRevised, for processes: they share records and key with the services of the world.
func newRevisedFor(t *testing.T, k kind, processes bool) *revised {
	t.Helper()
	w, first := newOpenedFor(t, k, processes)
	r := &revised{world: w, branch: first.Branch, head: first.Commit}
	w.asked = r.request()
	w.askForChanges(first.Number)
	w.forge.Faults().Forget()
	return r
}

// newOpenedFor is a world with an open pull request, for processes or for services alone.
func newOpenedFor(t *testing.T, k kind, processes bool) (*world, prflow.CreateResult) {
	t.Helper()
	w := newWorld(t, k)
	if processes {
		w.takeKey()
	}
	first, err := w.createOf(t.Context(), w.service(), w.titled("Check inodes", "# Inodes\n"))
	if err != nil {
		t.Fatal(err)
	}
	return w, first
}

// takeKey gives the services of the world the key of processes, which is in the state folder.
func (w *world) takeKey() {
	w.t.Helper()
	w.store.Spend()
	key, err := config.LoadMarkKey(w.store.Dir)
	if err != nil {
		w.t.Fatal(err)
	}
	w.key = string(key)
}

// finished runs the process to a good end.
func (w *world) finished() (result prflow.CreateResult) {
	w.t.Helper()
	var out, log bytes.Buffer
	cmd := w.process(&out)
	cmd.Stderr = &log
	err := cmd.Run()
	w.said = append(w.said, out.String(), log.String())
	if err != nil {
		w.t.Fatalf("the process failed: %v\n%s%s", err, &out, &log)
	}
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		w.t.Fatalf("%v\n%s", err, &out)
	}
	return result
}

// assertRevisionRecords demands that the records have the one revision, with the commit that the branch has, and that
// the audit says once that it was made.
func (r *revised) assertRevisionRecords() {
	r.t.Helper()
	made, err := r.store.History.MadeOf(r.t.Context(), r.kind.name, r.repo.Owner, r.repo.Name, 1)
	if err != nil {
		r.t.Fatal(err)
	}
	tip := r.seen().tip
	if len(made) != 2 || made[1].Revises != 1 || made[1].Commit != tip {
		r.t.Errorf("the records have %+v, and the branch is at %s", made, tip)
	}
	said := 0
	for _, row := range r.audit() {
		if row.Outcome == record.OutcomeRevised {
			said++
		}
	}
	if said != 1 {
		r.t.Errorf("the audit says %d times that it was revised", said)
	}
}

// reviseSequenceByProcess returns the requests of an undisturbed process for a revision.
func reviseSequenceByProcess(t *testing.T, k kind) sequence {
	t.Helper()
	r := newRevisedFor(t, k, true)
	if result := r.finished(); !result.Revised || result.Reused {
		t.Fatalf("%+v", result)
	}
	r.assertOnce("undisturbed", true)
	r.assertRevisionRecords()
	return sequenceOf(r.forge.Faults().Requests())
}

// actsOn are the cases of a killed process: whether the server acts on its request. A read has one, since its answer
// reaches nobody.
func actsOn(writes bool) []bool {
	if writes {
		return []bool{false, true}
	}
	return []bool{false}
}

// isKilled reports whether a process is killed at the request with the index n. With a real forge it always is.
func (k kind) isKilled(requests sequence, n int, acts bool) bool {
	return k.real || acts && n == slices.Index(requests, true)
}

func TestAProcessThatIsKilledAtWhicheverRequestOfARevisionLeavesTheNextOneToFinish(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.title(), func(t *testing.T) {
			t.Parallel()
			killAtEachRequestOfARevision(t, k)
		})
	}
}

func killAtEachRequestOfARevision(t *testing.T, k kind) {
	t.Helper()
	requests := reviseSequenceByProcess(t, k)
	for n := slices.Index(requests, true) - 1; n < len(requests); n++ {
		for _, acts := range actsOn(requests[n]) {
			t.Run(fmt.Sprintf("request %d, the server acts: %t", n+1, acts), func(t *testing.T) {
				t.Parallel()
				killed := k.isKilled(requests, n, acts)
				r := newRevisedFor(t, k, killed)
				if killed {
					r.killedAt(n+1, acts)
				} else {
					r.endsAt(n+1, acts, func() { _, _ = r.revise(t.Context()) })
				}
				r.assertOnce("after the kill", false)
				r.forge.Faults().Forget()
				if again, err := r.revise(t.Context()); err != nil || again.Number != 1 || !again.Revised {
					t.Errorf("the identical call: %+v, %v", again, err)
				}
				r.assertOnce("after the identical call", false)
				r.settleLeft(t.Context())
				r.assertOnce("at the end", true)
				r.assertRevisionRecords()
				r.assertRecords()
				r.assertNoToken()
			})
		}
	}
}

// newQuestionFor is newQuestion, as newRevisedFor is newRevised.
func newQuestionFor(t *testing.T, k kind, commit, processes bool) *questioned {
	t.Helper()
	w, first := newOpenedFor(t, k, processes)
	return newQuestioned(t, w, first, commit)
}

func TestAProcessThatIsKilledAtWhicheverRequestOfAnAnswerPostsNothingTwice(t *testing.T) {
	for _, commit := range []bool{false, true} {
		of := prompt()
		if commit {
			of = kinds()
		}
		for _, k := range of {
			t.Run(fmt.Sprintf("%s, with a commit: %t", k.title(), commit), func(t *testing.T) {
				t.Parallel()
				killAtEachRequestOfAnAnswer(t, k, commit)
			})
		}
	}
}

func killAtEachRequestOfAnAnswer(t *testing.T, k kind, commit bool) {
	t.Helper()
	undisturbed := newQuestionFor(t, k, commit, true)
	if result := undisturbed.finished(); result.Replies != 3 {
		t.Fatalf("%+v", result)
	}
	undisturbed.assertPosted("undisturbed", true)
	requests := sequenceOf(undisturbed.forge.Faults().Requests())
	t.Logf("%d requests", len(requests))
	for n := slices.Index(requests, true) - 1; n < len(requests); n++ {
		for _, acts := range actsOn(requests[n]) {
			t.Run(fmt.Sprintf("request %d, the server acts: %t", n+1, acts), func(t *testing.T) {
				t.Parallel()
				killed := k.isKilled(requests, n, acts)
				q := newQuestionFor(t, k, commit, killed)
				if killed {
					q.killedAt(n+1, acts)
				} else {
					q.endsAt(n+1, acts, func() { _, _ = q.answer(t.Context()) })
				}
				q.assertPosted("after the kill", false)
				q.forge.Faults().Forget()
				q.finish(t.Context())
			})
		}
	}
}
