//go:build e2e && linux

package e2e

import (
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// underway is a run that has not ended.
type underway struct {
	stub *messagesStub
	done <-chan finished
}

// begin starts a run.
func (r *rig) begin(t *testing.T, m sessionModel, args ...string) underway {
	t.Helper()
	stub := newSessionStub(t, m)
	return underway{stub, r.start(t, r.environment(stub.URL),
		append([]string{"/app/claudeops", "run", "--json"}, args...)...)}
}

// end waits for the end of a run.
func (r *rig) end(t *testing.T, u underway) told {
	t.Helper()
	got := told{outcome: (<-u.done).or(t), seen: u.stub.requests(t)}
	if got.stdout != "" {
		got.sessions = decode[sessions](t, got.stdout).Sessions
	}
	r.assertDiscreet(t, got)
	return got
}

// signal sends a signal to the supervisor.
func (r *rig) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(r.one(t, "/app/claudeops run"), s); err != nil {
		t.Fatal(err)
	}
}

// reached waits until something has happened in a session, which must not end before.
func (u underway) reached(t *testing.T, happened <-chan struct{}) {
	t.Helper()
	select {
	case <-happened:
	case early := <-u.done:
		t.Fatalf("the run ended early: %+v", early)
	}
}

func (u underway) assertNotDone(t *testing.T) {
	t.Helper()
	select {
	case early := <-u.done:
		t.Fatalf("the run ended early: %+v", early)
	case <-time.After(10 * time.Millisecond): // until it is asked again
	}
}

// gate is opened once, by the test or by its end.
type gate struct {
	closed chan struct{}
	open   func()
}

func newGate() gate {
	closed := make(chan struct{})
	return gate{closed, sync.OnceFunc(func() { close(closed) })}
}

func sessionEndedWhileItsModelThinks(t *testing.T, r *rig) {
	thinks, answer := newGate(), newGate()
	u := r.begin(t, func(string, []seenResult) reply {
		thinks.open()
		<-answer.closed
		return use("create_pr", r.proposal())
	}, "--tier", "2")
	t.Cleanup(answer.open)
	u.reached(t, thinks.closed)
	other := startContainer(t, r.args)
	second := other.exec(t, r.environment(u.stub.URL), "/app/claudeops", "run", "--tier", "1")
	if second.code != 3 || second.stdout != "" || !strings.Contains(second.stderr, "is running in this state folder") {
		t.Errorf("a second session beside it: exit %d\n%s%s", second.code, second.stdout, second.stderr)
	}
	other.close(t)
	r.signal(t, syscall.SIGTERM)
	got := (<-u.done).or(t)
	answer.open()
	u.done = closedWith(got)
	if s := r.end(t, u).one(t, "cancelled"); !strings.Contains(s.Reason, "signal") || s.Counts != (counts{}) {
		t.Errorf("recorded %+v", s)
	}
	r.assertNothingLeft(t)
	r.assertEmpty(t)
	r.assertAudited(t)
}

// closedWith is a run that has ended.
func closedWith(o outcome) <-chan finished {
	done := make(chan finished, 1)
	done <- finished{outcome: o}
	return done
}

// A proposal that is being written when the signal comes is finished and recorded, though the CLI has ended by then.
func sessionEndedWhileItProposes(t *testing.T, r *rig) {
	writing, write := r.hold(t, r.world)
	u := r.begin(t, scriptedSession(use("create_pr", r.proposal())), "--tier", "2")
	writing(u)
	claude := r.one(t, "claude -p")
	r.signal(t, syscall.SIGTERM)
	awaitEnd(t, claude)
	u.assertNotDone(t)
	write()
	s := r.end(t, u).one(t, "cancelled")
	r.assertNothingLeft(t)
	switch s.Counts {
	case counts{Opened: 1}:
		r.assertProposed(t, quieterDiskBranch, r.proposal())
		r.assertAudited(t, "opened")
	case counts{Failed: 1}: // on a machine so busy that the writer lost its patience, 20 seconds, while it was held
		r.assertEmpty(t)
	default:
		t.Errorf("recorded %+v", s)
	}
	r.assertSettles(t, false)
}

