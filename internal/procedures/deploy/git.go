package deploy

import (
	"context"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/system/files"
	sysgit "github.com/claudeops/claudeops/internal/system/git"
	"github.com/claudeops/claudeops/internal/system/secretfile"
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
	stored      *secretfile.File // the same, for registering its secrets; nil if they are not registered
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
	return change.NewError(GitFailed, "git_failed", []string{"check_source", "retry_command"}, format, args...).With("url",
		shown(g.URL)).With("ref", g.Ref)
}

// resolve returns the commit that a source means now: a branch, a tag, or the commit itself.
func (g *Git) resolve(ctx context.Context, s *GitSource) (string, error) {
	if isCommit(s.Ref) {
		return s.Ref, nil
	}
	ctx, cancel := within(ctx, s, g.limits.ask)
	defer cancel()
	out, failure, err := g.remote(ctx, s,
		sysgit.Call{Args: []string{"ls-remote", "--", s.URL, "refs/heads/" + s.Ref, "refs/tags/" + s.Ref,
			"refs/tags/" + s.Ref + "^{}"}})
	if err != nil {
		return "", remoteFailed(s, "git cannot be run", err)
	}
	if failure != "" {
		return "", gitFailed(s, "the repository %s cannot be read: %s", shown(s.URL), lastLine(failure)).With("stderr",
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
	return "", gitFailed(s, "the repository %s has no branch and no tag %s", shown(s.URL), s.Ref)
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
func (g *Git) Files(ctx context.Context, s *GitSource, commit string) (change.Tree, error) {
	return g.files(ctx, s, commit, reading{})
}

func (g *Git) files(ctx context.Context, s *GitSource, commit string, from reading) (change.Tree, error) {
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
	if tree := change.RecordedTree(root, s.Subdir, recorded, from.hashes); tree != nil {
		return tree, nil
	}
	tree, ok, err := change.ReadTree(root, path.Join(".", s.Subdir), from.hashes)
	switch {
	case err != nil:
		return nil, gitFailed(s, "the files of %s at %s cannot be used: %s", shown(s.URL), commit[:12], err)
	case !ok:
		return nil, gitFailed(s, "the repository %s has no %s at %s", shown(s.URL), s.Subdir, commit[:12])
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
	_, failure, err = g.run(ctx, dir, []byte(parts.alone(name)), "apply", "--whitespace=nowarn", "-")
	if err != nil || failure != "" {
		return "", failure, err
	}
	text, _, err := files.ReadPath(file, change.MaxFileBytes)
	if err == nil && string(text) == before {
		return "", "the patch changes nothing", nil
	}
	return string(text), "", err
}
