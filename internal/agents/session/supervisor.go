package session

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/processtree"
	"github.com/claudeops/claudeops/internal/system/sandbox"
)

// Supervisor runs sessions, one at a time for each state folder, whatever process asks. It is safe for concurrent use.
type Supervisor struct {
	runner *Runner

	mu      sync.Mutex
	current *chain // nil if none runs here
	closed  bool
}

// chain holds a session and those that it escalates to.
type chain struct {
	id     string // of the session that runs now
	spec   Spec
	cancel context.CancelCauseFunc
	done   chan struct{}
	ran    []sessions.Record
	err    error
}

// NewSupervisor makes a Supervisor.
func NewSupervisor(r *Runner) *Supervisor { return &Supervisor{runner: r} }

// Start starts a session and returns its id as soon as its beginning is recorded. conflict, naming the other, if one
// runs in this state folder; the errors of Settings.Check and of Spec.Admit. The session lives on when ctx ends; Stop
// and Close end it. Sessions of killed processes are closed first.
func (s *Supervisor) Start(ctx context.Context, spec Spec) (id string, err error) {
	c, err := s.lockAndStart(ctx, context.WithoutCancel(ctx), spec)
	if err != nil {
		return "", err
	}
	return c.spec.ID, nil
}

// Run is like Start, but waits for the end of the session and of those that it escalated to. It returns their records
// in their order. When ctx ends, the session is ended.
func (s *Supervisor) Run(ctx context.Context, spec Spec) ([]sessions.Record, error) {
	c, err := s.lockAndStart(ctx, ctx, spec)
	if err != nil {
		return nil, err
	}
	<-c.done
	return c.ran, c.err
}

// lockAndStart takes the lock and starts the chain in the background. life ends it.
func (s *Supervisor) lockAndStart(ctx, life context.Context, spec Spec) (*chain, error) {
	if err := s.runner.Settings.Check(spec); err != nil {
		return nil, err
	}
	if spec.ID == "" {
		spec.ID = s.runner.NewID()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fault.New(fault.Conflict, "claudeops is shutting down and starts no session")
	}
	if s.current != nil {
		return nil, fault.New(fault.Conflict, "session %s is running; wait until it ends, or stop it", s.current.id)
	}
	// The store makes the state folder, which the lock needs.
	if _, err := s.runner.Records.Sessions(ctx, sessions.Query{Limit: 1}); err != nil {
		return nil, err
	}
	l, err := s.runner.Settings.Folders.takeLock()
	if err != nil {
		return nil, err
	}
	spec.processes, err = s.isolate(ctx, l)
	if err != nil {
		return nil, errors.Join(err, l.unlock())
	}
	c, err := s.startChain(ctx, life, spec, l)
	if err != nil {
		return nil, errors.Join(err, spec.processes.releaseProcesses(), l.unlock())
	}
	return c, nil
}

// isolate gives the next session what keeps its processes apart from those of others, after what is left of the last
// one is gone.
func (s *Supervisor) isolate(ctx context.Context, l *folderLock) (*processes, error) {
	settings := s.runner.Settings
	p, err := settings.Folders.lockProcesses(ctx, settings.Limits.Clear)
	if err != nil {
		return nil, err
	}
	l.removeLeftovers(settings.Confinement.Users)
	if p.claim, err = settings.claimUser(); err != nil {
		return nil, errors.Join(err, p.releaseProcesses())
	}
	return p, nil
}

// startChain starts the chain under the locks.
func (s *Supervisor) startChain(ctx, life context.Context, spec Spec, l *folderLock) (*chain, error) {
	closed, err := s.runner.Records.CloseInterrupted(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range closed {
		s.runner.Log.Warn("a session was interrupted: the process that ran it was killed", "session", id)
	}
	if s.runner.Settings.Paused != nil { // before the audit has that the session was started
		if err := s.runner.Settings.Paused(ctx); err != nil {
			return nil, err
		}
	}
	if spec.Admit != nil {
		if err := spec.Admit(ctx, spec.ID); err != nil {
			return nil, err
		}
	}
	record, err := s.announce(ctx, l, spec)
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancelCause(life)
	c := &chain{id: spec.ID, spec: spec, cancel: cancel, done: make(chan struct{})}
	s.current = c
	go s.runChain(life, c, l, record)
	go s.applyStopRequest(life, c)
	return c, nil
}

// stopLook is the interval at which the process that runs a session checks for a person's stop request from elsewhere.
const stopLook = time.Second

// applyStopRequest ends the chain when a person has requested, at another process, that its session end.
func (s *Supervisor) applyStopRequest(ctx context.Context, c *chain) {
	ticker := time.NewTicker(stopLook)
	defer ticker.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		s.mu.Lock()
		id := c.id
		s.mu.Unlock()
		asked, err := s.runner.Records.StopAsked(ctx, id)
		if err != nil && ctx.Err() == nil {
			s.runner.Log.Warn("not seen whether a session is to end", "session", id, "error", fault.From(err).Message)
		}
		if asked {
			c.cancel(stopped{})
			return
		}
	}
}

