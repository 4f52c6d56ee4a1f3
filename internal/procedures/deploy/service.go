package deploy

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Settings configures a Service.
type Settings struct {
	Home      string   // AGENTPACK_HOME; "" for .agentpack of the user's home
	UserHome  string   // absolute
	CodexHome string   // CODEX_HOME; "" for .codex of the user's home
	Folder    string   // where the program was started; the project is the repository that it lies in, or itself
	Machine   []string // candidates for the machine's name, the best first
	Git       GitCommand
	Version   string
	// NoWriting says why nothing may be written now, not even to finish what was cut off, "" if it may; nil: it may.
	NoWriting func() string
	// Sources are the places, beside those of the configuration AGENTPACK_HOME/repo, that modules may come from; nil for
	// none.
	Sources func() sources.List
	// Repos are the repositories that the configuration comes from, as owner/name or provider:owner/name; none for the one
	// that the checkout was cloned from.
	Repos []string
	Now   func() time.Time
}

// GitCommand says how to run git.
type GitCommand struct {
	Path string   // "" for the one in PATH
	Env  []string // variables: PATH, and others such as SSH_AUTH_SOCK
	// Credentials is a file in the form of git's credential store, for repositories over HTTPS; "" for none.
	Credentials string
	// Token is the value of a variable that a source names for its host; nil for none.
	Token func(variable string) string
	// Reaped says that the program answers processtree.ReaperCommand: what git starts to speak to others ends with the
	// program, even if that is killed.
	Reaped bool
	// Learn registers the secrets that git signs in with, before it does; nil: they are not registered.
	Learn func(secrets ...string)
}

// GitEnvironment returns the variables of the program's environment that git needs: the search path, and how to reach
// other machines.
func GitEnvironment(lookup func(name string) (string, bool)) (variables []string) {
	for _, name := range []string{"PATH", "SSH_AUTH_SOCK", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy",
		"http_proxy", "no_proxy"} {
		if value, _ := lookup(name); value != "" {
			variables = append(variables, name+"="+value)
		}
	}
	return variables
}

// MachineNames returns the system's names of a machine, the best first.
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

// Service serves one project on this machine, for all protocols.
type Service struct {
	setup   Setup
	engine  *change.Engine
	version string
	repos   []string
	last    lastDesired
	plans   *change.PlanCache
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
	git := newGit(s.Git.Path, s.UserHome, home, s.Git.Env)
	git.git.Reaped, git.credentials = s.Git.Reaped, s.Git.Credentials
	git.learnStored(s.Git.Learn)
	engine := change.NewEngine(home, s.Now)
	known, unchanged := filepath.Join(home, "cache", "hashes"), filepath.Join(home, "cache", "unchanged")
	engine.NoWriting = s.NoWriting
	if engine.Closed() != "" {
		known, unchanged = "", ""
	}
	engine.Hashes = change.NewHashes(known, s.Now)
	setup := Setup{
		Home: home, Places: Places{Home: s.UserHome, CodexHome: s.CodexHome, Project: projectOf(s.Folder)},
		Machine: s.Machine, Origin: git.Origin, Git: git, Sources: s.Sources,
	}
	git.token = func(address string) string { return setup.tokenAt(address, s.Git.Token) }
	return &Service{engine: engine, version: s.Version, repos: s.Repos, plans: change.NewPlanCache(unchanged, touch),
		setup: setup}
}

// Engine puts files in place; other toolsets use it too.
func (s *Service) Engine() *change.Engine { return s.engine }

// ready returns an error if this program does not know where the user's files are.
func (s *Service) ready() error {
	if s.setup.Places.Home == "" {
		return invalidConfig("HOME is not set to an absolute path, so that nothing is known of the user's folders")
	}
	project := s.setup.Places.Project
	if now, err := change.RealPath(project); err == nil && now != project {
		return change.NewError(PermissionDenied, "path_in_the_way", []string{"remove_path", "retry_command"},
			"the project %s leads to another folder by now: start again in the one that is meant", project).With("path", project)
	}
	return nil
}

// Status compares with what was deployed.
func (s *Service) Status(ctx context.Context, r Request) (targets []change.TargetName, list []change.Drift,
	warnings []string, err error) {
	d, err := s.desire(ctx, r, s.engine.Hashes)
	if err != nil {
		return nil, nil, nil, err
	}
	list, warnings, err = s.engine.Status(ctx, d)
	return d.Targets, list, warnings, err
}

// Plan says what a deployment would change.
func (s *Service) Plan(ctx context.Context, r Request) (*change.Plan, error) {
	p, said, err := s.planAgain(ctx, r)
	if p == nil && err == nil {
		p, err = s.fullPlan(ctx, r)
	}
	if err == nil && said != "" {
		p.Warnings = append(p.Warnings, said)
	}
	return p, err
}

// planAgain returns the plan that another process has kept, if nothing has changed since; nil if there is none. said
// tells what a killed process began and this call has finished.
func (s *Service) planAgain(ctx context.Context, r Request) (p *change.Plan, said string, err error) {
	if err := s.ready(); err != nil {
		return nil, "", err
	}
	if !s.setup.own(r) || !s.plans.CanAnswer() {
		return nil, "", nil
	}
	said, err = s.engine.Look(ctx, func() error {
		p = s.plans.Again(s.question(r))
		return nil
	})
	return p, said, err
}

