package deploy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
	sysgit "github.com/claudeops/claudeops/internal/system/git"
)

// Checkout is the result of an update of the configuration's checkout.
type Checkout struct {
	Branch string
	From   string // commits; the same if there was nothing new
	To     string
}

// Update brings the checkout AGENTPACK_HOME/repo to the newest commit of the branch that it follows: it fetches, and
// goes forward if each file is as one of the two commits has it. Nothing that a person has in the checkout is changed
// or lost, no hook runs, and neither the checkout's configuration nor the user's says which programs run: the work is
// done in a git directory of its own, over the checkout's objects, files and index. If git is killed in the middle, the
// next call repairs the state.
//
// E_CHECKOUT_NOT_READY says what a person has to do: reason_code not_a_checkout, detached, no_remote, changed_files,
// diverged or busy.
func (s *Service) Update(ctx context.Context) (Checkout, error) {
	if err := s.checkHome(); err != nil {
		return Checkout{}, faultOf(err)
	}
	if why := s.engine.Closed(); why != "" {
		return Checkout{}, faultOf(fileset.NewError(notAllowed, "read_only", []string{"ask_operator"},
			"nothing is written: %s", why))
	}
	c, err := s.setup.Git.update(ctx, s.setup.repo(""))
	return c, faulted(err)
}

// checkout is a checkout that is brought forward.
type checkout struct {
	git     *Git
	dir     string
	scratch string   // a git directory of our own
	index   string   // of the checkout
	objects string   // the folder of its objects
	env     []string // git in scratch, over the objects and files of the checkout
	Checkout
}

func notReady(why, next, format string, args ...any) *Error {
	return fileset.NewError(CheckoutNotReady, why, []string{next, "retry_command"}, format, args...)
}

func (g *Git) update(ctx context.Context, dir string) (Checkout, error) {
	if _, err := files.Lstat(filepath.Join(dir, ".git")); err != nil {
		return Checkout{}, notReady("not_a_checkout", "clone_repository", "%s is not a git checkout",
			dir).With("path", dir)
	}
	if err := files.MkdirAll(g.cache, 0o700); err != nil {
		return Checkout{}, ioError(g.cache, err)
	}
	scratch, err := files.MakeTemporary(g.cache, ".checkout-")
	if err != nil {
		return Checkout{}, ioError(g.cache, err)
	}
	defer func() { _ = scratch.Remove() }()
	c := &checkout{git: g, dir: dir, scratch: filepath.Join(scratch.Path, "git")}
	source, err := c.follows(ctx)
	if err != nil {
		return Checkout{}, err
	}
	if err := c.makeGitDir(ctx); err != nil {
		return Checkout{}, err
	}
	if err := c.fetch(ctx, source); err != nil {
		return Checkout{}, err
	}
	if err := c.forward(ctx); err != nil {
		return Checkout{}, err
	}
	return c.Checkout, nil
}

// runGit runs git in the checkout's folder. A call whose context cannot end changes files or references: it runs to its
// end.
func (c *checkout) runGit(ctx context.Context, env, args []string) (out []byte, failure string, err error) {
	return c.git.runCall(ctx, sysgit.Call{Dir: c.dir, Env: env, Args: args, Finish: ctx.Done() == nil})
}

// runHere runs git in the checkout itself, to read its branch and where it follows, and to move the branch.
func (c *checkout) runHere(ctx context.Context, args ...string) (out string, ok bool, err error) {
	text, failure, err := c.runGit(ctx, nil, args)
	if err != nil {
		return "", false, fileset.NewError(GitFailed, "git_failed", []string{"retry_command"}, "git cannot be run: %s",
			err).Because(err)
	}
	return strings.TrimSpace(string(text)), failure == "", nil
}

// over runs git in the directory of our own.
func (c *checkout) over(ctx context.Context, env []string, args ...string) (out string, failure string, err error) {
	text, failure, err := c.runGit(ctx, append(slices.Clone(c.env), env...), args)
	if err != nil {
		err = fileset.NewError(GitFailed, "git_failed", []string{"retry_command"}, "git cannot be run: %s", err).Because(err)
	}
	return strings.TrimSpace(string(text)), failure, err
}