// announce says in the lock which session runs, and records that it has begun.
func (s *Supervisor) announce(ctx context.Context, l *folderLock, spec Spec) (sessions.Record, error) {
	group, why := processtree.MakeGroup(folderPrefix + spec.ID)
	spec.processes.group = group
	s.runner.Log.Info("processes of a session are kept together", "session", spec.ID, "control_group", group,
		"no_control_group", why)
	content := lockContent{
		Session: spec.ID, Folder: s.runner.Settings.Folders.sessionFolder(spec.ID), Group: group,
		Door: s.runner.Settings.Server.doorFolder(s.runner.Settings.Folders.Temp, spec.ID),
	}
	if account := spec.processes.account(); account != nil {
		content.UID, content.GID = account.UID, account.GID
	}
	if err := l.writeContent(content); err != nil {
		return sessions.Record{}, fault.Wrap(err, fault.Internal, "the session lock cannot be written; is the disk full?")
	}
	return s.runner.recordStart(ctx, spec)
}

// startEscalated begins a session that another escalated to.
func (s *Supervisor) startEscalated(ctx context.Context, l *folderLock, spec *Spec) (sessions.Record, error) {
	var err error
	if spec.processes, err = s.isolate(ctx, l); err != nil {
		return sessions.Record{}, err
	}
	record, err := s.announce(ctx, l, *spec)
	if err != nil {
		return record, errors.Join(err, spec.processes.releaseProcesses())
	}
	return record, nil
}

// runChain runs the sessions of a chain, at most one for each tier, since each has a higher one than the last. record
// is the beginning of the first.
func (s *Supervisor) runChain(ctx context.Context, c *chain, l *folderLock, record sessions.Record) {
	defer close(c.done)
	defer func() {
		err := l.unlock()
		s.mu.Lock()
		s.current = nil
		s.mu.Unlock()
		c.cancel(nil)
		if err != nil {
			s.runner.Log.Error("the session lock could not be given back", "error", err)
		}
	}()
	for spec := c.spec; ; {
		record, c.err = s.runner.runToEnd(ctx, spec, record)
		if err := spec.processes.releaseProcesses(); err != nil {
			s.runner.Log.Error("what kept a session's processes together could not be given back", "session", spec.ID, "error",
				err)
		}
		c.ran = append(c.ran, record)
		if c.err != nil {
			s.runner.Log.Error("a session could not be recorded", "session", spec.ID, "error", c.err)
			return
		}
		if record.Next == "" {
			return
		}
		if ctx.Err() != nil {
			c.err = s.giveUp(ctx, &c.ran[len(c.ran)-1], "it was told to end before the next session began")
			return
		}
		spec = s.runner.nextSpec(record, spec.Ceiling)
		spec.Scheduled = c.spec.Scheduled
		s.mu.Lock()
		c.id = spec.ID
		s.mu.Unlock()
		if record, c.err = s.startEscalated(ctx, l, &spec); fault.CodeOf(c.err) == fault.Paused {
			c.err = s.giveUp(ctx, &c.ran[len(c.ran)-1], fault.From(c.err).Message)
			return
		}
		if c.err != nil {
			s.runner.Log.Error("a session could not be recorded", "session", spec.ID, "error", c.err)
			return
		}
	}
}

// skip records that a session of tier 1 was due by the schedule and did not start.
func (s *Supervisor) skip(ctx context.Context, cause sessions.Cause, why string) error {
	r := s.runner
	now := r.Now().UTC()
	return r.Records.BeginSession(ctx, sessions.Record{
		ID: r.NewID(), Task: r.Settings.task(gitprovider.TierObserve, sessions.TriggerSchedule), StartedAt: now, EndedAt: now,
		Ending: sessions.Ending{State: sessions.StateSkipped, Cause: cause, Reason: why, ExitCode: -1},
	})
}

// giveUp records that the next session was not started after all, and why.
func (s *Supervisor) giveUp(ctx context.Context, record *sessions.Record, why string) error {
	record.Next, record.Escalation = "", "not escalated: "+why
	ctx, cancel := detached(ctx)
	defer cancel()
	return s.runner.Records.SaveSession(ctx, *record)
}

// Current returns the id of the session that runs in this process.
func (s *Supervisor) Current() (id string, running bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return "", false
	}
	return s.current.id, true
}