// fullPlan is Plan, made of what is in place.
func (s *Service) fullPlan(ctx context.Context, r Request) (*change.Plan, error) {
	d, err := s.desire(ctx, r, s.engine.Hashes)
	if err != nil {
		return nil, err
	}
	p, err := s.engine.Plan(ctx, d)
	if err == nil {
		stats, warnings := s.engine.UnchangedStats(d)
		if stats = append(stats, s.last.stats(d)...); s.setup.own(r) && len(stats) == plannedStats {
			s.plans.Keep(s.question(r), d.Targets, warnings, stats)
		}
	}
	return p, err
}

// Apply deploys. done is nil if nothing had to be done, or in a dry run.
func (s *Service) Apply(ctx context.Context, r Request, approval change.Approval, dryRun bool) (p *change.Plan,
	done *change.Done, err error) {
	d, err := s.desire(ctx, r, nil) // the files that are read now are the ones that are written
	if err != nil {
		return nil, nil, err
	}
	if dryRun {
		p, err = s.engine.Plan(ctx, d)
		return p, nil, err
	}
	return s.engine.Apply(ctx, d, approval)
}

// Rollback puts back the files of a snapshot in the project and in the user's folders; see Engine.Rollback.
func (s *Service) Rollback(ctx context.Context, id, plan string) (done *change.Done, warnings []string, err error) {
	if err := s.ready(); err != nil {
		return nil, nil, err
	}
	return s.engine.Rollback(ctx, id, s.reach(), plan)
}

// PlanRollback says what Rollback would change. E_SNAPSHOT_NOT_FOUND for an id that is none.
func (s *Service) PlanRollback(ctx context.Context, id string) (*change.Plan, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	return s.engine.PlanRollback(ctx, id, s.reach())
}

// reach returns the project, and the folders of the user.
func (s *Service) reach() change.Reach {
	p := s.setup.Places
	return change.Reach{Project: p.Project,
		User: slices.DeleteFunc([]string{p.Home, p.CodexHome}, func(dir string) bool { return dir == "" })}
}

func (s *Service) desire(ctx context.Context, r Request, known *change.Hashes) (*change.Desired, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	from := s.setup.inPlace(r)
	if known == nil || !s.setup.own(r) { // what a project's configuration may choose from can change at any time
		return s.setup.desire(ctx, r, from)
	}
	if d := s.last.again(r); d != nil {
		return d, nil
	}
	from.hashes, from.stat = known, known.NewStatCache()
	d, err := s.setup.desire(ctx, r, from)
	if err == nil {
		s.last.note(r, d, from.stat)
	}
	return d, err
}

// Project returns the folder that project files go to.
func (s *Service) Project() string { return s.setup.Places.Project }

// projectOf returns the repository that a folder lies in, or the folder itself. Links are resolved, so that one project
// has one name.
func projectOf(folder string) string {
	if real, err := change.RealPath(folder); err == nil {
		folder = real
	}
	for dir := folder; ; dir = filepath.Dir(dir) {
		if change.Exists(filepath.Join(dir, ".git")) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return folder
		}
	}
}

// Origin returns the address of a repository's remote origin; "" if there is none, or git cannot be run.
func (g *Git) Origin(ctx context.Context, dir string) string {
	address, _ := g.origin(ctx, dir)
	return address
}

// origin is Origin with the error of a git that cannot be run.
func (g *Git) origin(ctx context.Context, dir string) (string, error) {
	if !soundGit(dir) {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, localTime)
	defer cancel()
	out, failure, err := g.run(ctx, dir, nil, "config", "--local", "--no-includes", "--get", "remote.origin.url")
	if err != nil && ctx.Err() == nil && !change.Exists(dir) {
		return "", nil
	}
	if err != nil {
		return "", change.NewError(GitFailed, "git_failed", []string{"retry_command"}, "git cannot be run: %s",
			err).Because(err)
	}
	if failure != "" {
		return "", nil
	}
	return strings.TrimSpace(string(out)), nil
}

// localTime bounds how long git may look into a project's own repository.
const localTime = 20 * time.Second

// soundGit reports whether nothing but plain files is where git reads first in a folder's repository; it would wait for
// a named pipe.
func soundGit(dir string) bool {
	for _, name := range []string{"HEAD", "config"} {
		if info, err := files.Stat(filepath.Join(dir, ".git", name)); err == nil && !info.Mode().IsRegular() {
			return false
		}
	}
	info, err := files.Lstat(filepath.Join(dir, ".git"))
	return err != nil || info.IsDir() || info.Mode().IsRegular() || info.Mode()&fs.ModeSymlink != 0
}

// ignores reports whether git leaves a file out of commits. A folder in no repository ignores nothing, and knows is
// false.
func (g *Git) ignores(ctx context.Context, name string) (ignored, knows bool) {
	dir := filepath.Dir(name)
	for {
		if info, err := files.Stat(dir); err == nil && info.IsDir() {
			break
		} else if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return false, false
		}
		dir = filepath.Dir(dir)
	}
	top := projectOf(dir)
	if !change.Exists(filepath.Join(top, ".git")) || !soundGit(top) {
		return false, false
	}
	ctx, cancel := context.WithTimeout(ctx, localTime) // the folder is a project's: whatever git may wait for there
	defer cancel()
	out, _, err := g.run(ctx, top, nil, "check-ignore", "--no-index", "--", name)
	return len(out) > 0, err == nil
}

// Snapshots lists what was deployed and rolled back, the newest first, at most most. One that cannot be read is left
// out.
func (s *Service) Snapshots(most int) (out []*change.Snapshot, err error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	ids, err := s.engine.State().IDs()
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Backward(ids) {
		if len(out) == most {
			break
		}
		if snap, err := s.engine.State().Snapshot(id); err == nil {
			out = append(out, snap)
		}
	}
	return out, nil
}
