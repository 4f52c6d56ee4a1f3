package session_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/system/git"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// place has a repository and a working copy of it, repos/infra, with the branch main.
type place struct {
	*testing.T
	dir, origin, copy string
	named             bool // the operator has named the repository
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir := t.TempDir()
	p := &place{T: t, dir: dir, origin: filepath.Join(dir, "origin.git"), copy: filepath.Join(dir, "repos", "infra"),
		named: true}
	p.git(dir, "init", "--quiet", "--bare", "--initial-branch=main", p.origin)
	p.git(dir, "clone", "--quiet", p.origin, filepath.Join(dir, "writer"))
	p.push("checks/disk.md", "# Disk\n")
	p.git(dir, "clone", "--quiet", p.origin, p.copy)
	return p
}

func (p *place) git(dir string, args ...string) string {
	p.Helper()
	cmd := exec.CommandContext(p.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+p.dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (p *place) write(name, text string) {
	p.Helper()
	must.Do(p, errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)))
}

// push commits a file to the repository.
func (p *place) push(name, text string) string {
	p.Helper()
	writer := filepath.Join(p.dir, "writer")
	p.write(filepath.Join(writer, name), text)
	p.git(writer, "add", ".")
	p.git(writer, "commit", "--quiet", "-m", name)
	p.git(writer, "push", "--quiet", "origin", "HEAD:main")
	return p.git(writer, "rev-parse", "HEAD")
}

// update updates the working copy and returns its state.
func (p *place) update() session.CheckoutState {
	p.Helper()
	u := session.CheckoutUpdater{
		Dir: filepath.Join(p.dir, "repos"), Folders: func() []string { return []string{"infra"} }, Git: &git.Runner{},
		Remote: func(address string) (git.Remote, error) {
			if !p.named || address != p.origin {
				return git.Remote{}, errors.New("the operator has not named " + address)
			}
			return git.Remote{URL: trust.Said(address)}, nil
		},
		Redact: func(text string) string { return text },
	}
	states := u.Update(p.Context())
	if len(states) != 1 {
		p.Fatalf("%+v", states)
	}
	return states[0]
}

func (p *place) text() string {
	p.Helper()
	return string(must.Get(os.ReadFile(filepath.Join(p.copy, "checks/disk.md")))(p))
}

func TestACleanWorkingCopyIsMovedForward(t *testing.T) {
	p := newPlace(t)
	if s := p.update(); s.Problem != "" || s.Updated || s.Commit == "" {
		t.Fatalf("nothing has changed: %+v", s)
	}
	tip := p.push("checks/disk.md", "# Disks\n")
	p.write(filepath.Join(p.copy, "notes.txt"), "untracked")
	s := p.update()
	if s.Problem != "" || !s.Updated || !strings.HasPrefix(tip, s.Commit) || p.text() != "# Disks\n" ||
		p.git(p.copy, "status", "--porcelain") != "?? notes.txt" {
		t.Fatalf("%+v, %q, %s", s, p.text(), p.git(p.copy, "status"))
	}
	if s = p.update(); s.Problem != "" || s.Updated {
		t.Errorf("again: %+v", s)
	}
}

