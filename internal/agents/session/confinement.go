package session

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/processtree"
	"github.com/claudeops/claudeops/internal/system/sandbox"
)

// Confinement keeps agents from our files and processes.
type Confinement struct {
	// Profile is what every session may reach, beside its own folder and the CLI, without a user. Its zero value sets no
	// boundary.
	Profile sandbox.Profile
	// Users are the users that sessions run as, one at a time, if the boundary is user.
	Users sandbox.Users
	// Login is the folder in which the CLI keeps the login that agents use; "" where they have a credential in their
	// environment.
	Login string
	// Required says why no session may start without a boundary that lacks nothing; "" where one may. nil: it may.
	Required func() string
	// Exposed says which files of ours agents could change or read by the files' modes, owners and access lists, so that
	// no session may start, and what to do about it; "" for none. nil: that is not looked at.
	Exposed func() string
	// Managed says why the CLI would start no MCP server of a session, so that none may start; "" if it would. nil: that
	// is not looked at.
	Managed func() string
}

// boundary returns the boundary of sessions. Without doors the MCP server is among the agent's processes, with the
// tokens and the records that a boundary keeps from them.
func (s Settings) boundary() sandbox.Boundary {
	b := s.Confinement.Profile.Boundary
	switch {
	case !b.Held():
		return sandbox.Boundary{Kind: sandbox.None, Why: b.Why}
	case s.Server.Doors == nil:
		return sandbox.Boundary{Kind: sandbox.None, Why: "the MCP server is among the agent's processes"}
	}
	return b
}

// checkFiles refuses a session whose agent could change what it is judged by, or read our secrets, or would not reach
// our MCP server.
func (c Confinement) checkFiles() error {
	for _, look := range []func() string{c.Exposed, c.Managed} {
		if look == nil {
			continue
		}
		if why := look(); why != "" {
			return fault.New(fault.Misconfigured, "no session may start: %s", why)
		}
	}
	return nil
}

// checkBoundary refuses a session without the boundary that the operator requires.
func (s Settings) checkBoundary() error {
	if s.Confinement.Required == nil {
		return nil
	}
	b, why := s.boundary(), s.Confinement.Required()
	if why == "" || b.Whole() {
		return nil
	}
	has := b.String()
	if b.Why != "" {
		has += " (" + b.Why + ")"
	}
	return fault.New(fault.Misconfigured,
		"no session may start: %s, and the boundary here is %s; docs/explain/boundary.md says how to get one", why, has)
}

// boundaryOf returns the boundary of a session of a user; nil for ours.
func (s Settings) boundaryOf(account *sandbox.Account) sandbox.Boundary {
	b := s.boundary()
	if account != nil {
		b.Account = account.Name
	}
	return b
}

// claimUser claims a user for one session; nil, and no error, where sessions run as ours. conflict if other sessions
// have all of them.
func (s Settings) claimUser() (*sandbox.Claim, error) {
	if s.boundary().Kind != sandbox.User {
		return nil, nil
	}
	c, err := s.Confinement.Users.Claim()
	if errors.Is(err, sandbox.ErrAllClaimed) {
		return nil, fault.Wrap(err, fault.Conflict,
			"no user is left for the agent: other sessions on this machine run as %s; wait until one ends, or "+
				"give agents more users (CLAUDEOPS_AGENT_USER)", s.boundary().Account)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "no user can be claimed for the agent in %s", s.Confinement.Users.Folder)
	}
	return c, nil
}

// profile returns what one session may reach.
func (s Settings) profile(f *folder, binary string) sandbox.Profile {
	p := s.Confinement.Profile
	p.Boundary, p.Account = s.boundaryOf(f.account), f.account
	p.Read = slices.Concat(p.Read, programFiles(binary), []string{f.private()})
	p.Write = slices.Concat(p.Write, []string{f.work(), f.temp(), f.handoffDir(), f.home()})
	if f.door != nil {
		p.Read = append(p.Read, f.door.Folder(), s.Server.Connector[0])
		p.Sockets = append(slices.Clone(p.Sockets), f.door.Folder())
	}
	if s.Confinement.Login != "" {
		p.Write = append(p.Write, s.Confinement.Login)
	}
	return p
}

