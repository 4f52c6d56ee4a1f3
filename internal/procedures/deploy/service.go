// Package deploy puts an operator's procedures in place for the agents of this machine, in the formats of agentpack:
// modules of a configuration repository become files of Codex, Claude Code, Cursor and VS Code. It sees drift, and
// rolls back (docs/guides/deploy.md).
//
// It reads agentpack.yaml, selects modules, applies overlays and renders for each target the files that should be
// there. The engine in internal/system/fileset puts them in place, and those of packages as well. Errors are *Error, or
// the engine's.
package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textedit"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
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
	engine  *fileset.Engine
	version string
	repos   []string
	last    lastDesired
	plans   *fileset.PlanCache
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
	engine := fileset.NewEngine(home, s.Now)
	known, unchanged := filepath.Join(home, "cache", "hashes"), filepath.Join(home, "cache", "unchanged")
	engine.NoWriting = s.NoWriting
	if engine.Closed() != "" {
		known, unchanged = "", ""
	}
	engine.Hashes = fileset.NewHashes(known, s.Now)
	setup := Setup{
		Home: home, Places: Places{Home: s.UserHome, CodexHome: s.CodexHome, Project: projectOf(s.Folder)},
		Machine: s.Machine, Origin: git.Origin, Git: git, Sources: s.Sources,
	}
	git.token = func(address string) string { return setup.tokenAt(address, s.Git.Token) }
	return &Service{engine: engine, version: s.Version, repos: s.Repos, plans: fileset.NewPlanCache(unchanged, touch),
		setup: setup}
}

// Engine puts files in place; other toolsets use it too.
func (s *Service) Engine() *fileset.Engine { return s.engine }

// checkHome returns an error if this program does not know where the user's files are.
func (s *Service) checkHome() error {
	if s.setup.Places.Home == "" {
		return invalidConfig("HOME is not set to an absolute path, so that nothing is known of the user's folders")
	}
	project := s.setup.Places.Project
	if now, err := fileset.RealPath(project); err == nil && now != project {
		return fileset.NewError(PermissionDenied, "path_in_the_way", []string{"remove_path", "retry_command"},
			"the project %s leads to another folder by now: start again in the one that is meant", project).With("path", project)
	}
	return nil
}

// Status compares with what was deployed.
func (s *Service) Status(ctx context.Context, r Request) (targets []fileset.TargetName, list []fileset.Drift,
	warnings []string, err error) {
	d, err := s.desire(ctx, r, s.engine.Hashes)
	if err != nil {
		return nil, nil, nil, err
	}
	list, warnings, err = s.engine.Status(ctx, d)
	return d.Targets, list, warnings, err
}

