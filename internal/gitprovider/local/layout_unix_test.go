//go:build unix

package local_test

import (
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
)

// gitDir is where the repository keeps what git knows.
func (w *world) gitDir() string {
	w.t.Helper()
	return strings.TrimSpace(w.git("rev-parse", "--absolute-git-dir"))
}

// aside moves what is at a place of the git directory out of the root, or makes a folder there, and returns where.
func (w *world) aside(place string) (here, there string) {
	w.t.Helper()
	here, there = filepath.Join(w.gitDir(), place), filepath.Join(w.t.TempDir(), "outside")
	w.must(os.MkdirAll(filepath.Dir(here), 0o755))
	if err := os.Rename(here, there); os.IsNotExist(err) {
		w.must(os.Mkdir(there, 0o755))
	} else {
		w.must(err)
	}
	return here, there
}

func contents(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		out.WriteString(path + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// refuses holds that a repository is refused at every door, with the words, and that nothing is written.
func (w *world) refuses(words ...string) {
	w.t.Helper()
	ctx := w.t.Context()
	_, err := w.ask("demo", "home-cluster")
	w.refused(err, fault.RepoNotAllowed, words...)
	_, err = w.p.BranchTip(ctx, w.Ref(), "main")
	w.refused(err, fault.RepoNotAllowed, words...)
	_, err = w.p.ListOpen(ctx, w.Ref(), "claude-ops")
	w.refused(err, fault.RepoNotAllowed, words...)
	_, err = w.review.List(ctx, w.Ref(), "")
	w.refused(err, fault.RepoNotAllowed, words...)
	_, err = w.review.Merge(ctx, w.Ref(), 1, local.MergeNote{Note: local.Note{Who: "Ann"}})
	w.refused(err, fault.RepoNotAllowed, words...)
}

func TestLinksInARepositoryLeadNowhere(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]kind{"bare": bare(), "ordinary": ordinary()} {
		for _, place := range []string{
			"refs/heads", "refs/heads/claude-ops", "refs/heads/claude-ops/check", "refs/heads/main", "refs/tags", "logs",
			"logs/refs",
			"logs/refs/heads", "logs/HEAD", "logs/refs/heads/main", "objects/ab", "objects/info", "objects/pack",
			"objects/pack/a.idx",
			"packed-refs", "HEAD", "config", "config.worktree", "info", "info/attributes", "worktrees", "worktrees/a",
			"worktrees/a/gitdir",
			"shallow", "reftable", "index", "FETCH_HEAD",
		} {
			t.Run(name+"/"+place, func(t *testing.T) {
				t.Parallel()
				w := home(t, k)
				w.git("config", "core.logAllRefUpdates", "always")
				before := w.request("claude-ops/check/disk", disk("new\n"))
				here, there := w.aside(place)
				w.must(os.Symlink(there, here))
				seen := contents(t, filepath.Dir(there))
				w.refuses("symbolic link", filepath.Base(here), "the operator")
				_, err := w.p.Commit(t.Context(), before)
				w.refused(err, fault.RepoNotAllowed, "symbolic link")
				if now := contents(t, filepath.Dir(there)); now != seen {
					t.Errorf("written outside of the root:\n%s", now)
				}
			})
		}
	}
}

func TestWhatIsNoFileIsNeverOpened(t *testing.T) {
	t.Parallel()
	for _, place := range []string{
		"HEAD", "config", "packed-refs", "shallow", "refs/heads/main", "refs/heads/claude-ops/check/disk", "logs/HEAD",
		"logs/refs/heads/main",
		"objects/ab/" + strings.Repeat("c", 38), "objects/info/alternates", "objects/info/commit-graph",
		"objects/pack/multi-pack-index",
		"objects/pack/pack-1.idx", "info/grafts", "worktrees/a/HEAD", "worktrees/a/gitdir", "index",
	} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			w := home(t, bare())
			before := w.request("claude-ops/check/disk", disk("new\n"))
			here := filepath.Join(w.gitDir(), place)
			w.must(os.MkdirAll(filepath.Dir(here), 0o755))
			_ = os.Remove(here)
			w.must(syscall.Mkfifo(here, 0o600))
			w.refuses("named pipe", filepath.Base(here), "remove it")
			_, err := w.p.Commit(t.Context(), before)
			w.refused(err, fault.RepoNotAllowed, "named pipe")
		})
	}
}

