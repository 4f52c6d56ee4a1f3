package deploy

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
	sysgit "github.com/claudeops/claudeops/internal/system/git"
)

// Git runs the git command for modules of other repositories. Neither the user's configuration nor that of a repository
// takes part, and no program is asked for a password.
type Git struct {
	git   *sysgit.Runner
	cache string // cache/git of AGENTPACK_HOME
	// token returns the credential of a source of the operator's list at an address; nil, and "", for none.
	token func(address string) string
	// credentials is the file that git otherwise signs in with over HTTPS; "" for none.
	credentials string
	stored      *files.SecretFile // the same, for registering its secrets; nil if they are not registered
	limits      gitLimits
	now         func() time.Time
	busy        keyedLocks // one fetch of a commit at a time
}

// newGit makes a Git. It touches no disk. env are variables: PATH, for git's own helpers and ssh, and others such as
// SSH_AUTH_SOCK.
func newGit(program, userHome, agentpackHome string, env []string) *Git {
	return &Git{
		git:   &sysgit.Runner{Program: program, Home: userHome, Env: env},
		cache: filepath.Join(agentpackHome, "cache", "git"), limits: defaultGitLimits(), now: time.Now,
	}
}

func gitFailed(g *GitSource, format string, args ...any) *Error {
	return fileset.NewError(GitFailed, "git_failed", []string{"check_source", "retry_command"}, format,
		args...).With("url",
		withoutUserinfo(g.URL)).With("ref", g.Ref)
}

// resolve returns the commit that a source means now: a branch, a tag, or the commit itself.
func (g *Git) resolve(ctx context.Context, s *GitSource) (string, error) {
	if isCommit(s.Ref) {
		return s.Ref, nil
	}
	ctx, cancel := withCallTimeout(ctx, s, g.limits.ask)
	defer cancel()
	out, failure, err := g.remote(ctx, s,
		sysgit.Call{Args: []string{"ls-remote", "--", s.URL, "refs/heads/" + s.Ref, "refs/tags/" + s.Ref,
			"refs/tags/" + s.Ref + "^{}"}})
	if err != nil {
		return "", remoteFailed(s, "git cannot be run", err)
	}
	if failure != "" {
		return "", gitFailed(s, "the repository %s cannot be read: %s", withoutUserinfo(s.URL),
			lastLine(failure)).With("stderr",
			failure)
	}
	found := map[string]string{}
	for _, line := range strings.Split(string(out), "\n") {
		if commit, ref, ok := strings.Cut(line, "\t"); ok {
			found[ref] = commit
		}
	}
	for _, ref := range []string{"refs/heads/" + s.Ref, "refs/tags/" + s.Ref + "^{}", "refs/tags/" + s.Ref} {
		if commit := found[ref]; isCommit(commit) {
			return commit, nil
		}
	}
	return "", gitFailed(s, "the repository %s has no branch and no tag %s", withoutUserinfo(s.URL), s.Ref)
}

// lastLine returns the line of git's words that says what is wrong: the last that begins as such, or the last of all.
func lastLine(text string) string {
	lines := strings.Split(text, "\n")
	for _, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, "fatal: ") || strings.HasPrefix(line, "error: ") {
			return line
		}
	}
	return lines[len(lines)-1]
}

// Files returns the files of a source at a commit.
func (g *Git) Files(ctx context.Context, s *GitSource, commit string) (fileset.Tree, error) {
	return g.treeAt(ctx, s, commit, configSource{})
}

func (g *Git) treeAt(ctx context.Context, s *GitSource, commit string, from configSource) (fileset.Tree, error) {
	folder, err := g.Folder(ctx, s, commit)
	if err != nil {
		return nil, err
	}
	recorded := from.stat.Use(folder, s.Subdir)
	root, err := files.OpenDir(folder)
	if err != nil {
		return nil, ioError(folder, err)
	}
	defer func() { _ = root.Close() }()
	if tree := fileset.RecordedTree(root, s.Subdir, recorded, from.hashes); tree != nil {
		return tree, nil
	}
	tree, ok, err := fileset.ReadTree(root, path.Join(".", s.Subdir), from.hashes)
	switch {
	case err != nil:
		return nil, gitFailed(s, "the files of %s at %s cannot be used: %s", withoutUserinfo(s.URL), commit[:12], err)
	case !ok:
		return nil, gitFailed(s, "the repository %s has no %s at %s", withoutUserinfo(s.URL), s.Subdir, commit[:12])
	}
	return tree, nil
}

