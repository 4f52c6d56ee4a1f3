package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/git"
)

const (
	// maxOutput bounds what one git command may answer, in bytes.
	maxOutput = 64 << 20
	// maxStderr bounds what is kept of git's own words, in bytes. They go to logs only.
	maxStderr = 4 << 10
)

// runner runs git on repositories and workspaces. It is safe for concurrent use.
type runner struct {
	git       *git.Runner
	temp      string
	timeout   time.Duration
	committer identity
	tidied    sync.Once // what killed processes left has been removed
}

// newRunner makes a runner. program is the path of git; "" for the one in PATH.
func newRunner(program, temp string, timeout time.Duration, committer identity) *runner {
	return &runner{git: &git.Runner{Program: program}, temp: temp, timeout: timeout, committer: committer}
}

// gitCommand is one call of git.
type gitCommand struct {
	gitDir string
	config []string // key=value pairs that override the git directory's configuration
	env    []string
	args   []string
	stdin  io.Reader
	accept []int       // exit codes beside 0 that are answers, not failures
	limit  int         // bytes of output; 0 means maxOutput
	of     *repository // whose objects are read; nil: none
	// lock, if not nil, is the lock under which the command writes. The command inherits it and runs to its end, even if
	// this process is killed meanwhile: a git that is ended between making a lock file and noting that it did leaves the
	// file, and blocks the repository.
	lock *writeLock
}

// exitError says how git failed. Its text is for logs.
type exitError struct {
	name   string
	code   int
	stderr string
}

func (e *exitError) Error() string {
	return fmt.Sprintf("git %s: exit code %d: %s", e.name, e.code, e.stderr)
}

// runGit gives the output and the exit code of a command.
func (g *runner) runGit(ctx context.Context, c gitCommand) (out []byte, code int, err error) {
	result, err := g.git.Run(ctx, g.callOf(c), g.limits(c))
	return result.Out, result.Code, g.outcome(ctx, c, result, err)
}

func (g *runner) callOf(c gitCommand) git.Call {
	call := git.Call{
		GitDir: c.gitDir, Config: c.config, Env: append(g.committer.environ("COMMITTER"), c.env...), Args: c.args,
		Stdin: c.stdin,
	}
	if c.lock != nil {
		call.Finish, call.Keep = true, c.lock.files()
	}
	return call
}

func (g *runner) limits(c gitCommand) git.Limits {
	return git.Limits{Time: g.timeout, Output: cmp.Or(c.limit, maxOutput), Said: maxStderr}
}

// outcome turns the end of a command into nil or a *fault.Error.
func (g *runner) outcome(ctx context.Context, c gitCommand, result git.Result, err error) error {
	switch {
	case err != nil && ctx.Err() != nil:
		return fault.From(ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		return fault.From(err)
	case errors.Is(err, git.ErrTooMuch):
		return fault.Wrap(err, fault.UpstreamError,
			"git %s answered more than claudeops reads; the repository is too large for this call", c.args[0])
	case errors.Is(err, git.ErrNotFound):
		return fault.Wrap(err, fault.ProviderDisabled,
			"the git command was not found; install git %s or later, or put it in PATH", oldestGit())
	case err != nil:
		return fault.Wrap(err, fault.UpstreamError, "git could not be run; ask the operator to look at `claudeops doctor`")
	case result.Code == 0 || slices.Contains(c.accept, result.Code):
		return nil
	}
	const usageError = 129 // git's exit code for an option that it does not know
	if result.Code == usageError && c.args[0] != "version" {
		if _, err := g.gitVersion(ctx); err != nil {
			return err
		}
	}
	return c.of.explainPartial(ctx, gitFailure(&exitError{c.args[0], result.Code, result.Said}))
}

// gitFailure returns the error of a git command that should not have failed.
func gitFailure(e *exitError) error {
	if strings.Contains(e.stderr, "No space left on device") || strings.Contains(e.stderr, "Disk quota exceeded") {
		return fault.Wrap(e, fault.UpstreamError, "git %s found no room on the disk; ask the operator to make room", e.name)
	}
	return fault.Wrap(e, fault.UpstreamError, "git %s failed on the repository; ask the operator to check its "+
		"permissions and disk space, and to run git fsck", e.name)
}

// explainPartial is a failure that names the reason if it is that a partial clone lacks an object: git would fetch it,
// and nothing is fetched here. A nil repository explains nothing.
func (repo *repository) explainPartial(ctx context.Context, failure error) error {
	var exit *exitError
	lacks := errors.Is(failure, errMissing) || errors.As(failure, &exit) &&
		slices.ContainsFunc([]string{"unable to read", "missing", "could not get object info", "bad object"},
			func(words string) bool { return strings.Contains(exit.stderr, words) })
	if repo == nil || !lacks {
		return failure
	}
	if settings, err := repo.remoteSettings(ctx); err != nil || !settings.partial {
		return failure
	}
	return fault.Wrap(failure, fault.RepoNotAllowed, "the repository %s is a partial clone, which lacks files that are "+
		"needed here; ask the operator to make a whole clone in its place", repo.ref)
}

// workspace is a private, temporary git directory of ours that borrows the objects of a repository; see the package
// comment. What is written to a workspace goes away with it, unless the workspace keeps. That of a process which was
// killed is removed by another process a day later.
type workspace struct {
	git   *runner
	of    *repository // whose objects it borrows
	dir   string
	env   []string
	idLen int // length of an object id, in hexadecimal digits
}

const (
	sha1Len   = 40
	sha256Len = 64
)

// workspace makes a workspace for a repository. sample is any object id of the repository: its length tells the object
// format. With keep, new objects go to the repository.
func (repo *repository) workspace(sample string, keep bool) (*workspace, error) {
	repo.git.tidied.Do(func() { removeForgotten(repo.git.temp, time.Now()) })
	dir, err := files.MakeTemporary(repo.git.temp, workspacePrefix)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal,
			"no temporary folder could be made; the operator has to make room or to set TMPDIR")
	}
	w := &workspace{git: repo.git, of: repo, dir: dir.Path, idLen: len(sample)}
	objects := filepath.Join(repo.gitDir, "objects")
	if keep {
		w.env = []string{"GIT_OBJECT_DIRECTORY=" + objects}
	}
	if err := w.fill(objects, filepath.Join(repo.gitDir, "shallow")); err != nil {
		w.close()
		return nil, fault.Wrap(err, fault.Internal,
			"the temporary folder could not be written; the operator has to make room or to set TMPDIR")
	}
	return w, nil
}

