package deploy

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Settings are what a Service is made of.
type Settings struct {
	Home      string   // AGENTPACK_HOME; "" for .agentpack of the user's home
	UserHome  string   // absolute
	CodexHome string   // CODEX_HOME; "" for .codex of the user's home
	Folder    string   // where the program was started; the project is the repository that it lies in, or itself
	Machine   []string // candidates for the machine's name, the best first
	Git       GitCommand
	Version   string
	NoWriting string // why nothing may be written, not even to finish what was cut off; "" if it may
	// Trusted says that whoever names a configuration is a person at this machine, so that it may say where Codex's folder is.
	Trusted bool
	// Repos are the repositories that the configuration comes from, as owner/name or provider:owner/name; none for the one that the
	// checkout was cloned from.
	Repos []string
	Now   func() time.Time
}

// GitCommand is how git is run.
type GitCommand struct {
	Path string
	Env  []string // variables: PATH, and others such as SSH_AUTH_SOCK
	// Learn is told the secrets that git signs in with, before it does; nil for nobody.
	Learn func(secrets ...string)
}

// GitEnvironment is what of the program's environment git needs: the search path, and how to reach other machines. credentials is a file in the
// form of git's credential store, for repositories over HTTPS; "" for none.
func GitEnvironment(lookup func(name string) (string, bool), credentials string) (variables []string) {
	if credentials != "" {
		variables = append(variables, credentialsVariable+credentials)
	}
	for _, name := range []string{"PATH", "SSH_AUTH_SOCK", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy"} {
		if value, _ := lookup(name); value != "" {
			variables = append(variables, name+"="+value)
		}
	}
	return variables
}

// MachineNames are what a machine is called by its system, the best first.
func MachineNames(lookup func(name string) (string, bool), hostname func() (string, error)) (names []string) {
	for _, name := range []string{"HOSTNAME", "COMPUTERNAME"} {
		if value, _ := lookup(name); value != "" {
			names = append(names, value)
		}
	}
	if name, err := hostname(); err == nil {
		names = append(names, name)
	}
	return names
}

// Service answers for one project on this machine, for every way in.
type Service struct {
	setup   Setup
	engine  *Engine
	version string
	repos   []string
	last    lastDesired
	quiet   quiet
}

// NewService makes a Service. It looks only for the folder of the project.
func NewService(s Settings) *Service {
	home := s.Home
	switch {
	case home == "":
		home = filepath.Join(s.UserHome, ".agentpack")
	case !filepath.IsAbs(home):
		home = filepath.Join(s.Folder, home)
	}
	git := NewGit(s.Git.Path, s.UserHome, home, s.Git.Env)
	git.learnStored(s.Git.Learn)
	engine := NewEngine(home, s.Now)
	engine.noWriting, engine.hashes = s.NoWriting, newHashes(home, s.Now)
	unchanged := filepath.Join(home, "cache", "unchanged")
	if s.NoWriting != "" {
		engine.hashes.file, unchanged = "", ""
	}
	return &Service{engine: engine, version: s.Version, repos: s.Repos, quiet: quiet{file: unchanged}, setup: Setup{
		Home: home, Places: Places{Home: s.UserHome, CodexHome: s.CodexHome, Project: projectOf(s.Folder), Trusted: s.Trusted},
		Machine: s.Machine, Origin: git.Origin, Git: git,
	}}
}

// Engine puts files in place; other toolsets use it too.
func (s *Service) Engine() *Engine { return s.engine }

// ready is an error if this program does not know where the user's files are.
func (s *Service) ready() error {
	if s.setup.Places.Home == "" {
		return invalidConfig("HOME is not set to an absolute path, so that nothing is known of the user's folders")
	}
	return nil
}

// Status compares with what was deployed.
func (s *Service) Status(ctx context.Context, r Request) (targets []TargetName, list []Drift, warnings []string, err error) {
	d, err := s.desire(ctx, r, s.engine.hashes)
	if err != nil {
		return nil, nil, nil, err
	}
	list, warnings, err = s.engine.Status(ctx, d)
	return d.Targets, list, warnings, err
}

// Plan says what a deployment would change.
func (s *Service) Plan(ctx context.Context, r Request) (*Plan, error) {
	p, said, err := s.planAgain(ctx, r)
	if p == nil && err == nil {
		p, err = s.fullPlan(ctx, r)
	}
	if err == nil && said != "" {
		p.Warnings = append(p.Warnings, said)
	}
	return p, err
}

