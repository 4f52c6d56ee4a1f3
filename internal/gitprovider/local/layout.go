package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
)

// layout looks at a git directory before git does. Git follows links wherever it reads and writes, so one below refs or
// objects leads its writes to another place, and it waits for a writer where it opens a pipe. So a repository is served
// only if all that git would open in it is made of regular files and folders.
type layout struct {
	ctx  context.Context // of the call that looks
	repo *repository
	seen map[string]bool // object folders and files of configuration that were looked at
}

// Bounds of what a repository may make us read.
const (
	maxSettings = 1 << 20 // bytes of a file of configuration, or of alternates
	maxSeen     = 100     // object folders and files of configuration
	maxOpens    = 100     // tries to open a folder that is a file each time
)

// checkLayout refuses a repository that leads git out of its folder, or to something that is not a file. The error is
// repo_not_allowed; it names the place and the remedy.
func (repo *repository) checkLayout(ctx context.Context) error {
	l := layout{ctx: ctx, repo: repo, seen: map[string]bool{}}
	if err := l.top(); err != nil {
		return err
	}
	for _, dir := range []string{"refs", "logs", "info", "worktrees", "reftable"} {
		if err := l.walk(filepath.Join(repo.gitDir, dir)); err != nil {
			return err
		}
	}
	if err := l.objects(filepath.Join(repo.gitDir, "objects")); err != nil {
		return err
	}
	for _, name := range []string{"config", "config.worktree"} {
		if err := l.checkConfig(filepath.Join(repo.gitDir, name)); err != nil {
			return err
		}
	}
	return nil
}

// top looks at what lies directly in the git directory.
func (l layout) top() error {
	entries, err := l.listFolder(l.repo.gitDir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !unopened(entry.Name()) && !entry.Type().IsRegular() && !entry.IsDir() {
			return l.unsafeFileError(filepath.Join(l.repo.gitDir, entry.Name()), entry.Type())
		}
	}
	return nil
}

// unopened names what none of our git commands opens, and what people and tools do link.
func unopened(name string) bool {
	return slices.Contains([]string{"hooks", "branches", "description", "modules", "lfs", "annex",
		"fsmonitor--daemon.ipc"}, name)
}

// walk looks at everything below a folder, which need not be there.
func (l layout) walk(dir string) error {
	entries, err := l.listFolder(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch {
		case entry.IsDir():
			if err := l.walk(path); err != nil {
				return err
			}
		case !entry.Type().IsRegular():
			return l.unsafeFileError(path, entry.Type())
		}
	}
	return nil
}

// listFolder reads a folder, which need not be there. A link to a folder is none.
func (l layout) listFolder(dir string) ([]fs.DirEntry, error) {
	f, err := l.openUnlinked(dir)
	if f == nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading
	entries, err := f.ReadDir(-1)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a folder that git removes while it is read has nothing in it
		return nil, unreadable(err)
	}
	return entries, nil
}

// openUnlinked opens a folder; nil if there is none, or a file.
func (l layout) openUnlinked(dir string) (*os.File, error) {
	for try := 1; ; try++ {
		if l.ctx.Err() != nil {
			return nil, fault.From(l.ctx.Err())
		}
		f, err := files.OpenFolderUnlinked(dir)
		if err == nil {
			return f, nil
		}
		info, statErr := files.Lstat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(statErr, fs.ErrNotExist), statErr == nil && info.Mode().IsRegular():
			return nil, nil // git has removed it since it was seen, or has put a reference in its place
		case statErr == nil && !info.IsDir():
			return nil, l.unsafeFileError(dir, info.Mode().Type())
		case errors.Is(err, syscall.ENOTDIR) && try < maxOpens:
			continue // git has put a folder in the place of a reference meanwhile
		}
		return nil, unreadable(err)
	}
}

// objects looks at an object folder and at those that it borrows from (objects/info/alternates).
func (l layout) objects(dir string) error {
	if l.seen[dir] {
		return nil
	}
	l.seen[dir] = true
	if err := l.walk(dir); err != nil {
		return err
	}
	file := filepath.Join(dir, "info", "alternates")
	text, err := l.readSmallFile(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(dir, line)
		}
		other, err := files.RealPath(line)
		if errors.Is(err, fs.ErrNotExist) {
			continue // git goes on without it
		}
		inside, relErr := filepath.Rel(l.repo.root, other)
		if err != nil || relErr != nil || !filepath.IsLocal(inside) || len(l.seen) > maxSeen {
			return l.refusef("%s borrows objects from %.200q, which is not below CLAUDEOPS_LOCAL_ROOT; "+
				"the operator has to run `git repack -a -d` there and to remove that file", file, line)
		}
		if err := l.objects(other); err != nil {
			return err
		}
	}
	return nil
}

// checkConfig looks at a file of configuration and at those that it includes.
func (l layout) checkConfig(file string) error {
	if l.seen[file] {
		return nil
	}
	l.seen[file] = true
	text, err := l.readSmallFile(file)
	if err != nil || !strings.Contains(strings.ToLower(text), "include") {
		return err
	}
	const none = 1
	out, _, err := l.repo.git.runGit(l.ctx, gitCommand{
		gitDir: "", stdin: strings.NewReader(text), accept: []int{none}, limit: maxSettings,
		args: []string{"config", "--file", "-", "--no-includes", "--null", "--get-regexp", `^include(if\..*)?\.path$`},
	})
	if err != nil {
		return err
	}
	for _, pair := range splitZ(out) {
		_, path, _ := strings.Cut(pair, "\n")
		switch {
		case path == "" || strings.HasPrefix(path, "~/"): // git runs without a home folder
			continue
		case path[0] == '~' || path[0] == '%' || len(l.seen) > maxSeen:
			return l.refusef("%s includes %.200q, which claudeops does not follow; the operator has to take it out", file, path)
		case !filepath.IsAbs(path):
			path = filepath.Join(filepath.Dir(file), path)
		}
		resolved, err := files.RealPath(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return unreadable(err)
		}
		if err := l.checkConfig(resolved); err != nil {
			return err
		}
	}
	return nil
}

// readSmallFile reads a small file, which need not be there, and must be regular.
func (l layout) readSmallFile(file string) (string, error) {
	text, _, err := files.ReadUnlinked(file, maxSettings)
	switch {
	case err == nil:
		return string(text), nil
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case errors.Is(err, files.ErrTooLarge):
		return "", l.refusef("%s is larger than 1 MiB; the operator has to make it smaller", file)
	}
	if info, statErr := files.Lstat(file); statErr == nil && !info.Mode().IsRegular() {
		return "", l.unsafeFileError(file, info.Mode().Type())
	}
	return "", unreadable(err)
}

// unsafeFileError says what is in the way.
func (l layout) unsafeFileError(path string, mode fs.FileMode) error {
	what, todo := "no regular file", "remove it"
	switch {
	case mode&fs.ModeSymlink != 0:
		what, todo = "a symbolic link", "replace it by what it leads to"
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	}
	return l.refusef("%s is %s, and git would follow or open it; the operator has to %s", path, what, todo)
}

func (l layout) refusef(format string, args ...any) error {
	return fault.New(fault.RepoNotAllowed, "the repository %s is not served: "+format,
		append([]any{l.repo.ref}, args...)...)
}