// must is over for commands that do not fail in a sound repository.
func (c *checkout) must(ctx context.Context, env []string, args ...string) (string, error) {
	out, failure, err := c.over(ctx, env, args...)
	if err == nil && failure != "" {
		err = fileset.NewError(GitFailed, "git_failed", []string{"check_checkout", "retry_command"}, "git %s in %s: %s",
			args[0], c.dir, lastLine(failure)).With("stderr", failure)
	}
	return out, err
}

// follows reads the checkout's branch and commit, and where the branch comes from.
func (c *checkout) follows(ctx context.Context) (*GitSource, error) {
	branch, on, err := c.runHere(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil {
		return nil, err
	}
	if !on {
		return nil, notReady("detached", "switch_to_branch",
			"%s is on no branch, or git does not trust the owner of its files", c.dir).With("path", c.dir)
	}
	c.Branch = branch
	if c.From, on, err = c.runHere(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil || !on {
		return nil, errors.Join(err, notReady("detached", "switch_to_branch", "the branch %s of %s has no commit", branch,
			c.dir))
	}
	config := func(name, otherwise string) string {
		if value, found, err := c.runHere(ctx, "config", "--local", "--no-includes", "--get", name); err == nil && found &&
			value != "" {
			return value
		}
		return otherwise
	}
	remote := config("branch."+branch+".remote", "origin")
	merge := config("branch."+branch+".merge", "refs/heads/"+branch)
	source := &GitSource{URL: config("remote."+remote+".url", ""), Ref: strings.TrimPrefix(merge, "refs/heads/")}
	if strings.HasPrefix(source.URL, "./") || strings.HasPrefix(source.URL, "../") {
		source.URL = filepath.Join(c.dir, source.URL)
	}
	if err := source.normalize("of the checkout"); err != nil || source.URL == "" {
		return nil, notReady("no_remote", "add_remote",
			"the branch %s of %s follows no repository that could be fetched from", branch, c.dir).Because(err)
	}
	return source.operators(), nil // the checkout is the operator's own configuration
}

// makeGitDir makes the git directory of our own.
func (c *checkout) makeGitDir(ctx context.Context) error {
	format := "sha1"
	if len(c.From) == 64 {
		format = "sha256"
	}
	if _, failure, err := c.git.runGit(ctx, "", nil, "init", "--bare", "--quiet", "--template=", "--object-format="+format,
		c.scratch); err != nil || failure != "" {
		return fileset.NewError(GitFailed, "git_failed", []string{"retry_command"}, "git init: %s",
			firstOf(failure, err)).Because(err)
	}
	at := map[string]string{}
	for _, name := range []string{"objects", "index", "shallow", "info/exclude"} {
		path, ok, err := c.runHere(ctx, "rev-parse", "--git-path", name)
		if err != nil || !ok {
			return errors.Join(err, notReady("not_a_checkout", "clone_repository", "%s is not a git checkout",
				c.dir))
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.dir, path)
		}
		at[name] = path
	}
	for _, name := range []string{"shallow", "info/exclude"} {
		text, _, err := files.ReadPath(at[name], maxConfigBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = errors.Join(files.MkdirAll(filepath.Join(c.scratch, "info"), 0o700),
				files.Replace(filepath.Join(c.scratch, filepath.FromSlash(name)), text, 0o600))
		}
		if err != nil {
			return ioError(at[name], err)
		}
	}
	c.index, c.objects = at["index"], at["objects"]
	c.env = []string{"GIT_DIR=" + c.scratch, "GIT_WORK_TREE=" + c.dir, "GIT_OBJECT_DIRECTORY=" + at["objects"]}
	_, err := c.must(ctx, nil, "update-ref", "refs/heads/from", c.From)
	return err
}

// fetch brings the newest commit among the checkout's objects.
func (c *checkout) fetch(ctx context.Context, s *GitSource) error {
	bounded, cancel := withCallTimeout(ctx, s, c.git.limits.fetch)
	defer cancel()
	bounded, stop := c.git.watch(bounded, c.objects)
	defer stop()
	_, failure, err := c.git.remote(bounded, s, sysgit.Call{Dir: c.dir, Env: c.env, Args: []string{
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--", s.URL,
		"+refs/heads/" + s.Ref + ":refs/heads/to",
	}})
	if err != nil {
		return fileset.NewError(GitFailed, "git_failed", []string{"retry_command"}, "git cannot be run: %s", err).Because(err)
	}
	if failure != "" {
		return gitFailed(s, "the branch %s of %s cannot be fetched: %s", s.Ref, withoutUserinfo(s.URL),
			lastLine(failure)).With("stderr", failure)
	}
	c.To, err = c.must(ctx, nil, "rev-parse", "--verify", "refs/heads/to^{commit}")
	return err
}

// forward moves files, index and branch to the new commit, if nothing is lost by it.
func (c *checkout) forward(ctx context.Context) error {
	base, _, err := c.over(ctx, nil, "merge-base", c.From, c.To) // fails if they have none
	if err != nil {
		return err
	}
	if base != c.From {
		return notReady("diverged", "push_or_reset", "the branch %s of %s has commits that its remote branch does not have",
			c.Branch, c.dir).With("path", c.dir)
	}
	before, err := c.differs(ctx, c.From)
	if err != nil {
		return err
	}
	if c.To == c.From {
		return c.checkUnchanged(before)
	}
	move := []string{"read-tree", "-m", "-u", c.From, c.To}
	if len(before) > 0 { // a git that was killed on its way from the one to the other may have left it so
		after, err := c.differs(ctx, c.To)
		if err != nil {
			return err
		}
		if err := c.checkUnchanged(slices.DeleteFunc(before,
			func(name string) bool { return !slices.Contains(after, name) })); err != nil {
			return err
		}
		move = []string{"read-tree", "--reset", "-u", c.To}
	}
	if _, failure, err := c.over(context.WithoutCancel(ctx), []string{"GIT_INDEX_FILE=" + c.index}, move...); err != nil ||
		failure != "" {
		return errors.Join(err, notReady("busy", "look_at_checkout", "git could not bring %s forward: %s", c.dir,
			lastLine(failure)).With("stderr", failure))
	}
	_, moved, err := c.runHere(context.WithoutCancel(ctx), "update-ref", "-m", "claudeops: fast-forward",
		"refs/heads/"+c.Branch, c.To, c.From)
	if err == nil && !moved {
		err = notReady("busy", "look_at_checkout", "somebody else moved the branch %s of %s meanwhile", c.Branch, c.dir)
	}
	return err
}

// maxDirty bounds the files that a refusal names.
const maxDirty = 20

func (c *checkout) checkUnchanged(names []string) error {
	if len(names) == 0 {
		return nil
	}
	return notReady("changed_files", "commit_or_remove",
		"%s has files that no commit has, so that nothing is fetched into it or deployed from it: %s", c.dir,
		strings.Join(names[:min(len(names), maxDirty)], ", ")).With("path", c.dir).With("files",
		names[:min(len(names), maxDirty)])
}

// differs returns the files of the checkout, and the entries of its index, that are not as a commit has them; those
// that are ignored aside.
func (c *checkout) differs(ctx context.Context, commit string) ([]string, error) {
	own := []string{"GIT_INDEX_FILE=" + filepath.Join(c.scratch, "index-"+commit)}
	if _, err := c.must(ctx, own, "read-tree", commit); err != nil {
		return nil, err
	}
	if _, _, err := c.over(ctx, own, "update-index", "-q", "--refresh"); err != nil {
		return nil, err
	}
	var names []string
	for _, look := range []struct {
		env  []string
		args []string
		mark string
	}{
		{own, []string{"diff-files", "--name-only", "--ignore-submodules=all", "-z"}, ""},
		{own, []string{"ls-files", "--others", "--exclude-standard", "-z"}, ""},
		{[]string{"GIT_INDEX_FILE=" + c.index}, []string{"diff-index", "--cached", "--name-only", "-z", commit}, " (staged)"},
	} {
		out, err := c.must(ctx, look.env, look.args...)
		if err != nil {
			return nil, err
		}
		for _, name := range strings.FieldsFunc(out, func(r rune) bool { return r == 0 }) {
			names = append(names, fmt.Sprintf("%s%s", fileset.Short(name), look.mark))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
