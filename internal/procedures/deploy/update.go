package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// ModuleUpdate is a module of another repository, and the commit that its ref means now.
type ModuleUpdate struct {
	Module string `json:"module"`
	URL    string `json:"url"`
	Ref    string `json:"ref"`
	From   string `json:"from,omitempty" doc:"The commit that it was locked to; empty if to none"`
	To     string `json:"to"`
}

// Newer reports whether the lock file changes by it.
func (u ModuleUpdate) Newer() bool { return u.From != u.To }

// Updates are modules at their newest commits, and what a deployment would change with them.
type Updates struct {
	Modules  []ModuleUpdate
	Plan     *fileset.Plan
	Warnings []string

	repo string
	lock []byte // as it would be written; nil if nothing is newer
}

// lockPath returns the path of the lock file.
func (u Updates) lockPath() string { return filepath.Join(u.repo, lockName) }

// Newest looks for the newest commits of modules of other repositories; ids names them, none means all that follow a
// branch or a tag. It writes nothing but the cache.
func (s *Service) Newest(ctx context.Context, r Request, ids []string) (u Updates, err error) {
	if err := s.checkHome(); err != nil {
		return u, err
	}
	from := s.setup.inPlace(Request{})
	u.repo = from.dir
	config, err := loadConfig(from.dir, true)
	if err != nil {
		return u, err
	}
	lock, err := readLock(from.dir, true)
	if err != nil {
		return u, err
	}
	modules, err := following(config, ids)
	if err != nil {
		return u, err
	}
	if u.Modules, err = s.latestCommits(ctx, modules, lock); err != nil {
		return u, err
	}
	from.lock = lock.withUpdates(modules, u.Modules)
	desired, err := s.setup.desire(ctx, r, from)
	if err != nil {
		return u, err
	}
	if u.Plan, err = s.engine.Plan(ctx, desired); err != nil {
		return u, err
	}
	u.Warnings = u.Plan.Warnings
	if slices.ContainsFunc(u.Modules, ModuleUpdate.Newer) {
		u.lock, err = s.lockText(ctx, from, config, u.Modules)
	}
	return u, err
}

// following returns the modules of other repositories that are asked for, without those whose ref is a commit.
func following(c *Config, ids []string) (out []Module, err error) {
	for _, id := range ids {
		at := slices.IndexFunc(c.Modules, func(m Module) bool { return m.ID == id })
		switch {
		case at < 0:
			return nil, operation.Invalid("modules", "%s has no module %s", configName, fileset.Short(id))
		case c.Modules[at].Source.Git == nil:
			return nil, operation.Invalid("modules",
				"the module %s is of the configuration's own repository, which is brought forward as a whole", id)
		case isCommit(c.Modules[at].Source.Git.Ref):
			return nil, operation.Invalid("modules", "the module %s names a commit as its ref; change that in %s", id,
				configName)
		}
	}
	for _, m := range c.Modules {
		if g := m.Source.Git; g != nil && !isCommit(g.Ref) && (len(ids) == 0 || slices.Contains(ids, m.ID)) &&
			(m.Enabled == nil || *m.Enabled) {
			out = append(out, m)
		}
	}
	return out, nil
}

// maxAsked bounds the servers that are asked at the same time.
const maxAsked = 8

// latestCommits asks what the modules' refs mean now.
func (s *Service) latestCommits(ctx context.Context, modules []Module, lock *lockFile) ([]ModuleUpdate, error) {
	out := make([]ModuleUpdate, len(modules))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxAsked)
	for i, m := range modules {
		group.Go(func() error {
			commit, err := s.setup.Git.resolve(ctx, m.Source.Git.operators())
			out[i] = ModuleUpdate{Module: m.ID, URL: withoutUserinfo(m.Source.Git.URL), Ref: m.Source.Git.Ref,
				From: lock.commit(m),
				To:   commit}
			return err
		})
	}
	return out, group.Wait()
}

// withUpdates returns the lock with modules at other commits.
func (l *lockFile) withUpdates(modules []Module, updates []ModuleUpdate) *lockFile {
	out := &lockFile{Version: 1}
	for _, locked := range l.Modules {
		if !slices.ContainsFunc(modules, func(m Module) bool { return m.ID == locked.ID }) {
			out.Modules = append(out.Modules, locked)
		}
	}
	for i, m := range modules {
		g := *m.Source.Git
		g.Commit = updates[i].To
		out.Modules = append(out.Modules, lockedModule{ID: m.ID, Type: m.Type, Resolved: Source{Git: &g}})
	}
	return out
}

// lockedFile is a file of a locked module.
type lockedFile struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// fullEntry is a module in a lock file with all that it has there.
type fullEntry struct {
	lockedModule
	Files []lockedFile `json:"file_manifest"`
}

