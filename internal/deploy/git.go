package deploy

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/secretfile"
)

// Git runs the git command for modules of other repositories. Neither the user's configuration nor that of a repository takes part, and
// no program is asked for a password.
type Git struct {
	program string   // path of git
	home    string   // for ssh's keys
	cache   string   // cache/git of AGENTPACK_HOME
	env     []string // PATH, for git's own helpers and ssh, and others such as SSH_AUTH_SOCK
	// credentials is the file that git signs in with over HTTPS; "" for none.
	credentials string
	stored      *secretfile.File // the same, for who is told its secrets; nil for nobody
}

// NewGit makes a Git. It touches no disk.
func NewGit(program, userHome, agentpackHome string, env []string) *Git {
	g := &Git{program: program, home: userHome, cache: filepath.Join(agentpackHome, "cache", "git"), env: env}
	for _, variable := range env {
		if file, ok := strings.CutPrefix(variable, credentialsVariable); ok {
			g.credentials = file
		}
	}
	return g
}

// maxGitOutput bounds what git may answer, in bytes.
const maxGitOutput = maxTreeBytes + 64<<20

// run runs git in a folder and returns what it prints; failure is what it said if it failed.
func (g *Git) run(ctx context.Context, dir string, input []byte, args ...string) (out []byte, failure string, err error) {
	return g.runWith(ctx, nil, dir, input, args...)
}

// runWith is run with more variables.
func (g *Git) runWith(ctx context.Context, env []string, dir string, input []byte, args ...string) (out []byte, failure string, err error) {
	args = append([]string{"-c", "protocol.ext.allow=never", "-c", "core.hooksPath=/dev/null", "-c", "credential.helper="}, args...)
	cmd := exec.CommandContext(ctx, g.program, args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(input)
	cmd.Env = append([]string{
		"HOME=" + g.home, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_ALLOW_PROTOCOL=https:http:ssh:git:file", "GIT_ASKPASS=true", "GIT_OPTIONAL_LOCKS=0",
	}, slices.Concat(g.env, env)...)
	var stdout, stderr limited
	stdout.most, stderr.most = maxGitOutput, 64<<10
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return nil, cmp.Or(strings.TrimSpace(stderr.String()), fmt.Sprintf("git ended with code %d", exit.ExitCode())), nil
	}
	if err == nil && stdout.over {
		err = fmt.Errorf("git answered more than %d bytes", maxGitOutput)
	}
	return stdout.Bytes(), "", err
}

// limited keeps so many bytes.
type limited struct {
	bytes.Buffer
	most int
	over bool
}

func (l *limited) Write(p []byte) (int, error) {
	fits := min(len(p), l.most-l.Len())
	l.over = l.over || fits < len(p)
	_, err := l.Buffer.Write(p[:max(fits, 0)])
	return len(p), err
}

func gitFailed(g *GitSource, format string, args ...any) *Error {
	return newError(GitFailed, "git_failed", []string{"check_source", "retry_command"}, format, args...).with("url", g.URL).with("ref", g.Ref)
}

// Resolve is the commit that a source means now: a branch, a tag, or the commit itself.
func (g *Git) Resolve(ctx context.Context, s *GitSource) (string, error) {
	if regexp.MustCompile(`\A[0-9a-f]{40}\z`).MatchString(s.Ref) {
		return s.Ref, nil
	}
	out, failure, err := g.remote(ctx, nil, "", "ls-remote", "--", s.URL, "refs/heads/"+s.Ref, "refs/tags/"+s.Ref, "refs/tags/"+s.Ref+"^{}")
	if err != nil {
		return "", gitFailed(s, "git cannot be run: %s", err).because(err)
	}
	if failure != "" {
		return "", gitFailed(s, "the repository %s cannot be read: %s", s.URL, lastLine(failure)).with("stderr", failure)
	}
	found := map[string]string{}
	for _, line := range strings.Split(string(out), "\n") {
		if commit, ref, ok := strings.Cut(line, "\t"); ok {
			found[ref] = commit
		}
	}
	for _, ref := range []string{"refs/heads/" + s.Ref, "refs/tags/" + s.Ref + "^{}", "refs/tags/" + s.Ref} {
		if commit := found[ref]; commit != "" {
			return commit, nil
		}
	}
	return "", gitFailed(s, "the repository %s has no branch and no tag %s", s.URL, s.Ref)
}

func lastLine(text string) string { return text[strings.LastIndex(text, "\n")+1:] }

// Folder is the folder of the cache with the files of a source at a commit, all of them, whatever its Subdir. They are fetched once.
func (g *Git) Folder(ctx context.Context, s *GitSource, commit string) (string, error) {
	folder := filepath.Join(g.cache, hashOf([]byte(s.URL)), commit)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		if err := g.fetch(ctx, s, commit, folder); err != nil {
			return "", err
		}
	} else {
		touch(folder)
	}
	return folder, nil
}

