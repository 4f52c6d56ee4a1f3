// This file keeps the working copies that agents read as new as their repositories.
//
// What a working copy says is data: it chooses its repository among those that the operator named (Update.Remote), and
// git takes nothing from its configuration that could start a program (see harmless). Only a clean working copy whose
// branch has no commits of its own is moved, and only forward. Everything else is left as it is, with the reason.

package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/git"
)

// Bounds of an update.
const (
	copyTime    = time.Minute     // of one working copy
	allTime     = 3 * time.Minute // of all
	localTime   = 20 * time.Second
	silence     = 20 * time.Second // of a server
	maxConfig   = 64 << 10         // bytes of .git/config
	maxWhy      = 300              // bytes of what git said
	shortCommit = 12
)

// CheckoutUpdater brings working copies up to date. All fields are required, but DryRun.
type CheckoutUpdater struct {
	Dir     string          // where they are
	Folders func() []string // of the working copies, below Dir
	Git     *git.Runner
	// Remote is the repository that an address leads to, as the operator named it, with what to sign in with. Its error
	// says how the operator names it.
	Remote func(address string) (git.Remote, error)
	Redact func(text string) string
	// DryRun has working copies compared and not updated.
	DryRun func() bool // asked for each working copy; nil: false
}

// CheckoutState says how current a working copy is.
type CheckoutState struct {
	Folder  string
	Commit  string // that the working copy is at; "" if it is not known
	Updated bool   // it was moved to this commit
	// Problem says why the working copy may be older than its repository; "" if it is not.
	Problem string
}

// String returns the state in words.
func (s CheckoutState) String() string {
	switch {
	case s.Problem != "":
		return s.Folder + " may be older than its repository: " + s.Problem
	case s.Updated:
		return s.Folder + " was updated to " + s.Commit
	}
	return s.Folder + " is at " + s.Commit + ", as its repository is"
}

// Update brings all working copies up to date, one after another, and says how each stands.
func (u *CheckoutUpdater) Update(ctx context.Context) []CheckoutState {
	ctx, cancel := context.WithTimeout(ctx, allTime)
	defer cancel()
	root, err := files.OpenDir(u.Dir)
	if err != nil {
		return nil // nothing is mounted
	}
	defer root.Close()
	var out []CheckoutState
	for _, folder := range u.Folders() {
		c := &checkout{updater: u, root: root, dir: filepath.Join(u.Dir, filepath.FromSlash(folder)), folder: folder}
		state := CheckoutState{Folder: folder}
		err := c.update(ctx, &state)
		if err != nil {
			state.Problem = u.publicMessage(err)
		}
		out = append(out, state)
	}
	return out
}

// publicMessage returns an error as agents and people may see it. Its words can be a server's.
func (u *CheckoutUpdater) publicMessage(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "its repository did not answer in time"
	}
	return textscan.Clean(u.Redact(err.Error()), maxWhy)
}

// checkout is one working copy.
type checkout struct {
	updater     *CheckoutUpdater
	root        *files.Dir
	dir, folder string
	branch      string
	remote      string // its name here, such as origin
	address     string
}

func (c *checkout) update(ctx context.Context, s *CheckoutState) error {
	ctx, cancel := context.WithTimeout(ctx, copyTime)
	defer cancel()
	if err := c.verifyCheckout(ctx); err != nil {
		return err
	}
	head, err := c.here(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return err
	}
	s.Commit = short(head)
	remote, err := c.updater.Remote(c.address)
	if err != nil {
		return err
	}
	remote.Silence = silence
	tip, err := c.tip(ctx, remote)
	if err != nil {
		return err
	}
	if tip == head {
		return nil
	}
	if c.updater.DryRun != nil && c.updater.DryRun() {
		return fmt.Errorf("its branch %s is at %s in the repository, and a dry run updates nothing", c.branch, short(tip))
	}
	if err := c.forward(ctx, remote, tip); err != nil {
		return fmt.Errorf("its branch %s is at %s in the repository; %w", c.branch, short(tip), err)
	}
	s.Commit, s.Updated = short(tip), true
	return nil
}

// verifyCheckout reads which branch of which repository the working copy has, and refuses one that git cannot be run in
// safely.
func (c *checkout) verifyCheckout(ctx context.Context) error {
	if info, err := c.root.Lstat(c.folder + "/.git"); errors.Is(err, fs.ErrNotExist) {
		return errors.New("it is not a git working copy, so nobody updates it here")
	} else if err != nil || !info.IsDir() {
		return errors.New("its .git is not a folder of its own")
	}
	for _, name := range []string{"HEAD", "config", "index", "objects", "refs", "packed-refs", "logs"} {
		info, err := c.root.Lstat(c.folder + "/.git/" + name)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("its .git/%s is a link", name)
		}
	}
	for _, name := range []string{"commondir", "config.worktree"} {
		if _, err := c.root.Lstat(c.folder + "/.git/" + name); err == nil {
			return fmt.Errorf("it has a .git/%s, with which git is not run here", name)
		}
	}
	text, _, err := c.root.Read(c.folder+"/.git/config", maxConfig)
	if err != nil {
		return errors.New("its .git/config cannot be read")
	}
	settings, err := c.readSettings(ctx, text)
	if err != nil {
		return err
	}
	if c.branch, err = c.headBranch(); err != nil {
		return err
	}
	c.remote = cmp.Or(settings["branch."+c.branch+".remote"], "origin")
	if !isName(c.remote) {
		return errors.New("its branch comes from no repository that has a name")
	}
	if merge := settings["branch."+c.branch+".merge"]; merge != "" && merge != "refs/heads/"+c.branch {
		return fmt.Errorf("its branch %s follows another branch", c.branch)
	}
	if c.address = settings["remote."+c.remote+".url"]; c.address == "" {
		return errors.New("its configuration names no repository that its branch comes from")
	}
	return nil
}

