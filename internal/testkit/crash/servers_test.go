//go:build linux

package crash

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

const (
	servers   = 16
	calls     = 96
	contested = 4 // files that overlapping changes fight for
)

func TestSixteenServersProposeTheSameChange(t *testing.T) {
	w := newWorld(t)
	same := newCheck("Watch inodes", "checks/inodes.md", "# Inodes\n\nWarn at 80 %.\n")
	given := w.crowd(t, func(int) request { return same })
	pr := w.assertOne(t, 1, same)
	opened := 0
	for _, g := range given {
		if number, url := g.last().about(); number != pr.Number || url == "" || g.last().Error.Code != "" {
			t.Errorf("call %d was not answered with #%d: %+v", g.call, pr.Number, g.last())
		}
		if g.last().opened() {
			opened++
		}
	}
	if opened != 1 {
		t.Errorf("%d calls say that they opened it, want 1", opened)
	}
	w.assertCrowdRecorded(t, given, 1)
}

// Every change shares one of a few files with many others, and has one of its own. Half of them have a title, and so a
// branch name, of their own, too.
func TestSixteenServersProposeOverlappingChanges(t *testing.T) {
	w := newWorld(t)
	shared := func(call int) string { return fmt.Sprintf("checks/contested-%d.md", call%contested) }
	given := w.crowd(t, func(call int) request {
		title := "Watch " + shared(call)
		if call/contested%2 == 0 {
			title = fmt.Sprintf("%s, as of call %d", title, call)
		}
		r := newCheck(title, shared(call), fmt.Sprintf("# Contested\n\nBy call %d.\n", call))
		r.Files = append(r.Files, file{fmt.Sprintf("checks/own-%d.md", call), "create", "# Own\n"})
		return r
	})
	winners := map[string]turn{}
	for _, g := range given {
		if g.last().opened() {
			path := g.request.Files[0].Path
			if other, twice := winners[path]; twice {
				t.Errorf("calls %d and %d both opened a pull request on %s", other.call, g.call, path)
			}
			winners[path] = g
		}
	}
	if len(winners) != contested {
		t.Fatalf("%d of %d contested files have a pull request", len(winners), contested)
	}
	for _, g := range given {
		winner, a := winners[g.request.Files[0].Path], g.last()
		number, url := a.about()
		if number != winner.last().Number || url != winner.last().URL {
			t.Errorf("call %d was not answered with #%d: %+v", g.call, winner.last().Number, a)
		}
		if g.call != winner.call && !slices.Equal(a.Error.Existing.Paths, []string{g.request.Files[0].Path}) {
			t.Errorf("call %d was not refused for the one file that it shares: %+v", g.call, a)
		}
	}
	for _, winner := range winners {
		w.assertOne(t, winner.last().Number, winner.request)
	}
	w.assertCrowdRecorded(t, given, contested)
}

// turn is one call of a crowd with its answers: more than one if it was told to try again.
type turn struct {
	call    int
	request request
	answers []answer
}

func (g turn) last() answer { return g.answers[len(g.answers)-1] }

// crowd makes the calls from all servers at once: each server takes the next call when it has its answer.
func (w *world) crowd(t *testing.T, requestOf func(call int) request) []turn {
	t.Helper()
	all := w.serveMany(t, servers)
	given := make([]turn, calls)
	var next atomic.Int64
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for _, s := range all {
		wg.Go(func() {
			<-begin
			for call := int(next.Add(1)) - 1; call < calls; call = int(next.Add(1)) - 1 {
				g := turn{call: call, request: requestOf(call)}
				if g.answers = s.insist(t, g.request); g.answers == nil {
					return
				}
				given[call] = g
			}
		})
	}
	started := time.Now()
	close(begin)
	wg.Wait()
	t.Logf("%d calls from %d servers in %.1f s", calls, servers, time.Since(started).Seconds())
	for _, s := range all {
		s.end()
		if code := s.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("a server ended with exit code %d", code)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return given
}

// insist repeats a call that is told to, as an agent would, and returns all answers; nil if the server is gone.
func (s *server) insist(t *testing.T, r request) (answers []answer) {
	const tries = 3
	for range tries {
		a, err := s.create(r)
		if err != nil {
			t.Error(err)
			return nil
		}
		answers = append(answers, a)
		if a.Error.Code != "limit_reached" {
			return answers
		}
		if !a.Error.Retryable {
			t.Errorf("a refusal that more time would lift does not say so: %+v", a.Error)
		}
	}
	t.Errorf("refused %d times over: %+v", tries, answers)
	return answers
}

// assertCrowdRecorded holds that the audit has one row for each call, and that nothing but whole pull requests is
// there.
func (w *world) assertCrowdRecorded(t *testing.T, given []turn, prs int) {
	t.Helper()
	made := 0
	tally := map[string]int{}
	for _, g := range given {
		made += len(g.answers)
		for _, a := range g.answers {
			switch {
			case a.opened():
				tally["opened"]++
			case a.Reused:
				tally["reused"]++
			default:
				tally[a.Error.Code]++
			}
		}
	}
	t.Logf("answers: %v", tally)
	if rows := len(w.attempts(t)); rows != made {
		t.Errorf("%d calls have left %d rows in the audit", made, rows)
	}
	if open := w.pulls(t, gitprovider.StateOpen); len(open) != prs {
		t.Errorf("%d pull requests are open, want %d", len(open), prs)
	}
	w.assertSettled(t)
	w.assertWhole(t)
}

// server is an mcp-server with open pipes.
type server struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	calls int
}