// Patch applies a unified diff to a text; it is a Patcher. Git gets its hunks alone, for a file of a plain name, so
// that neither the name nor anything else that the patch says makes it reach for another file.
func (g *Git) Patch(ctx context.Context, name, before, patch string) (after, failure string, err error) {
	parts, failure := takeApart(patch)
	if failure != "" {
		return "", failure, nil
	}
	if !regexp.MustCompile(`^[A-Za-z0-9._/-]+$`).MatchString(name) {
		name = "file"
	}
	temporary, err := files.MakeTemporary("", "claudeops-patch-")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = temporary.Remove() }()
	dir := temporary.Path
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := files.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", "", err
	}
	if err := files.Create(file, []byte(before), 0o600); err != nil {
		return "", "", err
	}
	_, failure, err = g.runGit(ctx, dir, []byte(parts.alone(name)), "apply", "--whitespace=nowarn", "-")
	if err != nil || failure != "" {
		return "", failure, err
	}
	text, _, err := files.ReadPath(file, fileset.MaxFileBytes)
	if err == nil && string(text) == before {
		return "", "the patch changes nothing", nil
	}
	return string(text), "", err
}

// gitLimits bound what git may do.
type gitLimits struct {
	ask     time.Duration // how long a server may take to say which commits it has
	fetch   time.Duration // how long a fetch may take
	silence time.Duration // how long a server may say nothing, where git or ssh can see that
	scratch int64         // bytes that a fetch may write
	cache   int64         // bytes of all commits that are kept; see room
	files   int           // of a commit
	bytes   int64         // of all files of a commit
	file    int64         // bytes of each of them
}

func defaultGitLimits() gitLimits {
	return gitLimits{
		ask: 30 * time.Second, fetch: 5 * time.Minute, silence: 30 * time.Second, scratch: maxCommitBytes,
		cache: defaultCacheBytes,
		files: maxCommitFiles, bytes: maxCommitBytes, file: fileset.MaxFileBytes,
	}
}

const (
	// maxGitOutput bounds what git may answer, in bytes.
	maxGitOutput = 32 << 20
	// maxGitError bounds what is kept of git's own words, in bytes.
	maxGitError = 64 << 10
)

// runGit runs git in a folder, "" for one outside of every repository, and returns its output; failure is its message
// if it failed.
func (g *Git) runGit(ctx context.Context, dir string, input []byte, args ...string) (out []byte, failure string,
	err error) {
	return g.runCall(ctx, sysgit.Call{Dir: dir, Stdin: bytes.NewReader(input), Args: args})
}

// runCall is run with all options.
func (g *Git) runCall(ctx context.Context, c sysgit.Call) (out []byte, failure string, err error) {
	result, err := g.git.Run(ctx, c, sysgit.Limits{Output: maxGitOutput, Said: maxGitError})
	switch {
	case err != nil:
		return nil, "", err
	case result.Code != 0:
		return nil, cmp.Or(result.Said, fmt.Sprintf("git ended with code %d", result.Code)), nil
	}
	return result.Out, "", nil
}

// lateError says that another repository took too long.
type lateError struct {
	address string
	limit   time.Duration
}

func (e lateError) Error() string {
	return fmt.Sprintf("%s did not answer to the end within %s", e.address, e.limit)
}

// withCallTimeout bounds a call to another repository.
func withCallTimeout(ctx context.Context, s *GitSource, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, lateError{withoutUserinfo(s.URL), limit})
}

// fits returns an error if a commit has more than is taken. entries may be folders, too.
func (l gitLimits) fits(entries, most int, size, largest int64, name string) error {
	switch {
	case largest > l.file:
		return tooMuch("%s has more than %d bytes", fileset.Short(name), l.file)
	case entries > most:
		return tooMuch("it has more than %d files", most)
	case size > l.bytes:
		return tooMuch("it has more than %d bytes", l.bytes)
	}
	return nil
}

// learnStored has learn told the secrets of the file of credentials, and later those that it comes to hold.
func (g *Git) learnStored(learn func(secrets ...string)) {
	if g.credentials != "" && learn != nil {
		g.stored = files.NewSecretFile(g.credentials, "", func(text string) { learn(files.SecretsInAddresses(text)...) })
	}
}