// headBranch returns the branch that is checked out.
func (c *checkout) headBranch() (string, error) {
	text, _, err := c.root.Read(c.folder+"/.git/HEAD", 1024)
	if err != nil {
		return "", errors.New("its .git/HEAD cannot be read")
	}
	branch, is := strings.CutPrefix(strings.TrimSpace(string(text)), "ref: refs/heads/")
	if !is || !isName(branch) {
		return "", errors.New("no branch is checked out in it")
	}
	return branch, nil
}

// isName reports whether git takes a text for nothing but a name, of a branch or of a repository.
func isName(text string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`).MatchString(text) && !strings.Contains(text, "..")
}

// tip returns the commit that the repository has for the branch.
func (c *checkout) tip(ctx context.Context, remote git.Remote) (string, error) {
	out, err := c.runGit(ctx, git.Call{Remote: &remote,
		Args: []string{"ls-remote", "--", remote.URL.Value(), "refs/heads/" + c.branch}})
	if err != nil {
		return "", fmt.Errorf("its repository cannot be asked: %w", err)
	}
	for line := range strings.Lines(out) { // names that only end alike are among them
		commit, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if ref == "refs/heads/"+c.branch && regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`).MatchString(commit) {
			return commit, nil
		}
	}
	return "", fmt.Errorf("its repository has no branch %s", c.branch)
}

// forward fetches the commit and moves the branch and the files to it.
func (c *checkout) forward(ctx context.Context, remote git.Remote, tip string) error {
	// Git itself looks whose folder it is, if it has to find the repository: nothing is written into that of another user.
	if found, err := c.runGit(ctx, git.Call{Dir: c.dir, Args: []string{"rev-parse", "--git-dir"}}); err != nil {
		return err
	} else if found != ".git" {
		return errors.New("its .git is not a repository")
	}
	changed, err := c.here(ctx, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all")
	switch {
	case err != nil:
		return err
	case changed != "":
		return errors.New("files were changed here, so it is left as it is")
	}
	_, err = c.runGit(ctx, git.Call{
		Dir: c.dir, GitDir: filepath.Join(c.dir, ".git"), Remote: &remote,
		Config: []string{"submodule.recurse=false", "fetch.writeCommitGraph=false"},
		Args: []string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--refmap=", "--",
			remote.URL.Value(),
			"+refs/heads/" + c.branch + ":refs/remotes/" + c.remote + "/" + c.branch},
	})
	if err != nil {
		return fmt.Errorf("it cannot be fetched: %w", err)
	}
	if _, err := c.here(ctx, "merge-base", "--is-ancestor", "HEAD", tip); err != nil {
		return errors.New("commits were made here that the repository does not have, so it is left as it is")
	}
	if _, err := c.here(ctx, "merge", "--quiet", "--ff-only", "--no-stat", tip); err != nil {
		return fmt.Errorf("the files cannot be moved to it: %w", err)
	}
	return nil
}

// here runs git in the working copy. It reaches no other repository.
func (c *checkout) here(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, localTime)
	defer cancel()
	return c.runGit(ctx, git.Call{Dir: c.dir, GitDir: filepath.Join(c.dir, ".git"), Args: args, Finish: true})
}

func (c *checkout) runGit(ctx context.Context, call git.Call) (string, error) {
	result, err := c.updater.Git.Run(ctx, call, git.Limits{Output: 1 << 20})
	switch {
	case err != nil:
		return "", err
	case result.Code != 0:
		said, _, _ := strings.Cut(result.Said, "\n")
		return "", fmt.Errorf("git says: %q", strings.TrimPrefix(said, "fatal: "))
	}
	return string(bytes.TrimSpace(result.Out)), nil
}

func short(commit string) string { return commit[:min(len(commit), shortCommit)] }

// harmless returns the settings of a working copy with which git starts no program, reaches no other file or machine,
// and writes no other text than the repository has. Names are as git prints them: section and variable in small
// letters.
func harmless() *regexp.Regexp {
	return regexp.MustCompile(`^(?:` + strings.Join([]string{
		`core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|symlinks|ignorecase|precomposeunicode)`,
		`extensions\.objectformat`,
		`remote\.[^\n]*\.(?:url|pushurl|fetch|tagopt|gh-resolved)`,
		`branch\.[^\n]*\.(?:remote|merge|rebase|description|vscode-merge-base)`,
		`user\.(?:name|email)`, `init\.defaultbranch`, `pull\.(?:ff|rebase)`, `push\.(?:default|autosetupremote)`,
		`color\.[^\n]*`,
		`gc\.auto`, `maintenance\.(?:auto|strategy)`,
	}, "|") + `)$`)
}

// readSettings returns the settings of a configuration file, the last value of each. It is an error if one is not
// harmless: it is not known what git would do with it.
func (c *checkout) readSettings(ctx context.Context, text []byte) (map[string]string, error) {
	list, err := c.runGit(ctx, git.Call{Args: []string{"config", "--file", "-", "--no-includes", "--null", "--list"},
		Stdin: bytes.NewReader(text)})
	if err != nil {
		return nil, errors.New("its .git/config cannot be understood")
	}
	out, known := map[string]string{}, harmless()
	for entry := range strings.SplitSeq(list, "\x00") {
		name, value, _ := strings.Cut(entry, "\n")
		if name == "" {
			continue
		}
		if !known.MatchString(name) {
			return nil, fmt.Errorf("its .git/config has the setting %q, with which git is not run here", name)
		}
		out[name] = value
	}
	return out, nil
}