// serve starts a server and shakes hands; more is added to its environment.
func (w *world) serve(t *testing.T, more ...string) *server {
	t.Helper()
	cmd, cancel := w.prepare(t, "claudeops", "mcp-server")
	cmd.Env = append(cmd.Env, more...)
	t.Cleanup(cancel)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{cmd: cmd, in: in, lines: bufio.NewScanner(out), calls: 1}
	t.Cleanup(s.end)
	fmt.Fprintln(in, initialize)
	if !s.lines.Scan() {
		t.Fatalf("no handshake: %v", s.lines.Err())
	}
	fmt.Fprintln(in, initialized)
	return s
}

// serveMany starts so many servers.
func (w *world) serveMany(t *testing.T, many int) []*server {
	t.Helper()
	all := make([]*server, many)
	for i := range all {
		all[i] = w.serve(t)
	}
	return all
}

// end closes the server's stdin and waits: it is done when it has answered everything.
func (s *server) end() {
	if s.cmd.ProcessState == nil {
		_ = s.in.Close()
		_ = s.cmd.Wait()
	}
}

// create calls create_pr and waits for the answer. It is for one caller at a time, from any goroutine.
func (s *server) create(r request) (a answer, err error) {
	text, err := s.call("create_pr", r)
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		return answer{}, fmt.Errorf("not an answer: %w: %s", err, text)
	}
	return a, nil
}

// call calls a tool and waits for the structured content of its answer.
func (s *server) call(tool string, arguments any) (json.RawMessage, error) {
	s.calls++
	if _, err := fmt.Fprintln(s.in, callOf(s.calls, tool, arguments)); err != nil {
		return nil, err
	}
	for s.lines.Scan() {
		var m message
		if err := json.Unmarshal(s.lines.Bytes(), &m); err != nil {
			return nil, fmt.Errorf("not a message: %w: %s", err, s.lines.Bytes())
		}
		if m.ID == s.calls && m.Error != nil {
			return nil, fmt.Errorf("the call was broken off: %s", m.Error)
		}
		if m.ID == s.calls { // others are progress
			return m.Result.Structured, nil
		}
	}
	return nil, fmt.Errorf("the server closed stdout: %w", s.lines.Err())
}

// The caps of these rounds: the one on open pull requests holds in each but the last ones, where the one on those that
// were made in the last hour does.
const (
	capRounds   = 6
	maxOpen     = 3
	maxAnHour   = 14
	capsOfRound = "version: 1\ncaps: {open_prs: %d, creations_per_hour: %d}\ncooldown_hours: 0\n"
)

func TestSixteenServersNeverPassACap(t *testing.T) {
	w := newWorld(t)
	w.setPolicy(t, fmt.Sprintf(capsOfRound, maxOpen, maxAnHour))
	all := w.serveMany(t, servers)
	for round := range capRounds {
		want := max(0, min(maxOpen, maxAnHour-round*maxOpen))
		given := make([]answer, servers)
		var wg sync.WaitGroup
		for i, s := range all {
			wg.Go(func() {
				name := fmt.Sprintf("%d-%d", round, i)
				a, err := s.create(newCheck("Watch "+name, "checks/"+name+".md", "# "+name+"\n"))
				if err != nil {
					t.Errorf("server %d: %v", i, err)
				}
				given[i] = a
			})
		}
		wg.Wait()
		for i, a := range given {
			if !a.opened() && (a.Error.Code != "limit_reached" || a.Error.RetryAfter <= 0) {
				t.Errorf("server %d in round %d: %+v", i, round, a)
			}
		}
		open := w.pulls(t, gitprovider.StateOpen)
		if len(open) != want {
			t.Fatalf("%d pull requests are open in round %d, want %d", len(open), round, want)
		}
		for _, pr := range open {
			w.end(t, pr, gitprovider.StateClosed)
		}
	}
	for _, s := range all {
		s.end()
	}
	w.assertSettled(t)
	w.assertWhole(t)
}
