package deploy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
	sysgit "github.com/claudeops/claudeops/internal/system/git"
)

// Bounds of a commit of another repository.
const (
	maxCommitFiles = 50_000
	maxCommitBytes = 512 << 20 // of all its files; also of what a fetch of it may write
)

const (
	// defaultCacheBytes limits the size of all cached commits of other repositories together.
	defaultCacheBytes = 1 << 30
	// inUse is how long after its last use a commit is not removed to make room: longer than any call takes.
	inUse = 15 * time.Minute
	// abandoned is the age at which leftovers of a killed process are removed: longer than any fetch takes.
	abandoned = 30 * time.Minute
)

// commitFolder returns the folder with the files of a commit, after a call of Folder.
func (g *Git) commitFolder(s *GitSource, commit string) string {
	return filepath.Join(g.cache, fileset.Hash([]byte(s.URL)), commit)
}

// Folder returns the folder of the cache with the files of a source at a commit, all of them, whatever its Subdir. They
// are fetched once. What has more files or bytes than maxCommitFiles and maxCommitBytes, or a file of more than
// maxFileBytes, is refused, and nothing of it is kept.
func (g *Git) Folder(ctx context.Context, s *GitSource, commit string) (string, error) {
	if !isCommit(commit) {
		return "", gitFailed(s, "%q is not a commit", fileset.Short(commit))
	}
	folder := g.commitFolder(s, commit)
	unlock, err := g.busy.lock(ctx, folder)
	if err != nil {
		return "", err
	}
	defer unlock()
	info, err := files.Lstat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := g.fetch(ctx, s, commit, folder); err != nil {
			return "", err
		}
	case err != nil:
		return "", ioError(folder, err)
	case !info.IsDir():
		return "", fileset.NewError(Unexpected, "path_in_the_way", []string{"remove_path", "retry_command"},
			"%s is not a folder; move it away", folder).With("path", folder)
	}
	touch(folder)
	return folder, nil
}

// touch notes that a folder of the cache is in use: what was used least recently is removed first.
func touch(folder string) {
	_ = files.Touch(folder, time.Now())
}

// fetch brings a commit's files into a folder, at once.
func (g *Git) fetch(ctx context.Context, s *GitSource, commit, folder string) error {
	g.sweep()
	if err := files.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		return ioError(folder, err)
	}
	scratch, err := files.MakeTemporary(filepath.Dir(folder), scratchName)
	if err != nil {
		return ioError(folder, err)
	}
	defer func() { _ = scratch.Remove() }()
	repo, tree := filepath.Join(scratch.Path, "repo"), filepath.Join(scratch.Path, "files")
	if err := g.fetchInto(ctx, s, commit, repo); err != nil {
		return err
	}
	size, err := g.measure(ctx, repo, commit)
	if err == nil {
		err = g.room(size)
	}
	if err == nil {
		err = g.extract(ctx, repo, commit, tree)
	}
	if err != nil {
		return gitFailed(s, "the files of %s at %.12s cannot be used: %s", withoutUserinfo(s.URL), commit, pathlessError(err)).Because(err)
	}
	// another process may have been faster
	if err := files.Rename(tree, folder); err != nil && !errors.Is(err, fs.ErrExist) {
		return ioError(folder, err)
	}
	return nil
}

func firstOf(failure string, err error) string {
	if failure != "" || err == nil {
		return lastLine(failure)
	}
	return err.Error()
}

