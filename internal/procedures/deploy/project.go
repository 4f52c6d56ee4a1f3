package deploy

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// Request says what is to be planned.
type Request struct {
	Repo    string // the configuration's repository; "" for AGENTPACK_HOME/repo
	Profile string // "" for default
	Target  string // "" for all
	Machine string // "" for what this machine is called
}

// Setup holds the places of a deployment.
type Setup struct {
	Home    string // AGENTPACK_HOME
	Places  Places
	Machine []string // candidates for the machine's name, the best first
	Origin  func(ctx context.Context, dir string) string
	Git     *Git
	Sources func() sources.List // that the operator has admitted; nil for none
	AtOnce  int                 // modules that are read at the same time; 0: one for each processor
}

// machineID returns the name by which overlays call this machine, or the requested one.
func (s Setup) machineID(asked string) string {
	return machineID(append([]string{asked}, s.Machine...)...)
}

// repo returns the repository that a request means.
func (s Setup) repo(asked string) string {
	switch {
	case asked == "":
		return filepath.Join(s.Home, "repo")
	case filepath.IsAbs(asked):
		return filepath.Clean(asked)
	}
	return filepath.Join(s.Places.Project, asked)
}

// configSource says where a configuration is read.
type configSource struct {
	repo    string // its repository: the source of what is deployed
	dir     string // the folder that is read, such as one with a commit of the repository
	trusted bool   // it may name a folder of Codex anywhere
	// choose says from where a module of another repository is read, or why it is not; nil: every source is the operator's
	// word.
	choose func(Module) (*GitSource, error)
	// commit is the commit of a module's repository that is used where the lock file has none; nil, and "", for what its
	// ref means now.
	commit func(*GitSource) string
	hashes *fileset.Hashes    // nil: every file is read
	stat   *fileset.StatCache // of all that was read; nil if it is not cached
	lock   *lockFile          // in place of the lock file; nil for that
	trace  *trace             // of the files' origins; nil if they are not needed
}

// own reports whether the folder that is read is the operator's own, rather than a project's or a commit's.
func (r configSource) own() bool { return r.choose == nil }

// Desire reads the configuration and says which files should be there.
func (s Setup) Desire(ctx context.Context, r Request) (*fileset.Desired, error) {
	return s.desire(ctx, r, s.inPlace(r))
}

// inPlace returns the reading of the configuration in place.
func (s Setup) inPlace(r Request) configSource {
	repo := s.repo(r.Repo)
	if s.own(r) {
		return configSource{repo: repo, dir: repo, trusted: true}
	}
	return configSource{repo: repo, dir: repo, choose: s.admitSource}
}

// own reports whether a request means the operator's own configuration.
func (s Setup) own(r Request) bool { return s.repo(r.Repo) == s.repo("") }