// planAgain is the plan that another process has kept, if nothing has changed since; nil if there is none. said tells what a killed process
// began and this call has finished.
func (s *Service) planAgain(ctx context.Context, r Request) (p *Plan, said string, err error) {
	if err := s.ready(); err != nil {
		return nil, "", err
	}
	if !s.quiet.may() {
		return nil, "", nil
	}
	said, err = s.engine.looking(ctx, func() error {
		p = s.quiet.again(s.question(r))
		return nil
	})
	return p, said, err
}

// fullPlan is Plan, made of what is in place.
func (s *Service) fullPlan(ctx context.Context, r Request) (*Plan, error) {
	d, err := s.desire(ctx, r, s.engine.hashes)
	if err != nil {
		return nil, err
	}
	p, err := s.engine.Plan(ctx, d)
	if err == nil {
		seals, warnings := s.engine.unchanged.seals(d)
		if seals = append(seals, s.last.seals(d)...); len(seals) == unchangedSeals {
			s.quiet.keep(quietPlan{s.question(r), d.Targets, warnings, seals})
		}
	}
	return p, err
}

// Apply deploys. done is nil if nothing had to be done, or in a dry run.
func (s *Service) Apply(ctx context.Context, r Request, approval Approval, dryRun bool) (p *Plan, done *Done, err error) {
	d, err := s.desire(ctx, r, nil) // what is written is what is read now
	if err != nil {
		return nil, nil, err
	}
	if dryRun {
		p, err = s.engine.Plan(ctx, d)
		return p, nil, err
	}
	return s.engine.Apply(ctx, d, approval)
}

// Rollback puts back the files of a snapshot; see Engine.Rollback.
func (s *Service) Rollback(ctx context.Context, id string) (done *Done, warnings []string, err error) {
	if err := s.ready(); err != nil {
		return nil, nil, err
	}
	return s.engine.Rollback(ctx, id)
}

// Snapshot is a snapshot by its id. E_SNAPSHOT_NOT_FOUND for an id that is none.
func (s *Service) Snapshot(id string) (*Snapshot, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	return s.engine.state.Snapshot(id)
}

func (s *Service) desire(ctx context.Context, r Request, known *hashes) (*Desired, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	from := s.setup.inPlace(r)
	if known == nil {
		return s.setup.desire(ctx, r, from)
	}
	if d := s.last.again(r); d != nil {
		return d, nil
	}
	from.hashes, from.seal = known, newSeal(known.now())
	d, err := s.setup.desire(ctx, r, from)
	if err == nil {
		s.last.note(r, d, from.seal)
	}
	return d, err
}

// Project is the folder that project files go to.
func (s *Service) Project() string { return s.setup.Places.Project }

// projectOf is the repository that a folder lies in, or the folder itself. Links are resolved, so that one project has one name.
func projectOf(folder string) string {
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	for dir := folder; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return folder
		}
	}
}

// Origin is the address of a repository's remote origin; "" if there is none, or git cannot be run.
func (g *Git) Origin(ctx context.Context, dir string) string {
	address, _ := g.origin(ctx, dir)
	return address
}

// origin is Origin with the error of a git that cannot be run.
func (g *Git) origin(ctx context.Context, dir string) (string, error) {
	out, failure, err := g.run(ctx, dir, nil, "config", "--local", "--no-includes", "--get", "remote.origin.url")
	if err != nil && ctx.Err() == nil && !exists(dir) {
		return "", nil
	}
	if err != nil {
		return "", newError(GitFailed, "git_failed", []string{"retry_command"}, "git cannot be run: %s", err).because(err)
	}
	if failure != "" {
		return "", nil
	}
	return strings.TrimSpace(string(out)), nil
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// ignores reports whether git leaves a file out of commits. A folder in no repository ignores nothing, and knows is false.
func (g *Git) ignores(ctx context.Context, name string) (ignored, knows bool) {
	dir := filepath.Dir(name)
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			break
		} else if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return false, false
		}
		dir = filepath.Dir(dir)
	}
	top := projectOf(dir)
	if _, err := os.Lstat(filepath.Join(top, ".git")); err != nil {
		return false, false
	}
	out, _, err := g.run(ctx, top, nil, "check-ignore", "--no-index", "--", name)
	return len(out) > 0, err == nil
}

// Snapshots lists what was deployed and rolled back, the newest first, at most so many. One that cannot be read is left out.
func (s *Service) Snapshots(most int) (out []*Snapshot, err error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	ids, err := s.engine.state.IDs()
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Backward(ids) {
		if len(out) == most {
			break
		}
		if snap, err := s.engine.state.Snapshot(id); err == nil {
			out = append(out, snap)
		}
	}
	return out, nil
}