// Stop has the session with the id end, and does not wait for that. If another process runs it, the request is
// recorded, and that process checks the record every second. not_found if there is none, conflict if it has ended.
func (s *Supervisor) Stop(ctx context.Context, id string) error {
	s.mu.Lock()
	c := s.current
	if c != nil && c.id == id {
		c.cancel(stopped{})
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	return stopElsewhere(ctx, s.runner.Records, id)
}

// stopElsewhere does what Stop does, for a session that another process runs.
func stopElsewhere(ctx context.Context, records sessions.Records, id string) error {
	if _, err := records.CloseInterrupted(ctx); err != nil { // otherwise no process would obey it
		return err
	}
	record, err := records.Session(ctx, id)
	if err != nil {
		return err
	}
	if record.State == sessions.StateRunning {
		if err = records.AskStop(ctx, id); fault.CodeOf(err) != fault.NotFound { // it has ended meanwhile
			return err
		}
		if record, err = records.Session(ctx, id); err != nil {
			return err
		}
	}
	return fault.New(fault.Conflict, "session %s has ended already: %s", id, record.State)
}

// Wait waits until no session runs in this process, or ctx ends.
func (s *Supervisor) Wait(ctx context.Context) error {
	s.mu.Lock()
	c := s.current
	s.mu.Unlock()
	if c == nil {
		return nil
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fault.From(ctx.Err())
	}
}

// Close ends what runs, waits for its end, and lets nothing start any more.
func (s *Supervisor) Close() {
	s.mu.Lock()
	s.closed = true
	c := s.current
	s.mu.Unlock()
	if c != nil {
		c.cancel(context.Canceled)
		<-c.done
	}
}

// stopped is the cause of a context that was cancelled by a person.
type stopped struct{}

func (stopped) Error() string { return "a person stopped it" }

// lockName is the file in the state folder whose lock the supervisor holds while it runs sessions. The kernel drops the
// lock when the process ends, however it ends.
const lockName = "session.lock"

// lockContent is the JSON in the lock file, for people and programs that find it.
type lockContent struct {
	Session string `json:"session"`
	Folder  string `json:"folder"`
	Group   string `json:"group,omitempty"` // its control group
	Door    string `json:"door,omitempty"`  // the folder of its socket
	UID     int    `json:"uid,omitempty"`   // of its agent's user, where that is another
	GID     int    `json:"gid,omitempty"`   // of that user's group
}

// folderLock is the right to run sessions in one state folder.
type folderLock struct {
	file   *os.File
	before lockContent // what stood in it
}

// openLock opens a lock file in the state folder.
func (f Folders) openLock(name string) (*os.File, error) {
	path := filepath.Join(f.State, name)
	file, err := files.OpenLock(path)
	if err != nil {
		return nil, fault.Wrap(err, fault.Misconfigured,
			"the lock %s cannot be opened; check the folder and its permissions (CLAUDEOPS_STATE_DIR)", path)
	}
	return file, nil
}

func tryLock(f *os.File) (taken bool, err error) {
	taken, err = files.TryLock(f, true)
	if err != nil {
		return false, fault.Wrap(err, fault.Internal, "the lock %s cannot be taken; is the folder on a local disk?", f.Name())
	}
	return taken, nil
}

// takeLock takes the lock. conflict, naming the session, if a session runs already; internal if the folder cannot be
// used.
func (f Folders) takeLock() (*folderLock, error) {
	file, err := f.openLock(lockName)
	if err != nil {
		return nil, err
	}
	taken, err := tryLock(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	before := readLock(file)
	if !taken {
		who := "a session"
		if before.Session != "" {
			who = "session " + before.Session
		}
		return nil, errors.Join(fault.New(fault.Conflict,
			"%s is running in this state folder; wait until it ends, or stop it", who), file.Close())
	}
	return &folderLock{file, before}, nil
}

// removeLeftovers ends and removes what a killed supervisor, and whatever kept its processes together, left: what is in
// its session's control group or carries its mark, and its folder.
func (l *folderLock) removeLeftovers(users sandbox.Users) {
	left := l.before
	l.before = lockContent{}
	if !regexp.MustCompile(`^[0-9A-Z]{26}$`).MatchString(left.Session) || filepath.Base(left.Folder) != folderPrefix+
		left.Session {
		return
	}
	if filepath.Base(left.Group) == folderPrefix+left.Session {
		_ = processtree.RemoveGroup(left.Group) // what cannot be ended has been reported
	}
	_ = processtree.KillMarked(runMark + "=" + left.Session)
	if gateway.IsFolder(left.Door, left.Session) {
		_ = files.Temporary{Path: left.Door}.Remove()
	}
	if left.UID <= 0 || left.GID <= 0 {
		_ = removeFolder(left.Folder, nil) // where this fails, the system's own cleaning of temporary files is left
		return
	}
	// unless another session has the user by now, which then has ended and removed what it found
	claim, err := users.ClaimOne(left.UID)
	_ = removeFolder(left.Folder, &sandbox.Account{UID: left.UID, GID: left.GID})
	switch {
	case claim != nil && err == nil:
		_ = claim.Release() // which ends what runs as the user: the environment of its processes cannot be read
	case users.Usable() != nil:
		_ = processtree.KillUser(left.UID)
	}
}

func readLock(f *os.File) (c lockContent) {
	const most = 8 << 10
	text, err := io.ReadAll(io.NewSectionReader(f, 0, most))
	if err != nil || json.Unmarshal(text, &c) != nil {
		return lockContent{}
	}
	return c
}

// writeContent says in the file which session runs.
func (l *folderLock) writeContent(c lockContent) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.WriteAt(text, 0)
	return err
}

func (l *folderLock) unlock() error {
	return errors.Join(l.file.Truncate(0), l.file.Close())
}