func (s Setup) desire(ctx context.Context, r Request, from configSource) (*fileset.Desired, error) {
	from.stat.Tree(from.dir, configName)
	config, err := loadConfig(from.dir, from.own())
	if err != nil {
		return nil, err
	}
	targets, err := config.For(r.Target)
	if err != nil {
		return nil, err
	}
	profile := r.Profile
	if profile == "" {
		profile = "default"
	}
	modules, err := config.Select(profile)
	if err != nil {
		return nil, err
	}
	var bad broken
	read, err := s.readModules(ctx, from, modules, targets, s.machineID(r.Machine), &bad)
	if err != nil {
		return nil, err
	}
	d := fileset.NewDesired(fileset.Agentpack, from.repo, s.Places.Project, targets...)
	places := s.Places
	places.Trusted = from.trusted
	for _, t := range targets {
		meant := slices.DeleteFunc(slices.Clone(read), func(m rendered) bool { return !m.meantFor(t) })
		if err := render(d, t, config.Targets[t], meant, places, from.trace, &bad); err != nil {
			return nil, err
		}
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	return d, nil
}

// meantFor reports whether a module is for a target.
func (m Module) meantFor(t fileset.TargetName) bool {
	return len(m.Targets) == 0 || slices.Contains(m.Targets, t)
}

// rendersFor reports whether a target makes files of the module's type.
func (m Module) rendersFor(t fileset.TargetName) bool {
	switch t {
	case Codex:
		return m.Type != Command
	case ClaudeCode:
		return m.Type == Command || m.Type == Skill
	case Cursor:
		return m.Type == Instructions
	case VSCode:
		return m.Type == Instructions || m.Type == Prompt
	}
	return false
}

// readModules reads the modules that one of the targets needs, side by side, with their overlays. Those that are broken
// are left in bad.
func (s Setup) readModules(ctx context.Context, from configSource, modules []Module, targets []fileset.TargetName,
	machine string,
	bad *broken) ([]rendered, error) {
	from.stat.Tree(from.dir, lockName)
	lock, err := from.lock, error(nil)
	if lock == nil {
		lock, err = readLock(from.dir, from.own())
	}
	if err != nil {
		return nil, err
	}
	root, err := files.OpenDir(from.dir)
	if err != nil {
		return nil, ioError(from.dir, err)
	}
	defer func() { _ = root.Close() }()
	there := levelsIn(root, machine, s.projectID(ctx, root, from))
	out, problems := make([]rendered, len(modules)), make([]error, len(modules))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(s.AtOnce, runtime.GOMAXPROCS(0)))
	for i, m := range modules {
		needed := slices.ContainsFunc(targets, func(t fileset.TargetName) bool { return m.meantFor(t) && m.rendersFor(t) })
		if !needed {
			continue
		}
		group.Go(func() error {
			tree, commit, err := s.moduleTree(ctx, root, m, from, func(g *GitSource) string {
				if commit := lock.commit(m); commit != "" || from.commit == nil {
					return commit
				}
				return from.commit(g)
			})
			if problems[i] = err; isOfModule(err) {
				return nil // the others are looked at, too
			}
			if err != nil {
				return err
			}
			layers, err := overlaid(ctx, root, m, tree, there, s.Git.Patch)
			if err != nil {
				return err
			}
			tree = layers[len(layers)-1].tree
			out[i] = rendered{m, tree, commit, layers}
			if problems[i] = checkModule(m, tree); isOfModule(problems[i]) {
				return nil
			}
			return problems[i]
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, problem := range problems {
		if bad.collectInvalid(problem) == nil && problem != nil {
			out[i] = rendered{}
		}
	}
	return slices.DeleteFunc(out, func(m rendered) bool { return m.ID == "" }), nil
}

// projectID returns the id of the project in overlays; "" if there are no overlays of projects, so that the id is not
// needed.
func (s Setup) projectID(ctx context.Context, root *files.Dir, from configSource) string {
	from.stat.Tree(from.dir, overlaysName)
	absent := func() bool {
		_, err := root.Stat(projectsName)
		return errors.Is(err, fs.ErrNotExist)
	}
	if absent() {
		if from.stat.Tree(from.dir, projectsName); !absent() {
			from.stat.Fail() // it was made while it was recorded
		}
		return ""
	}
	if info, err := files.Lstat(filepath.Join(s.Places.Project, ".git")); err == nil && !info.IsDir() {
		from.stat.Fail() // its configuration is elsewhere
	}
	from.stat.Tree(s.Places.Project, ".git/config")
	id := projectID(s.Origin(ctx, s.Places.Project), s.Places.Project)
	from.stat.Tree(from.dir, path.Join(projectsName, id, overlaysName))
	return id
}

// moduleTree returns a module's files without overlays. known is the commit of a module of another repository, if it is
// known; commit is the one that was read, "" for a module of the configuration's own.
func (s Setup) moduleTree(ctx context.Context, root *files.Dir, m Module, from configSource,
	known func(*GitSource) string) (tree fileset.Tree, commit string, err error) {
	if g := m.Source.Git; g != nil {
		if g = g.operators(); !from.own() {
			chosen, err := from.choose(m)
			if err != nil {
				return nil, "", err
			}
			g = chosen
		}
		if commit = known(g); commit == "" {
			from.stat.Fail() // what the ref means may change
			if commit, err = s.Git.resolve(ctx, g); err != nil {
				return nil, "", err
			}
		}
		tree, err = s.Git.treeAt(ctx, g, commit, from)
		return tree, commit, err
	}
	if tree := fileset.RecordedTree(root, m.Source.LocalPath.Path, from.stat.Tree(root.Name(), m.Source.LocalPath.Path),
		from.hashes); tree != nil {
		return tree, "", nil
	}
	tree, ok, err := fileset.ReadTree(root, filepath.ToSlash(m.Source.LocalPath.Path), from.hashes)
	switch {
	case err != nil:
		return nil, "", invalidConfig("the module %s cannot be read: %s", m.ID, err).With("module_id", m.ID)
	case !ok:
		return nil, "", invalidConfig("the module %s: there is no %s in the repository", m.ID,
			m.Source.LocalPath.Path).With("module_id", m.ID)
	}
	return tree, "", nil
}

// Whose word counts: the configuration AGENTPACK_HOME/repo is the operator's own, and may name every source. Another
// one is a project's: a person at the terminal may choose it to be read, an agent only if the operator named it; and of
// the sources that it names only those are used that the operator has admitted (internal/settings/sources).

func notNamed(address, format string, args ...any) *Error {
	e := fileset.NewError(SourceNotAllowed, "source_not_allowed", []string{"ask_operator"}, format, args...).With("source",
		address)
	if origin, err := sources.OriginOf(address); err == nil {
		e = e.With("allow", "claudeops sources allow "+origin)
	}
	return e
}

// admitted returns the sources that the operator has admitted, as they are now.
func (s Setup) admitted() sources.List {
	if s.Sources == nil {
		return nil
	}
	return s.Sources()
}

// tokenAt returns the credential of the operator's list of sources for an address; "" for none.
func (s Setup) tokenAt(address string, token func(variable string) string) string {
	source, ok := s.admitted().Find(address)
	if !ok || source.TokenEnv == "" || token == nil {
		return ""
	}
	return token(source.TokenEnv)
}

// fromCaller returns the repository that a call may read: the operator's own, or one that the operator has admitted; a
// person at the terminal may name any. E_SOURCE_NOT_ALLOWED, which the audit records, for another one, whether it
// exists or not.
func (s *Service) fromCaller(call operation.Call, repo string) (string, error) {
	if repo == "" || call.Caller.Door == record.DoorCLI {
		return repo, nil
	}
	name, own := s.setup.repo(repo), s.setup.repo("")
	if real, err := fileset.RealPath(name); err == nil {
		name = real
	}
	if real, err := fileset.RealPath(own); name == own || err == nil && name == real {
		return "", nil
	}
	if _, _, listed := s.setup.admitted().Pick(trust.Caller[string]{Argument: filepath.ToSlash(name)}); listed {
		return name, nil
	}
	address := filepath.ToSlash(name)
	refused := notNamed(address,
		"the configuration %s is not used: the operator has not named it. A person who trusts it runs: claudeops sources allow %s", name, address)
	call.Note(operation.Note{Message: refused.Message})
	return "", refused
}

// admitSource says whether a source that a project's configuration names may be used: one that the operator has
// admitted, at its true place. The source that it returns is read with less: no server leads it on to another address,
// and it has no private one that the operator has not admitted.
func (s Setup) admitSource(m Module) (*GitSource, error) {
	list, address := s.admitted(), m.Source.Git.URL
	picked, source, ok := list.Pick(trust.Project[string]{Data: address})
	if local, is := localPath(address); ok && is {
		if real, err := fileset.RealPath(local); err == nil {
			_, ok = list.Find(filepath.ToSlash(real))
		}
	}
	if !ok {
		return nil, notNamed(address, "the module %s: %s", m.ID, sources.Refusal(address)).With("module_id", m.ID).With("url",
			address)
	}
	chosen := *m.Source.Git
	chosen.named, chosen.exact, chosen.public = picked, true, !source.Private
	return &chosen, nil
}

// localPath returns the path that an address of this machine's files means.
func localPath(address string) (name string, ok bool) {
	if u, err := url.Parse(address); err == nil && u.Scheme == "file" {
		return filepath.FromSlash(u.Path), true
	}
	return address, filepath.IsAbs(address)
}

// fetches notes which addresses a call reads from outside of this machine's configuration.
type fetches struct {
	mu   sync.Mutex
	list []string
}

type fetchesKey struct{}

// noting has what is fetched with the context noted.
func noting(ctx context.Context) (context.Context, *fetches) {
	f := &fetches{}
	return context.WithValue(ctx, fetchesKey{}, f), f
}

// fetching notes that an address is asked.
func fetching(ctx context.Context, address string) {
	f, ok := ctx.Value(fetchesKey{}).(*fetches)
	if !ok {
		return
	}
	address = withoutUserinfo(address)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.list, address) {
		f.list = append(f.list, address)
	}
}

// withoutUserinfo returns an address as texts have it: without what one signs in with.
func withoutUserinfo(address string) string {
	if u, err := url.Parse(address); err == nil && u.User != nil && u.Scheme != "ssh" {
		u.User = nil
		address = u.String()
	}
	return fileset.Short(address)
}

// auditText returns the audit's text about it; "" if nothing was fetched.
func (f *fetches) auditText() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) == 0 {
		return ""
	}
	slices.Sort(f.list)
	return "fetched from " + strings.Join(f.list[:min(len(f.list), maxNoted)], ", ")
}

// noteTo adds it to the row of a call.
func (f *fetches) noteTo(call operation.Call, n operation.Note) {
	if said := f.auditText(); said != "" {
		n.Message = strings.TrimPrefix(n.Message+"; "+said, "; ")
	}
	if n.Message != "" || len(n.Paths) > 0 {
		call.Note(n)
	}
}

// Fetched runs f, and returns with its error which addresses it asked, in words; "" if none.
func Fetched(ctx context.Context, f func(ctx context.Context) error) (said string, err error) {
	ctx, noted := noting(ctx)
	err = f(ctx)
	return noted.auditText(), err
}