// lockText returns the lock file with the newer modules. What else is in it stays as it is; modules of the
// configuration's own that it lacks come in.
func (s *Service) lockText(
	ctx context.Context, from configSource, config *Config, updates []ModuleUpdate,
) ([]byte, error) {
	text, err := readIn(from.dir, lockName, maxLockBytes, true)
	if err != nil {
		text = []byte(`{}`) // readLock has found it sound, or not there
	}
	var members map[string]json.RawMessage
	var known []json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	if members["modules"] != nil {
		if err := json.Unmarshal(members["modules"], &known); err != nil {
			return nil, err
		}
	}
	entries := map[string]json.RawMessage{}
	for _, raw := range known {
		var named struct{ ID string }
		if err := json.Unmarshal(raw, &named); err != nil {
			return nil, err
		}
		entries[named.ID] = raw
	}
	if err := s.newEntries(ctx, from, config, updates, entries); err != nil {
		return nil, err
	}
	list := []json.RawMessage{}
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		list = append(list, entries[id])
	}
	for name, value := range map[string]any{"version": 1,
		"generated_at": s.engine.State().Now().UTC().Format(time.RFC3339), "modules": list} {
		if members[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	out, err := json.MarshalIndent(members, "", "  ")
	return append(out, '\n'), err
}

// newEntries puts the entries of newer modules, and of those of the configuration's own that have none, to the others.
func (s *Service) newEntries(ctx context.Context, from configSource, config *Config, updates []ModuleUpdate,
	entries map[string]json.RawMessage) error {
	root, err := files.OpenDir(from.dir)
	if err != nil {
		return ioError(from.dir, err)
	}
	defer func() { _ = root.Close() }()
	for _, m := range config.Modules {
		at := slices.IndexFunc(updates, func(u ModuleUpdate) bool { return u.Module == m.ID && u.Newer() })
		if own := m.Source.Git == nil && entries[m.ID] == nil && (m.Enabled == nil || *m.Enabled); at < 0 && !own {
			continue
		}
		tree, commit, err := s.setup.moduleTree(ctx, root, m, from, func(*GitSource) string { return updates[at].To })
		if err != nil {
			return err
		}
		if entries[m.ID], err = entryOf(m, tree, commit); err != nil {
			return err
		}
	}
	return nil
}

func entryOf(m Module, tree fileset.Tree, commit string) (json.RawMessage, error) {
	entry := fullEntry{lockedModule: lockedModule{ID: m.ID, Type: m.Type, Resolved: m.Source, Version: "local",
		SHA256: tree.Hash()}, Files: []lockedFile{}}
	if m.Source.Git != nil {
		entry.Resolved.Git = &GitSource{URL: m.Source.Git.URL, Subdir: m.Source.Git.Subdir, Commit: commit}
		entry.Version = commit
	}
	for _, name := range tree.Paths() {
		entry.Files = append(entry.Files, lockedFile{name, tree[name].Content.SHA256(), tree[name].Size()})
	}
	return json.Marshal(entry)
}

// writeLock writes the lock file of Updates, if something is newer. Nothing is deployed by it.
func (s *Service) writeLock(u Updates) (written bool, err error) {
	if u.lock == nil {
		return false, nil
	}
	if why := s.engine.Closed(); why != "" {
		return false, fileset.NewError(notAllowed, "read_only", []string{"ask_operator"}, "nothing is written: %s", why)
	}
	return true, fileset.WriteBelow(u.repo, u.lockPath(), u.lock, false, "update")
}

// committed says what is to do with a lock file in a repository; "" if it is in none.
func (s *Service) committed(u Updates) string {
	if !fileset.Exists(filepath.Join(u.repo, ".git")) {
		return ""
	}
	return "commit and push " + u.lockPath() +
		": until then, merges are not deployed by themselves, since the checkout has a file that no commit has"
}

// lockName is the lock file in the configuration's repository.
const lockName = "agentpack.lock.json"

// lockFile pins modules of other repositories to commits.
type lockFile struct {
	Version int            `json:"version"`
	Modules []lockedModule `json:"modules"`
}

type lockedModule struct {
	ID       string     `json:"id"`
	Type     ModuleType `json:"type"`
	Resolved Source     `json:"resolved_source"`
	Version  string     `json:"resolved_version"`
	SHA256   string     `json:"sha256"`
}

// maxLockBytes bounds a lock file, which names each file of the modules.
const maxLockBytes = 64 << 20

// readLock reads the lock file; one that is not there locks nothing. E_LOCKFILE_INVALID and
// E_LOCKFILE_UNSUPPORTED_VERSION say what is wrong.
func readLock(repo string, own bool) (*lockFile, error) {
	name := filepath.Join(repo, lockName)
	text, err := readIn(repo, lockName, maxLockBytes, own)
	if errors.Is(err, fs.ErrNotExist) {
		return &lockFile{Version: 1}, nil
	}
	var l lockFile
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	next := []string{"regenerate_lockfile", "retry_command"}
	if err != nil {
		return nil, fileset.NewError(LockfileInvalid, "lockfile_invalid", next, "%s is broken: %s", name,
			pathlessError(err)).With("path", name).Because(err)
	}
	if l.Version != 1 {
		return nil, fileset.NewError(LockfileUnsupported, "lockfile_unsupported_version", next,
			"%s has the version %d; 1 is supported", name, l.Version).
			With("path", name).With("version", l.Version).With("supported", []int{1})
	}
	for _, m := range l.Modules {
		if g := m.Resolved.Git; g != nil && !isCommit(g.Commit) {
			return nil, fileset.NewError(LockfileInvalid, "lockfile_invalid", next, "%s: the commit %q of the module %s is none",
				name, fileset.Short(g.Commit), m.ID).With("path", name).With("module_id", m.ID)
		}
	}
	return &l, nil
}

// isCommit reports whether a text is the full name of a commit. It is a part of paths and of git's arguments.
func isCommit(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}

// commit returns the commit that a module is locked to; "" if it is not, or to another source.
func (l *lockFile) commit(m Module) string {
	for _, locked := range l.Modules {
		if g := locked.Resolved.Git; locked.ID == m.ID && g != nil && m.Source.Git != nil && g.URL == m.Source.Git.URL {
			return g.Commit
		}
	}
	return ""
}