// touch notes that a folder of the cache is in use: Prune removes what nobody uses.
func touch(folder string) {
	now := time.Now()
	_ = os.Chtimes(folder, now, now)
}

// Files are the files of a source at a commit.
func (g *Git) Files(ctx context.Context, s *GitSource, commit string) (Tree, error) {
	return g.files(ctx, s, commit, reading{})
}

func (g *Git) files(ctx context.Context, s *GitSource, commit string, from reading) (Tree, error) {
	folder, err := g.Folder(ctx, s, commit)
	if err != nil {
		return nil, err
	}
	recorded := from.seal.use(folder, s.Subdir)
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, ioError(folder, err)
	}
	defer func() { _ = root.Close() }()
	if tree := treeOf(root, s.Subdir, recorded, from.hashes); tree != nil {
		return tree, nil
	}
	tree, ok, err := readTree(root, path.Join(".", s.Subdir), from.hashes)
	switch {
	case err != nil:
		return nil, gitFailed(s, "the files of %s at %s cannot be used: %s", s.URL, commit[:12], err)
	case !ok:
		return nil, gitFailed(s, "the repository %s has no %s at %s", s.URL, s.Subdir, commit[:12])
	}
	return tree, nil
}

// fetch brings a commit's files into a folder, at once.
func (g *Git) fetch(ctx context.Context, s *GitSource, commit, folder string) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		return ioError(folder, err)
	}
	scratch, err := os.MkdirTemp(filepath.Dir(folder), ".new-")
	if err != nil {
		return ioError(folder, err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	repo, files := filepath.Join(scratch, "repo"), filepath.Join(scratch, "files")
	if err := g.fetchInto(ctx, s, commit, repo); err != nil {
		return err
	}
	archive, failure, err := g.run(ctx, repo, nil, "archive", "--format=tar", commit)
	if err != nil || failure != "" {
		return gitFailed(s, "the commit %s of %s cannot be read: %s", commit, s.URL, firstOf(failure, err)).because(err)
	}
	if err := extract(archive, files); err != nil {
		return gitFailed(s, "the files of %s at %s cannot be used: %s", s.URL, commit[:12], err).because(err)
	}
	if err := os.Rename(files, folder); err != nil && !errors.Is(err, fs.ErrExist) { // another process may have been faster
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

// fetchInto fetches a commit into a new bare repository: alone if the server gives it so, or else with the branch or tag that has it.
func (g *Git) fetchInto(ctx context.Context, s *GitSource, commit, repo string) error {
	if _, failure, err := g.run(ctx, "", nil, "init", "--bare", "--quiet", "--template=", repo); err != nil || failure != "" {
		return gitFailed(s, "git init: %s", firstOf(failure, err)).because(err)
	}
	var last string
	for _, what := range [][]string{{"--depth=1", "--", s.URL, commit}, {"--", s.URL, "+refs/*:refs/*"}} {
		_, failure, err := g.remote(ctx, nil, repo, append([]string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"}, what...)...)
		if err != nil {
			return gitFailed(s, "git cannot be run: %s", err).because(err)
		}
		if _, missing, err := g.run(ctx, repo, nil, "cat-file", "-e", commit+"^{commit}"); err == nil && missing == "" && failure == "" {
			return nil
		}
		last = failure
	}
	return gitFailed(s, "the repository %s does not have the commit %s: %s", s.URL, commit, lastLine(last)).with("stderr", last)
}

// extract writes the files of a tar below a new folder.
func extract(archive []byte, folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	in := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Clean(h.Name)
		if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeReg:
			err = extractFile(root, name, fs.FileMode(h.Mode).Perm()|0o600, in) //nolint:gosec // a mode of git has few bits
		case tar.TypeSymlink:
			err = root.Symlink(h.Linkname, name)
		}
		if err != nil {
			return err
		}
	}
}

func extractFile(root *os.Root, name string, mode fs.FileMode, in io.Reader) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}

// Patch applies a unified diff to a text; it is a Patcher. Git gets its hunks alone, for a file of a plain name, so that neither the name nor
// anything else that the patch says makes it reach for another file.
func (g *Git) Patch(ctx context.Context, name, before, patch string) (after, failure string, err error) {
	parts, failure := takeApart(patch)
	if failure != "" {
		return "", failure, nil
	}
	if !regexp.MustCompile(`^[A-Za-z0-9._/-]+$`).MatchString(name) {
		name = "file"
	}
	dir, err := os.MkdirTemp("", "claudeops-patch-")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", "", err
	}
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		return "", "", err
	}
	_, failure, err = g.run(ctx, dir, []byte(parts.alone(name)), "apply", "--whitespace=nowarn", "-")
	if err != nil || failure != "" {
		return "", failure, err
	}
	text, err := os.ReadFile(file)
	if err == nil && string(text) == before {
		return "", "the patch changes nothing", nil
	}
	return string(text), "", err
}