// fetchInto fetches a commit into a new bare repository: alone if the server gives it so, or else with the branch or
// tag that has it.
func (g *Git) fetchInto(ctx context.Context, s *GitSource, commit, repo string) error {
	if _, failure, err := g.runGit(ctx, "", nil, "init", "--bare", "--quiet", "--template=", repo); err != nil ||
		failure != "" {
		return gitFailed(s, "git init: %s", firstOf(failure, err)).Because(err)
	}
	ctx, cancel := withCallTimeout(ctx, s, g.limits.fetch)
	defer cancel()
	ctx, watched := g.watch(ctx, repo)
	defer watched()
	var last string
	for _, what := range [][]string{{"--depth=1", "--", s.URL, commit}, {"--", s.URL, "+refs/*:refs/*"}} {
		// Large files go through git in parts, and what comes stays one pack.
		_, failure, err := g.remote(ctx, s, sysgit.Call{
			Dir: repo, Config: append(largeFiles(), "fetch.unpackLimit=1"),
			Args: append([]string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"}, what...),
		})
		if err != nil {
			return remoteFailed(s, "the repository "+withoutUserinfo(s.URL)+" cannot be fetched", err)
		}
		if _, missing, err := g.runGit(ctx, repo, nil, "cat-file", "-e", commit+"^{commit}"); err == nil && missing == "" &&
			failure == "" {
			if size, err := files.Size(repo); err != nil || size > g.limits.scratch {
				return gitFailed(s, "the repository %s cannot be fetched: it sends more than %d MiB", withoutUserinfo(s.URL),
					g.limits.scratch>>20).Because(err)
			}
			return nil
		}
		last = failure
	}
	return gitFailed(s, "the repository %s does not have the commit %s: %s", withoutUserinfo(s.URL), commit,
		lastLine(last)).With("stderr", last)
}

// watch ends a context when a folder has grown by more than the bytes that a fetch may write. stop ends the watching.
func (g *Git) watch(ctx context.Context, folder string) (watched context.Context, stop func()) {
	const every = 200 * time.Millisecond
	before, _ := files.Size(folder)
	watched, cancel := context.WithCancelCause(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		look := time.NewTicker(every)
		defer look.Stop()
		for {
			select {
			case <-watched.Done():
				return
			case <-look.C:
				if size, _ := files.Size(folder); size-before > g.limits.scratch {
					cancel(tooMuch("it sends more than %d MiB", g.limits.scratch>>20))
					return
				}
			}
		}
	})
	return watched, func() { cancel(nil); done.Wait() }
}

// scratchName begins the names of folders in which something is fetched.
const scratchName = ".new-"

// sweep removes what killed processes left.
func (g *Git) sweep() {
	for _, pattern := range []string{filepath.Join("*", scratchName+"*"), ".checkout-*"} {
		for _, name := range files.Glob(g.cache, pattern) {
			if info, err := files.Lstat(name); err == nil && g.now().Sub(info.ModTime()) > abandoned {
				_ = files.RemoveAll(name)
			}
		}
	}
}

// keptCommit is a commit in the cache.
type keptCommit struct {
	folder string
	used   time.Time
	size   int64
}

// room makes room for need bytes: it removes the least recently used commits, but none that a call may be using. It is
// an error if there is not enough.
func (g *Git) room(need int64) error {
	var list []keptCommit
	total := need
	for _, folder := range files.Glob(g.cache, filepath.Join("*", "*")) {
		if !isCommit(filepath.Base(folder)) {
			continue
		}
		info, err := files.Lstat(folder)
		if err != nil || !info.IsDir() {
			continue
		}
		size, err := files.Size(folder)
		if err != nil {
			return err
		}
		list, total = append(list, keptCommit{folder, info.ModTime(), size}), total+size
	}
	slices.SortFunc(list, func(a, b keptCommit) int { return a.used.Compare(b.used) })
	for _, c := range list {
		if total <= g.limits.cache {
			return nil
		}
		if g.now().Sub(c.used) < inUse {
			break
		}
		if err := removeCommit(c.folder); err != nil {
			return err
		}
		total -= c.size
	}
	if total > g.limits.cache {
		return fmt.Errorf(
			"the cache %s would have more than %d MiB, and all of it was used in the last %d minutes; try again later", g.cache,
			g.limits.cache>>20, inUse/time.Minute)
	}
	return nil
}

// removeCommit removes a commit of the cache: it renames it first, so that a part of it is never found.
func removeCommit(folder string) error {
	away := filepath.Join(filepath.Dir(folder), scratchName+"gone-"+filepath.Base(folder))
	if err := files.Rename(folder, away); err != nil {
		return err
	}
	return files.RemoveAll(away)
}

// keyedLocks are locks by name.
type keyedLocks struct {
	mu   sync.Mutex
	held map[string]chan struct{}
}

// lock waits until the name's lock is free; the returned function gives it up.
func (l *keyedLocks) lock(ctx context.Context, name string) (unlock func(), err error) {
	for {
		l.mu.Lock()
		held, taken := l.held[name]
		if !taken {
			if l.held == nil {
				l.held = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			l.held[name] = mine
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.held, name)
				close(mine)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