func TestPipesInPlaceOfFoldersAreNoRepositories(t *testing.T) {
	t.Parallel()
	for name, arrange := range map[string]func(w *world){
		"the owner":      func(w *world) { w.must(syscall.Mkfifo(filepath.Join(w.root, "pipe"), 0o600)) },
		"the repository": func(w *world) { w.must(syscall.Mkfifo(filepath.Join(w.root, "demo", "pipe"), 0o600)) },
		"its .git": func(w *world) {
			w.must(os.Mkdir(filepath.Join(w.root, "demo", "pipe"), 0o755))
			w.must(syscall.Mkfifo(filepath.Join(w.root, "demo", "pipe", ".git"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := home(t, bare())
			arrange(w)
			owner := map[bool]string{true: "pipe", false: "demo"}[name == "the owner"]
			if _, err := w.ask(owner, "pipe"); fault.CodeOf(err) != fault.NotFound && fault.CodeOf(err) != fault.UpstreamError {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestASocketInARepositoryIsRefused(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	dir, err := os.MkdirTemp("", "s") // the path of a socket is short
	w.must(err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, "s"))
	w.must(err)
	t.Cleanup(func() { _ = socket.Close() })
	w.must(os.Rename(filepath.Join(dir, "s"), filepath.Join(w.gitDir(), "refs", "heads", "socket")))
	w.refuses("a socket")
}

func TestConfigurationIncludesFilesOnly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arrange func(w *world, dir string) string // returns the path that is included
		words   string
	}{
		"a pipe": {func(w *world, dir string) string {
			w.must(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
			return filepath.Join(dir, "pipe")
		}, "named pipe"},
		"a link to a pipe": {func(w *world, dir string) string {
			w.must(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
			w.must(os.Symlink("pipe", filepath.Join(dir, "link")))
			return filepath.Join(dir, "link")
		}, "named pipe"},
		"a file that includes a pipe": {func(w *world, dir string) string {
			w.must(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
			w.must(os.WriteFile(filepath.Join(dir, "file"), []byte("[Include]\n\tPath = pipe\n"), 0o600))
			return filepath.Join(dir, "file")
		}, "named pipe"},
		"a device":     {func(*world, string) string { return "/dev/zero" }, "device"},
		"another home": {func(*world, string) string { return "~root/x" }, "does not follow"},
		"a file": {func(w *world, dir string) string {
			w.must(os.WriteFile(filepath.Join(dir, "file"), []byte("[include]\n\tpath = file\n"), 0o600)) // itself
			return filepath.Join(dir, "file")
		}, ""},
		"none":    {func(_ *world, dir string) string { return filepath.Join(dir, "none") }, ""},
		"my home": {func(*world, string) string { return "~/.gitconfig" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := home(t, bare())
			file, err := os.OpenFile(filepath.Join(w.gitDir(), "config"), os.O_APPEND|os.O_WRONLY, 0)
			w.must(err)
			_, err = file.WriteString("[includeIf \"gitdir:/**\"]\n\tpath = \"" + test.arrange(w, t.TempDir()) + "\"\n")
			w.must(err)
			w.must(file.Close())
			_, err = w.ask("demo", "home-cluster")
			if test.words == "" {
				if name != "a file" { // git itself gives up on a file that includes itself
					w.must(err)
				}
				return
			}
			w.refused(err, fault.RepoNotAllowed, test.words)
		})
	}
}

func TestObjectsAreBorrowedBelowTheRootOnly(t *testing.T) {
	t.Parallel()
	alternates := func(w *world, text string) {
		w.must(os.MkdirAll(filepath.Join(w.gitDir(), "objects", "info"), 0o755))
		w.must(os.WriteFile(filepath.Join(w.gitDir(), "objects", "info", "alternates"), []byte(text), 0o600))
	}
	t.Run("outside", func(t *testing.T) {
		t.Parallel()
		w, other := home(t, bare()), home(t, bare())
		alternates(w, "# comment\n"+filepath.Join(other.dir, "objects")+"\n")
		w.refuses("borrows objects", "git repack -a -d")
	})
	t.Run("outside, by a link below the root", func(t *testing.T) {
		t.Parallel()
		w, other := home(t, bare()), home(t, bare())
		w.must(os.Symlink(filepath.Join(other.dir, "objects"), filepath.Join(w.root, "objects")))
		alternates(w, "../../../objects\n")
		w.refuses("borrows objects")
	})
	t.Run("a neighbour with a pipe", func(t *testing.T) {
		t.Parallel()
		w := home(t, bare())
		w.git("clone", "--quiet", "--bare", w.dir, filepath.Join(w.root, "demo", "next.git"))
		w.must(syscall.Mkfifo(filepath.Join(w.root, "demo", "next.git", "objects", "pack", "p.idx"), 0o600))
		alternates(w, filepath.Join(w.root, "demo", "next.git", "objects")+"\n")
		w.refuses("named pipe", "next.git")
	})
	t.Run("a neighbour, and back again", func(t *testing.T) {
		t.Parallel()
		w := home(t, bare())
		w.git("clone", "--quiet", "--bare", "--shared", w.dir, filepath.Join(w.root, "demo", "next.git"))
		alternates(w, "../../next.git/objects\nnowhere\n")
		for _, name := range []string{"home-cluster", "next"} {
			_, err := w.ask("demo", name)
			w.must(err)
		}
	})
}

// What people's repositories hold is served: linked work trees, packed references, linked hooks.
func TestOrdinaryLayoutsAreServed(t *testing.T) {
	t.Parallel()
	w := home(t, ordinary())
	w.git("worktree", "add", "--quiet", "-b", "side", filepath.Join(t.TempDir(), "linked"))
	w.git("tag", "-m", "one", "v1")
	w.git("gc", "--quiet")
	w.must(os.RemoveAll(filepath.Join(w.gitDir(), "hooks")))
	w.must(os.Symlink(t.TempDir(), filepath.Join(w.gitDir(), "hooks")))
	pr := w.propose("claude-ops/check/disk", disk("new\n"))
	w.wantState(pr.Number, gitprovider.StateOpen)
}

// A link that is put there while a proposal is made is seen before the branch is.
func TestALinkThatComesInBetweenIsSeen(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	outside := t.TempDir()
	real, err := exec.LookPath("git")
	w.must(err)
	program := filepath.Join(t.TempDir(), "git")
	w.program(program, `case "$*" in *unpack-objects*) ln -s `+outside+` `+w.dir+`/refs/heads/claude-ops;; esac
exec `+real+` "$@"`)
	req := w.request("claude-ops/check/disk", disk("new\n"))
	_, err = w.provider(local.Options{TempDir: t.TempDir(), Git: program}).Commit(t.Context(), req)
	w.refused(err, fault.RepoNotAllowed, "symbolic link")
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("written outside of the root: %v, %v", entries, err)
	}
}