// Plan says what a deployment would change.
func (s *Service) Plan(ctx context.Context, r Request) (*fileset.Plan, error) {
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
func (s *Service) planAgain(ctx context.Context, r Request) (p *fileset.Plan, said string, err error) {
	if err := s.checkHome(); err != nil {
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
func (s *Service) fullPlan(ctx context.Context, r Request) (*fileset.Plan, error) {
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
func (s *Service) Apply(ctx context.Context, r Request, approval fileset.Approval, dryRun bool) (p *fileset.Plan,
	done *fileset.Done, err error) {
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
func (s *Service) Rollback(ctx context.Context, id, plan string) (done *fileset.Done, warnings []string, err error) {
	if err := s.checkHome(); err != nil {
		return nil, nil, err
	}
	return s.engine.Rollback(ctx, id, s.reach(), plan)
}

// PlanRollback says what Rollback would change. E_SNAPSHOT_NOT_FOUND for an id that is none.
func (s *Service) PlanRollback(ctx context.Context, id string) (*fileset.Plan, error) {
	if err := s.checkHome(); err != nil {
		return nil, err
	}
	return s.engine.PlanRollback(ctx, id, s.reach())
}

// reach returns the project, and the folders of the user.
func (s *Service) reach() fileset.Scope {
	p := s.setup.Places
	return fileset.Scope{Project: p.Project,
		User: slices.DeleteFunc([]string{p.Home, p.CodexHome}, func(dir string) bool { return dir == "" })}
}

func (s *Service) desire(ctx context.Context, r Request, known *fileset.Hashes) (*fileset.Desired, error) {
	if err := s.checkHome(); err != nil {
		return nil, err
	}
	from := s.setup.inPlace(r)
	if known == nil || !s.setup.own(r) { // what a project's configuration may choose from can change at any time
		return s.setup.desire(ctx, r, from)
	}
	if d := s.last.lookup(r); d != nil {
		return d, nil
	}
	from.hashes, from.stat = known, known.NewStatCache()
	d, err := s.setup.desire(ctx, r, from)
	if err == nil {
		s.last.store(r, d, from.stat)
	}
	return d, err
}

// Project returns the folder that project files go to.
func (s *Service) Project() string { return s.setup.Places.Project }

// projectOf returns the repository that a folder lies in, or the folder itself. Links are resolved, so that one project
// has one name.
func projectOf(folder string) string {
	if real, err := fileset.RealPath(folder); err == nil {
		folder = real
	}
	for dir := folder; ; dir = filepath.Dir(dir) {
		if fileset.Exists(filepath.Join(dir, ".git")) {
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
	out, failure, err := g.runGit(ctx, dir, nil, "config", "--local", "--no-includes", "--get", "remote.origin.url")
	if err != nil && ctx.Err() == nil && !fileset.Exists(dir) {
		return "", nil
	}
	if err != nil {
		return "", fileset.NewError(GitFailed, "git_failed", []string{"retry_command"}, "git cannot be run: %s",
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
	if !fileset.Exists(filepath.Join(top, ".git")) || !soundGit(top) {
		return false, false
	}
	ctx, cancel := context.WithTimeout(ctx, localTime) // the folder is a project's: whatever git may wait for there
	defer cancel()
	out, _, err := g.runGit(ctx, top, nil, "check-ignore", "--no-index", "--", name)
	return len(out) > 0, err == nil
}

// Snapshots lists what was deployed and rolled back, the newest first, at most most. One that cannot be read is left
// out.
func (s *Service) Snapshots(most int) (out []*fileset.Snapshot, err error) {
	if err := s.checkHome(); err != nil {
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

// Code classifies an error, in agentpack's published words. E_LOCKED, E_PLAN_CHANGED, E_SNAPSHOT_NOT_FOUND,
// E_CHECKOUT_NOT_READY, E_SOURCE_NOT_ALLOWED, E_FILE_UNKNOWN, E_NOTHING_TO_PROPOSE, E_PROPOSAL_REFUSED
// and E_GIT_FAILED are ours.
type Code = fileset.Code

// The codes.
const (
	ConfirmRequired      Code = "E_CONFIRM_REQUIRED"
	AdoptConfirmRequired      = fileset.AdoptConfirmRequired
	ConfigMissing        Code = "E_CONFIG_MISSING"
	ConfigInvalid             = fileset.ConfigInvalid
	ConfigUnsupported    Code = "E_CONFIG_UNSUPPORTED_VERSION"
	TargetUnsupported    Code = "E_TARGET_UNSUPPORTED"
	DesiredStateConflict      = fileset.DesiredStateConflict
	OverlayPatchFailed   Code = "E_OVERLAY_PATCH_APPLY_FAILED"
	LockfileInvalid      Code = "E_LOCKFILE_INVALID"
	LockfileUnsupported  Code = "E_LOCKFILE_UNSUPPORTED_VERSION"
	PermissionDenied          = fileset.PermissionDenied
	Unexpected                = fileset.Unexpected
	SnapshotNotFound          = fileset.SnapshotNotFound
	GitFailed            Code = "E_GIT_FAILED"
	CheckoutNotReady     Code = "E_CHECKOUT_NOT_READY"
	Locked                    = fileset.Locked
	PlanChanged               = fileset.PlanChanged
	SourceNotAllowed     Code = "E_SOURCE_NOT_ALLOWED"
	FileUnknown          Code = "E_FILE_UNKNOWN"
	NothingToPropose     Code = "E_NOTHING_TO_PROPOSE"
	ProposalRefused      Code = "E_PROPOSAL_REFUSED"
)

// Error is a failure in agentpack's words, the engine's included.
type Error = fileset.Error

// errorOf returns the failure that an error is of; nil if it is of none.
func errorOf(err error) *Error { return fault.ContractErrorOf[Code](err) }

// ioError gives an error of the file system its code; one that has a code keeps it.
func ioError(name string, err error) error {
	if errorOf(err) != nil {
		return err
	}
	return fileset.IOError(name, err)
}

// invalidConfig is the error for a configuration with an invalid value.
func invalidConfig(format string, args ...any) *Error {
	return fileset.NewError(ConfigInvalid, "config_invalid", []string{"fix_config", "retry_command"}, format, args...)
}

// lastDesired caches the last desired state; it is valid while none of its inputs has changed.
type lastDesired struct {
	mu      sync.Mutex
	request Request
	desired *fileset.Desired
	stat    *fileset.StatCache
}

// lookup returns the cached state for a request; nil if it has to be made.
func (l *lastDesired) lookup(r Request) *fileset.Desired {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.desired == nil || l.request != r {
		return nil
	}
	if !l.stat.Same() {
		l.desired, l.stat = nil, nil
		return nil
	}
	for _, folder := range l.stat.Used() {
		touch(folder)
	}
	return l.desired
}

func (l *lastDesired) stats(desired *fileset.Desired) []*fileset.StatCache {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.desired != desired {
		return nil
	}
	return []*fileset.StatCache{l.stat}
}

func (l *lastDesired) store(r Request, d *fileset.Desired, s *fileset.StatCache) {
	if !s.Whole() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.request, l.desired, l.stat = r, d, s
}

// plannedStats is the number of stat caches of a plan with nothing to change: of its inputs, of what is in place, and
// of the snapshots.
const plannedStats = 3

// question returns all that a plan depends on beside files.
func (s *Service) question(r Request) string {
	p := s.setup.Places
	return fmt.Sprintf("%q", []string{
		s.version, s.setup.Home, p.Home, p.CodexHome, p.Project, s.setup.repo(r.Repo), cmp.Or(r.Profile, "default"),
		cmp.Or(r.Target, "all"),
		s.setup.machineID(r.Machine),
	})
}

// Overview describes the deployments of a machine to a person.
type Overview struct {
	Project  string
	Roots    []fileset.RootHealth
	Plan     *fileset.Plan
	Drift    []DriftDiff
	Warnings []string
}

// DriftDiff is a file that is not as it was deployed, and how.
type DriftDiff struct {
	fileset.Drift
	Unified *string // from the deployed version to the present one; nil for files that are not text or too large
}

// Look says what would change, what has drifted, and how.
func (s *Service) Look(ctx context.Context) (o Overview, err error) {
	o.Project = s.Project()
	doctor, warnings, err := s.Doctor(ctx, Request{})
	if err != nil {
		return o, faultOf(err)
	}
	o.Roots, o.Warnings = doctor.Roots, warnings
	if o.Plan, err = s.fullPlan(ctx, Request{}); err != nil {
		return o, faultOf(err)
	}
	_, list, warnings, err := s.Status(ctx, Request{})
	if err != nil {
		return o, faultOf(err)
	}
	o.Warnings = append(o.Warnings, warnings...)
	total := 0
	for _, item := range list {
		one := DriftDiff{Drift: item}
		before, after := deployed(s.engine.State(), item), current(o.Plan, item)
		if notDiffed(before, after, total) == "" {
			text := driftText(item, before, after)
			one.Unified, total = &text, total+len(text)
		}
		o.Drift = append(o.Drift, one)
	}
	return o, nil
}

// driftText returns a difference with its header, as a file of a larger one.
func driftText(item fileset.Drift, before, after []byte) string {
	from, to := "a"+item.PathPosix, "b"+item.PathPosix
	if item.Expected == nil {
		from = "/dev/null"
	}
	if item.Actual == nil {
		to = "/dev/null"
	}
	return fmt.Sprintf("diff --git a%s b%s\n", item.PathPosix, item.PathPosix) +
		textedit.Unified(from, to, string(before), string(after))
}

// deployed returns the content that a drifted file had; nil if it is not kept.
func deployed(s fileset.State, item fileset.Drift) []byte {
	if item.Expected == nil {
		return nil
	}
	content, err := s.Kept((*item.Expected)[len("sha256:"):])
	if err != nil {
		return nil
	}
	return content
}

// current returns the content that a drifted file has; nil if it cannot be read.
func current(p *fileset.Plan, item fileset.Drift) []byte {
	if item.Actual == nil {
		return nil
	}
	content, err := p.Read(item.Path)
	if err != nil {
		return nil
	}
	return content
}