// assertSettles holds that after `pr resume` there is a pull request with its branch, or neither, and that the same
// proposal then comes to one. With cut, the writer was killed while a request was on its way: what arrives after its
// death may leave a branch until the same is proposed again.
func (r *rig) assertSettles(t *testing.T, cut bool) {
	t.Helper()
	if got := r.exec(t, nil, "/app/claudeops", "pr", "resume"); got.code != 0 {
		t.Errorf("pr resume: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	branches, prs := r.branches(t), r.opened(t, r.container)
	late := cut && prs == 0 && len(branches) == 1
	if len(branches) != prs && !late || prs > 1 {
		t.Errorf("after pr resume there are branches %v and %d pull requests", branches, prs)
	}
	again := r.run(t, scriptedSession(use("create_pr", r.proposal())), "--tier", "2").one(t, "succeeded")
	if again.Counts.Opened+again.Counts.Reused != 1 {
		t.Errorf("the same again is recorded as %+v", again)
	}
	if prs := r.opened(t, r.container); prs != 1 {
		t.Errorf("there are %d pull requests in the end, want one", prs)
	}
	r.assertProposed(t, quieterDiskBranch, r.proposal())
	_ = r.audited(t)
}

// What kills the supervisor kills its agent, and cuts what it wrote: the next session closes the record, removes the
// folders, and what was begun is settled.
func sessionWhoseSupervisorIsKilled(t *testing.T, r *rig) {
	writing, write := r.hold(t, r.world)
	u := r.begin(t, scriptedSession(use("create_pr", r.proposal())), "--tier", "2")
	writing(u)
	claude, server, reaper := r.one(t, "claude -p"), r.one(t, "/app/claudeops-connect"), r.one(t,
		"claudeops session-reaper")
	r.signal(t, syscall.SIGKILL)
	awaitEnd(t, claude)
	awaitEnd(t, server)
	awaitEnd(t, reaper)
	write()
	if got := r.end(t, u); got.code != 137 || got.stdout != "" {
		t.Errorf("exit %d: %s%s", got.code, got.stdout, got.stderr)
	}
	for _, pid := range r.running("") {
		t.Errorf("left running: %s", proc(pid, "cmdline"))
	}
	left := r.exec(t, nil, "ls", "-A", "/tmp")
	names := slices.DeleteFunc(strings.Fields(left.stdout), func(name string) bool {
		// of a git command that was cut off in the middle of a commit; it goes a day later
		if strings.HasPrefix(name, "claudeops-git-") {
			r.removeAsOperator(t, "/tmp/"+name)
			return true
		}
		return twoUsers() && strings.HasSuffix(name, "-private")
	})
	if len(names) != 2 || !strings.HasPrefix(names[0], "claudeops-door-") {
		t.Fatalf("the session's folders are not there for the next one to remove: %+v", left)
	}
	id, ok := strings.CutPrefix(names[1], "claudeops-session-")
	if !ok {
		t.Fatalf("the session's folder is not there for the next one to remove: %+v", left)
	}
	if got := r.exec(t, nil, "find", "/tmp", "-name", "mcp.json"); got.stdout != "" {
		t.Errorf("the configuration is still there: %s", got.stdout)
	}
	next := r.run(t, scriptedSession(), "--tier", "1")
	next.one(t, "succeeded")
	if !strings.Contains(next.stderr, "interrupted") || !strings.Contains(next.stderr, id) {
		t.Errorf("the next run does not say that %s was interrupted: %s", id, next.stderr)
	}
	r.assertSettles(t, true)
}

// removeAsOperator removes a folder of claudeops's own user. The container's shell is root without the right to pass
// over modes where agents have a user of their own.
func (r *rig) removeAsOperator(t *testing.T, folder string) {
	t.Helper()
	command := []string{"rm", "-r", folder}
	if twoUsers() {
		command = append([]string{"setpriv", "--reuid", "10001", "--regid", "10001", "--clear-groups"}, command...)
	}
	if got := r.exec(t, nil, command...); got.code != 0 {
		t.Errorf("%s cannot be removed: %s", folder, got.stderr)
	}
}