// remote is call for commands that access another repository: git may sign in there, with the token of a source that
// the operator has admitted, or with what the file of credentials has for the host. Neither is among the arguments nor
// in the environment of git, nor written anywhere.
func (g *Git) remote(ctx context.Context, s *GitSource, c sysgit.Call) (out []byte, failure string, err error) {
	fetching(ctx, s.URL)
	c.Remote = &sysgit.Remote{URL: s.named, Exact: s.exact, Public: s.public, Silence: g.limits.silence}
	if g.token != nil {
		c.Remote.Token = g.token(s.URL)
	}
	if c.Remote.Token != "" || g.credentials == "" {
		return g.runCall(ctx, c)
	}
	info, err := files.Stat(g.credentials)
	switch {
	case err != nil:
		return nil, "the file of git's credentials cannot be read: " + pathlessError(err), nil
	case !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, "the file of git's credentials " + g.credentials +
			" may be read by others than its owner; chmod 600 mends it", nil
	}
	if g.stored != nil {
		_ = g.stored.Value() // what is new in it is kept out of texts from now on
	}
	c.Remote.Credentials = g.credentials
	return g.runCall(ctx, c)
}

// remoteFailed returns the error of a call to another repository that could not be made, or did not end:
// E_SOURCE_NOT_ALLOWED if the operator admits no private address of it.
func remoteFailed(s *GitSource, what string, err error) *Error {
	if !errors.Is(err, sysgit.ErrPrivate) {
		return gitFailed(s, "%s: %s", what, err).Because(err)
	}
	refused := notNamed(s.URL,
		"the repository %s is not read: %s, which its source does not admit; claudeops sources allow --private does",
		withoutUserinfo(s.URL), err)
	if origin, err := sources.OriginOf(s.URL); err == nil {
		refused = refused.With("allow", "claudeops sources allow "+origin+" --private")
	}
	return refused
}

// tooMuchError says that a repository has more than is taken.
type tooMuchError struct{ what string }

func (e tooMuchError) Error() string { return e.what }

func tooMuch(format string, args ...any) error { return tooMuchError{fmt.Sprintf(format, args...)} }

// measure says how many bytes the files of a commit have. It is an error if they are more, or larger, than is taken.
func (g *Git) measure(ctx context.Context, repo, commit string) (size int64, err error) {
	err = g.streamed(ctx, func(out io.Reader) error {
		entries := bufio.NewScanner(out)
		entries.Buffer(nil, 1<<20)
		entries.Split(func(data []byte, _ bool) (int, []byte, error) {
			if i := slices.Index(data, 0); i >= 0 {
				return i + 1, data[:i], nil
			}
			return 0, nil, nil
		})
		files := 0
		for entries.Scan() { // MODE blob OBJECT SIZE<TAB>PATH
			about, name, _ := strings.Cut(entries.Text(), "\t")
			fields := strings.Fields(about)
			if len(fields) != 4 || fields[1] != "blob" {
				continue // another repository within this one
			}
			bytes, err := strconv.ParseInt(fields[3], 10, 64)
			if err != nil {
				return err
			}
			files, size = files+1, size+bytes
			if err := g.limits.fits(files, g.limits.files, size, bytes, name); err != nil {
				return err
			}
		}
		return entries.Err()
	}, sysgit.Call{Dir: repo, Args: []string{"ls-tree", "-r", "-l", "-z", commit}})
	return size, err
}

// extract writes the files of a commit below a new folder, as git gives them.
func (g *Git) extract(ctx context.Context, repo, commit, folder string) error {
	return g.streamed(ctx, func(out io.Reader) error { return extract(out, folder, g.limits) },
		sysgit.Call{Dir: repo, Config: largeFiles(), Args: []string{"archive", "--format=tar", commit}})
}

// largeFiles returns the settings by which large files go through git in parts.
func largeFiles() []string { return []string{"core.bigFileThreshold=1m"} }

// streamed runs git and has read what it prints. An error of read ends git, and is returned.
func (g *Git) streamed(ctx context.Context, read func(io.Reader) error, c sysgit.Call) error {
	err := g.git.Stream(ctx, c, sysgit.Limits{Said: maxGitError}, read)
	if exit := (*sysgit.ExitError)(nil); errors.As(err, &exit) {
		return errors.New(lastLine(exit.Error()))
	}
	return err
}

// extract writes the files of a tar below a new folder.
func extract(archive io.Reader, folder string, l gitLimits) error {
	if err := files.Mkdir(folder, 0o700); err != nil {
		return err
	}
	root, err := files.OpenWriting(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	in, count, size := tar.NewReader(archive), 0, int64(0)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		// An attribute of the repository may have git write other bytes than the file has, so that the bounds are held here,
		// too.
		count, size = count+1, size+h.Size
		if err := l.fits(count, 2*l.files+1, size, h.Size, h.Name); err != nil {
			return err
		}
		name := path.Clean(h.Name)
		if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeReg:
			err = root.Extract(name, in, fs.FileMode(h.Mode).Perm()|0o600) //nolint:gosec // a mode of git has few bits
		case tar.TypeSymlink:
			err = root.Symlink(h.Linkname, name)
		}
		if err != nil {
			return err
		}
	}
}