// fill writes the files of the workspace. shallow is the file in which a shallow clone notes where its history ends,
// which git has to know of.
func (w *workspace) fill(objects, shallow string) error {
	info, err := files.Stat(objects)
	if err != nil {
		return err
	}
	for _, sub := range []string{"refs", filepath.Join("objects", "info")} {
		if err := files.MkdirAll(filepath.Join(w.dir, sub), 0o700); err != nil {
			return err
		}
	}
	contents := map[string]string{
		"HEAD":                    "ref: refs/heads/none\n",
		"objects/info/alternates": objects + "\n",
		"config":                  configuration(w.idLen, info.Mode().Perm()),
	}
	ends, _, err := files.ReadUnlinked(shallow, maxSettings)
	switch {
	case err == nil:
		contents["shallow"] = string(ends)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	for name, content := range contents {
		if err := files.Create(filepath.Join(w.dir, filepath.FromSlash(name)), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// configuration returns all the configuration of a workspace. Loose objects are flushed to disk once per batch: a
// reference, which git flushes by default, must not survive a power cut that its objects do not.
func configuration(idLen int, objects fs.FileMode) string {
	format := "sha1"
	if idLen == sha256Len {
		format = "sha256"
	}
	return fmt.Sprintf(`[core]
	repositoryFormatVersion = 1
	bare = true
	hooksPath = /dev/null
	sharedRepository = 0%o
	fsync = loose-object
	fsyncMethod = batch
[extensions]
	objectFormat = %s
[gc]
	auto = 0
[protocol]
	allow = never
`, objects&0o666|0o600, format)
}

// close removes the workspace. A leftover in the temporary folder does no harm.
func (w *workspace) close() { _ = files.Temporary{Path: w.dir}.Remove() }

// runGit runs git in the workspace.
func (w *workspace) runGit(ctx context.Context, stdin io.Reader, accept []int, args ...string) ([]byte, int, error) {
	return w.git.runGit(ctx, w.newCommand(stdin, accept, args...))
}

func (w *workspace) newCommand(stdin io.Reader, accept []int, args ...string) gitCommand {
	return gitCommand{gitDir: w.dir, env: w.env, args: args, stdin: stdin, accept: accept, of: w.of}
}

// id runs a command that answers one object id.
func (w *workspace) id(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	out, _, err := w.runGit(ctx, stdin, nil, args...)
	if err != nil {
		return "", err
	}
	return w.parseID(out)
}

func (w *workspace) parseID(out []byte) (string, error) {
	id := string(bytes.TrimSpace(out))
	if !isID(id) || len(id) != w.idLen {
		return "", fault.Wrap(fmt.Errorf("answer %.100q", id), fault.Internal,
			"git answered something else than an object id")
	}
	return id, nil
}

// isID reports whether s is a full object id.
func isID(s string) bool {
	return (len(s) == sha1Len || len(s) == sha256Len) && strings.Trim(s, "0123456789abcdef") == ""
}

// isAncestor reports whether commit a is b or an ancestor of b. A commit a that the repository no longer has is none.
func (w *workspace) isAncestor(ctx context.Context, a, b string) (bool, error) {
	if !isID(a) {
		return false, nil
	}
	if _, code, err := w.runGit(ctx, nil, []int{1}, "cat-file", "-e", a); err != nil || code != 0 {
		return false, err
	}
	_, code, err := w.runGit(ctx, nil, []int{1}, "merge-base", "--is-ancestor", a, b)
	return err == nil && code == 0, err
}

// workspacePrefix begins the name of each workspace's folder.
const workspacePrefix = "claudeops-git-"

// forgottenAfter is the age at which a workspace counts as abandoned: none of our commands runs nearly as long.
const forgottenAfter = 24 * time.Hour

// removeForgotten removes the workspaces of processes that were killed, where the folders are this user's.
func removeForgotten(temp string, now time.Time) {
	if temp == "" {
		temp = os.TempDir()
	}
	folder, err := files.OpenDir(temp)
	if err != nil {
		return // as below
	}
	defer func() { _ = folder.Close() }()
	entries, _, err := folder.Entries(".", maxEntries)
	if err != nil {
		return // no workspace can be made there either, and that says why
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), workspacePrefix) {
			continue
		}
		info, err := entry.Info()
		if err == nil && info.IsDir() && isOurs(info) && now.Sub(info.ModTime()) > forgottenAfter {
			// where this fails, the system's own cleaning is left
			_ = files.Temporary{Path: filepath.Join(temp, entry.Name())}.Remove()
		}
	}
}