// programFiles returns the files of the CLI: its binary, and where that is a script of a package, the packages that
// were installed with it.
func programFiles(binary string) []string {
	resolved := files.Resolve(binary)
	const packages = "/node_modules/"
	if at := strings.Index(resolved, packages); at > 0 {
		return []string{binary, resolved, resolved[:at+len(packages)-1]}
	}
	return []string{binary, resolved}
}

// agentEnv returns the agent's. The CLI keeps a folder for each working folder in its cache.
func (s Settings) agentEnv(f *folder, mark string) []string {
	own := []string{mark, "TMPDIR=" + f.temp(), "XDG_CACHE_HOME=" + f.temp()}
	if s.boundary().Held() {
		own = append(own, "HOME="+f.home(), "CLAUDE_CODE_TMPDIR="+f.temp()) // nothing is left there for the next session
		if s.Confinement.Login != "" {
			own = append(own, "CLAUDE_CONFIG_DIR="+s.Confinement.Login)
		}
		if f.account != nil {
			own = append(own, "USER="+f.account.Name, "LOGNAME="+f.account.Name)
		}
	}
	named := func(variable string) string {
		name, _, _ := strings.Cut(variable, "=")
		return name
	}
	// which of two counts differs from program to program
	env := slices.DeleteFunc(slices.Clone(s.Claude.Env), func(given string) bool {
		return slices.ContainsFunc(own, func(o string) bool { return named(o) == named(given) })
	})
	return append(env, own...)
}

// processLockName is the file in the state folder whose lock lasts as long as a session has processes: the reaper above
// them has inherited it, and keeps it when the supervisor has been killed.
const processLockName = "session-processes.lock"

// lockRetry is the interval between attempts to take the lock.
const lockRetry = 20 * time.Millisecond

// processes keeps those of one session apart from those of the next.
type processes struct {
	lock  *os.File
	group string         // their control group; "" for none
	claim *sandbox.Claim // of the user that they run as; nil for ours
}

// account returns the user that they run as; nil for ours.
func (p *processes) account() *sandbox.Account {
	if p == nil || p.claim == nil {
		return nil
	}
	return &p.claim.Account
}

// lockProcesses waits until no process of an earlier session runs, and keeps the next session from starting. conflict
// if some run still after that time.
func (f Folders) lockProcesses(ctx context.Context, atMost time.Duration) (*processes, error) {
	file, err := f.openLock(processLockName)
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for {
		taken, err := tryLock(file)
		switch {
		case err != nil:
			return nil, errors.Join(err, file.Close())
		case taken:
			return &processes{lock: file}, nil
		case bounded.Err() != nil:
			return nil, errors.Join(fault.New(fault.Conflict,
				"processes of the last session have not ended yet; try again in a minute, or end them (its record may name them)"),
				file.Close())
		}
		timer := time.NewTimer(lockRetry)
		select {
		case <-timer.C:
		case <-bounded.Done():
			timer.Stop()
		}
	}
}

// options returns the options of the session's process tree.
func (p *processes) options(mark string, grace time.Duration) processtree.Options {
	o := processtree.Options{Grace: grace, Mark: mark}
	if p != nil {
		o.Group, o.Keep = p.group, append(p.claim.Keeps(), p.lock)
	}
	return o
}

// releaseProcesses gives up this process's part, and what their user left: the lock and the claim last until the
// session's processes have ended.
func (p *processes) releaseProcesses() error {
	if p == nil {
		return nil
	}
	return errors.Join(processtree.RemoveGroup(p.group), p.claim.Release(), p.lock.Close())
}