func TestAWorkingCopyThatIsNotPlainIsLeftAsItIs(t *testing.T) {
	set := func(name, value string) func(p *place) {
		return func(p *place) { p.git(p.copy, "config", name, value) }
	}
	link := func(name string) func(p *place) {
		return func(p *place) {
			at, away := filepath.Join(p.copy, ".git", name), filepath.Join(p.dir, "away")
			must.Do(p, errors.Join(os.Rename(at, away), os.Symlink(away, at)))
		}
	}
	for name, c := range map[string]struct {
		change func(p *place)
		want   string
	}{
		"a changed file": {func(p *place) { p.write(filepath.Join(p.copy, "checks/disk.md"), "# Mine\n") },
			"files were changed here"},
		"a commit": {func(p *place) {
			p.write(filepath.Join(p.copy, "a"), "a")
			p.git(p.copy, "add", "a")
			p.git(p.copy, "commit", "-qm", "a")
		}, "commits were made here"},
		"a file in the way":     {func(p *place) { p.write(filepath.Join(p.copy, "new.md"), "mine") }, "cannot be moved"},
		"no branch":             {func(p *place) { p.git(p.copy, "checkout", "-q", "--detach") }, "no branch is checked out"},
		"another branch":        {func(p *place) { p.git(p.copy, "checkout", "-qb", "other") }, "has no branch other"},
		"no repository":         {func(p *place) { p.git(p.copy, "remote", "remove", "origin") }, "names no repository"},
		"nobody named it":       {func(p *place) { p.named = false }, "the operator has not named"},
		"a command for ssh":     {set("core.sshCommand", "touch RAN"), `"core.sshcommand"`},
		"a monitor":             {set("core.fsmonitor", "touch RAN"), `"core.fsmonitor"`},
		"a filter":              {set("filter.x.smudge", "touch RAN"), `"filter.x.smudge"`},
		"another address":       {set("url.file:///.insteadOf", "https://"), `"url.file:///.insteadof"`},
		"another configuration": {set("include.path", "/etc/passwd"), `"include.path"`},
		"another tree":          {set("core.worktree", "/"), `"core.worktree"`},
		"a helper":              {set("credential.helper", "!touch RAN"), `"credential.helper"`},
		"an upload command":     {set("remote.origin.uploadpack", "touch RAN"), `"remote.origin.uploadpack"`},
		"linked references":     {link("refs"), ".git/refs is a link"},
		"linked objects":        {link("objects"), ".git/objects is a link"},
		"linked configuration":  {link("config"), ".git/config is a link"},
		"a common folder":       {func(p *place) { p.write(filepath.Join(p.copy, ".git/commondir"), p.origin) }, "commondir"},
		"nonsense": {func(p *place) { p.write(filepath.Join(p.copy, ".git/config"), "[core") },
			"cannot be understood"},
		"a link for .git": {func(p *place) {
			os.Rename(filepath.Join(p.copy, ".git"), filepath.Join(p.dir, "g"))
			os.Symlink(filepath.Join(p.dir, "g"), filepath.Join(p.copy, ".git"))
		}, "not a folder of its own"}, //nolint:errcheck,gosec // the result says it
		"no git": {func(p *place) { os.RemoveAll(filepath.Join(p.copy, ".git")) }, "not a git working copy"}, //nolint:errcheck,gosec // the result says it
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.push("new.md", "new\n")
			before := p.git(p.origin, "rev-parse", "main~1")
			c.change(p)
			s := p.update()
			if !strings.Contains(s.Problem, c.want) || s.Updated {
				t.Errorf("%+v, want %q", s, c.want)
			}
			if text, err := os.ReadFile(filepath.Join(p.copy, "new.md")); err == nil && string(text) == "new\n" {
				t.Error("it was moved")
			}
			for _, where := range []string{p.copy, p.dir, "."} {
				if _, err := os.Stat(filepath.Join(where, "RAN")); err == nil {
					t.Error("a program of its configuration was run")
				}
			}
			if _, err := os.Stat(filepath.Join(p.copy, ".git", "HEAD")); err == nil && name != "a commit" &&
				strings.TrimSpace(p.headCommit()) != before {
				t.Errorf("its branch was moved from %s to %s", before, p.headCommit())
			}
		})
	}
}

// headCommit reads the branch as a file: git could start what the configuration names.
func (p *place) headCommit() string {
	return string(must.Get(os.ReadFile(filepath.Join(p.copy, ".git", "refs", "heads", "main")))(p))
}

func TestAHookOfAWorkingCopyIsNotRun(t *testing.T) {
	p := newPlace(t)
	for _, hook := range []string{"post-merge", "reference-transaction", "post-checkout", "post-index-change"} {
		name := filepath.Join(p.copy, ".git", "hooks", hook)
		p.write(name, "#!/bin/sh\ntouch "+filepath.Join(p.dir, "RAN")+"\n")
		must.Do(t, os.Chmod(name, 0o755))
	}
	p.push("checks/disk.md", "# Disks\n")
	if s := p.update(); !s.Updated {
		t.Errorf("%+v", s)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "RAN")); err == nil {
		t.Error("a hook was run")
	}
}
