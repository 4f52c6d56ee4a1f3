package local_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

func (w *world) ask(owner, name string) (*gitprovider.Snapshot, error) {
	return w.p.Snapshot(w.t.Context(), gitprovider.SnapshotQuery{Repo: gitprovider.RepoRef{Owner: owner, Name: name}})
}

// arrange puts something beside the repository and says how it is asked for.
type arrange func(t *testing.T, w *world) (owner, name string)

func TestFoldersThatAreNotServed(t *testing.T) {
	t.Parallel()
	outside := func(t *testing.T) string { return home(t, bare()).root }
	for name, test := range map[string]struct {
		arrange arrange
		words   string
	}{
		"an owner that is a link out of the root": {func(t *testing.T, w *world) (string, string) {
			w.must(os.Symlink(filepath.Join(outside(t), "demo"), filepath.Join(w.root, "away")))
			return "away", "home-cluster"
		}, "symbolic link"},
		"a repository that is a link out of the root": {func(t *testing.T, w *world) (string, string) {
			w.must(os.Symlink(filepath.Join(outside(t), "demo", "home-cluster.git"), filepath.Join(w.root, "demo", "away.git")))
			return "demo", "away"
		}, "symbolic link"},
		"a link to a deeper folder": {func(_ *testing.T, w *world) (string, string) {
			w.must(os.MkdirAll(filepath.Join(w.root, "a", "b"), 0o755))
			w.must(os.Rename(w.dir, filepath.Join(w.root, "a", "b", "c.git")))
			w.must(os.Symlink(filepath.Join(w.root, "a", "b", "c.git"), w.dir))
			return "demo", "home-cluster"
		}, "symbolic link"},
		"a broken link": {func(_ *testing.T, w *world) (string, string) {
			w.must(os.Symlink("nowhere", filepath.Join(w.root, "demo", "broken")))
			return "demo", "broken"
		}, "broken symbolic link"},
		"a plain folder": {func(_ *testing.T, w *world) (string, string) {
			w.must(os.MkdirAll(filepath.Join(w.root, "demo", "plain"), 0o755))
			return "demo", "plain"
		}, "not a git repository"},
		"a plain file": {func(_ *testing.T, w *world) (string, string) {
			w.must(os.WriteFile(filepath.Join(w.root, "demo", "file"), nil, 0o600))
			return "demo", "file"
		}, "not a git repository"},
		"a linked work tree": {func(_ *testing.T, w *world) (string, string) {
			w.git("worktree", "add", "--quiet", "-b", "side", filepath.Join(w.root, "demo", "linked"))
			return "demo", "linked"
		}, "not a git repository"},
		"a repository whose objects are elsewhere": {func(t *testing.T, w *world) (string, string) {
			elsewhere := filepath.Join(t.TempDir(), "objects")
			w.must(os.Rename(filepath.Join(w.dir, "objects"), elsewhere))
			w.must(os.Symlink(elsewhere, filepath.Join(w.dir, "objects")))
			return "demo", "home-cluster"
		}, "not a git repository"},
		"a git directory that refers to another": {func(t *testing.T, w *world) (string, string) {
			w.must(os.WriteFile(filepath.Join(w.dir, "commondir"), []byte(outside(t)), 0o600))
			return "demo", "home-cluster"
		}, "not a git repository"},
		"two folders of one name": {func(_ *testing.T, w *world) (string, string) {
			w.must(os.MkdirAll(filepath.Join(w.root, "demo", "home-cluster"), 0o755))
			return "demo", "home-cluster"
		}, "ambiguous"},
		"a parent folder": {func(*testing.T, *world) (string, string) { return "..", "home-cluster" }, "plain folder names"},
		"a path": {func(*testing.T, *world) (string, string) { return "demo", "../demo/home-cluster" },
			"plain folder names"},
		"an empty name": {func(*testing.T, *world) (string, string) { return "demo", "" }, "plain folder names"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := home(t, bare())
			owner, repo := test.arrange(t, w)
			_, err := w.ask(owner, repo)
			w.refused(err, fault.NotFound, test.words)
		})
	}
}

func TestOneRepositoryHasOneName(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	w.must(os.Symlink("demo", filepath.Join(w.root, "alias")))
	w.must(os.Symlink("home-cluster.git", filepath.Join(w.root, "demo", "other.git")))
	for _, asked := range [][2]string{{"demo", "home-cluster"}, {"Demo", "HOME-Cluster"}, {"alias", "home-cluster"},
		{"demo", "other"}} {
		snap, err := w.ask(asked[0], asked[1])
		w.must(err)
		if got := snap.Repo.String(); got != "demo/home-cluster" {
			t.Errorf("%v is called %s", asked, got)
		}
		if want := "file://" + w.root + "/demo/home-cluster.git"; snap.URL != want {
			t.Errorf("URL %s, want %s", snap.URL, want)
		}
	}
}

func TestTheExactSpellingWins(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	for _, twin := range []string{"Home-Cluster.git", "HOME-CLUSTER.git"} {
		w.git("clone", "--quiet", "--bare", w.dir, filepath.Join(w.root, "demo", twin))
	}
	for _, name := range []string{"home-cluster", "Home-Cluster", "HOME-CLUSTER"} {
		snap, err := w.ask("demo", name)
		w.must(err)
		if snap.Repo.Name != name {
			t.Errorf("%s became %s", name, snap.Repo.Name)
		}
	}
	_, err := w.ask("demo", "home-CLUSTER")
	w.refused(err, fault.NotFound)
}

func TestACloneURLMustLeadToTheRepository(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]kind{"bare": bare(), "ordinary": ordinary()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, other := home(t, k), home(t, k)
			w.must(os.Symlink(w.root, filepath.Join(other.root, "link")))
			for url, ok := range map[string]bool{
				"file://" + w.dir:                                  true,
				"file://" + w.dir + "/":                            true,
				"file://localhost" + w.dir:                         true,
				"file://" + strings.TrimSuffix(w.dir, ".git"):      true,
				"file://" + other.root + "/link/demo/home-cluster": true,
				"file://" + other.dir:                              false,
				"file:///demo/home-cluster":                        false,
				"https://git.example.org/demo/home-cluster.git":    false,
				"file://" + w.root + "/demo/home-cluster.git/objects/../../demo/home-cluster": false,
			} {
				remote, err := gitprovider.ParseRemote(url)
				w.must(err)
				ref := w.Ref()
				ref.Remote = remote
				_, err = w.p.BranchTip(t.Context(), ref, "main")
				if ok {
					w.must(err)
				} else {
					w.refused(err, fault.NotFound, "clone_url")
				}
			}
		})
	}
}

func TestHeadsThatNameNoBranch(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	w.git("symbolic-ref", "HEAD", "refs/heads/master")
	_, err := w.ask("demo", "home-cluster")
	w.refused(err, fault.NotFound, `"master"`, "symbolic-ref")
	w.git("update-ref", "--no-deref", "HEAD", "main")
	_, err = w.ask("demo", "home-cluster")
	w.refused(err, fault.NotFound, "detached")

	snap, err := w.p.Snapshot(t.Context(), gitprovider.SnapshotQuery{Repo: w.Ref(), Base: "main"})
	w.must(err)
	if snap.Base != "main" || snap.DefaultBranch != "" {
		t.Errorf("base %q, default branch %q; want main and none", snap.Base, snap.DefaultBranch)
	}
}

func TestAnEmptyRepositorySaysWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bare())
	_, err := w.ask("demo", "home-cluster")
	w.refused(err, fault.NotFound, "empty", "push a first commit")
}

func TestAMissingRootIsADisabledProvider(t *testing.T) {
	t.Parallel()
	p, err := local.New(filepath.Join(t.TempDir(), "none"), newMemory(), local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.BranchTip(t.Context(), gitprovider.RepoRef{Owner: "demo", Name: "home"}, "main")
	if fault.CodeOf(err) != fault.ProviderDisabled || !strings.Contains(err.Error(), "CLAUDEOPS_LOCAL_ROOT") {
		t.Errorf("got %v", err)
	}
}

func TestARelativeRootIsRefused(t *testing.T) {
	t.Parallel()
	for _, root := range []string{"", "repos", "./repos"} {
		if _, err := local.New(root, newMemory(), local.Options{}); err == nil {
			t.Errorf("%q was accepted", root)
		}
	}
}

func TestAPingNeedsGitAndTheRoot(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		root string
		opts local.Options
		code fault.Code
	}{
		"both are there":       {root, local.Options{}, ""},
		"there is no root":     {filepath.Join(root, "none"), local.Options{}, fault.ProviderDisabled},
		"the root is a file":   {file, local.Options{}, fault.ProviderDisabled},
		"there is no such git": {root, local.Options{Git: filepath.Join(root, "none")}, fault.ProviderDisabled},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := local.New(tt.root, nil, tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Ping(t.Context()); fault.CodeOf(err) != tt.code {
				t.Errorf("got %v, want %q", err, tt.code)
			}
		})
	}
}

// The base of an ordinary repository is not whatever is checked out.
func TestTheBaseOfAnOrdinaryRepositoryIsDecidedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(w *world)
		want string
	}{
		"main is checked out":    {func(*world) {}, "main"},
		"a branch of somebody's": {func(w *world) { w.git("checkout", "--quiet", "-B", "my-feature") }, "main"},
		"a detached HEAD":        {func(w *world) { w.git("checkout", "--quiet", "--detach") }, "main"},
		"a branch without a commit": {func(w *world) {
			w.git("symbolic-ref", "HEAD", "refs/heads/unborn")
		}, "main"},
		"as its origin has it": {func(w *world) {
			w.git("branch", "trunk", "main")
			w.git("update-ref", "refs/remotes/origin/trunk", "main")
			w.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
		}, "trunk"},
		"neither main nor master": {func(w *world) { w.git("branch", "-m", "trunk") }, "trunk"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := home(t, ordinary())
			w.git("reset", "--quiet", "--hard")
			c.make(w)
			snap, err := w.ask("demo", "home-cluster")
			w.must(err)
			if snap.Base != c.want || snap.DefaultBranch != c.want {
				t.Errorf("base %q, default branch %q; want %q", snap.Base, snap.DefaultBranch, c.want)
			}
		})
	}
}

// What at a repository does not do what people expect is told to the operator.
func TestExamineTellsWhatIsWrongWithARepository(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind kind
		make func(w *world)
		says string // "" for nothing
	}{
		"a bare repository": {bare(), func(*world) {}, ""},
		"a shallow clone": {bare(), func(w *world) {
			w.must(os.WriteFile(filepath.Join(w.dir, "shallow"), []byte(w.Branches()["main"]+"\n"), 0o600))
		}, "shallow"},
		"a partial clone": {bare(), func(w *world) { w.git("config", "remote.origin.promisor", "true") }, "partial clone"},
		"a mirror": {bare(), func(w *world) {
			w.git("config", "remote.origin.fetch",
				"+refs/*:refs/*")
		}, "mirrors another"},
		"an ordinary clone's remote": {bare(), func(w *world) {
			w.git("config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
		}, ""},
		"a hook": {bare(), func(w *world) {
			w.must(os.MkdirAll(filepath.Join(w.dir, "hooks"), 0o755))
			w.program(filepath.Join(w.dir, "hooks", "post-receive"), "exit 0")
		}, "post-receive"},
		"an ordinary repository":     {ordinary(), func(*world) {}, ""},
		"a base that is checked out": {ordinary(), func(w *world) { w.git("branch", "-m", "trunk") }, "checked out there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := home(t, c.kind)
			c.make(w)
			access, err := w.p.Examine(t.Context(), w.Ref(), "", nil)
			w.must(err)
			said := ""
			for _, d := range access.Defects {
				said += d.What + "; " + d.Do + "\n"
			}
			if (said != "") != (c.says != "") || !strings.Contains(said, c.says) || len(access.Defects) > 1 {
				t.Errorf("%q, want %q", said, c.says)
			}
		})
	}
}

// In a shallow clone pull requests are opened, shown and merged.
func TestAShallowCloneIsServed(t *testing.T) {
	t.Parallel()
	whole := home(t, bare())
	for _, text := range []string{"a\n", "b\n"} {
		whole.Push("main", providertest.File{Path: "README.md", Content: text})
	}
	w := home(t, bare())
	w.must(os.RemoveAll(w.dir))
	w.must(os.MkdirAll(w.dir, 0o755))
	w.git("clone", "--quiet", "--bare", "--depth=1", "file://"+whole.dir, w.dir)
	pr := w.propose("claude-ops/check/disk", disk("new\n"))
	detail, err := w.review.Show(t.Context(), w.Ref(), pr.Number)
	w.must(err)
	if !strings.Contains(detail.Diff, "+new") || detail.Mergeable == nil || !*detail.Mergeable {
		t.Errorf("%+v", detail)
	}
	w.mustMerge(pr.Number, false)
}

// Nothing is fetched into a partial clone, so what needs a file that it lacks is refused, with the reason.
func TestAPartialCloneIsNamedWhereItLacksFiles(t *testing.T) {
	t.Parallel()
	whole := home(t, bare())
	whole.git("config", "uploadpack.allowFilter", "true")
	w := home(t, bare())
	w.must(os.RemoveAll(w.dir))
	w.must(os.MkdirAll(w.dir, 0o755))
	w.git("clone", "--quiet", "--bare", "--filter=blob:none", "file://"+whole.dir, w.dir)
	pr := w.propose("claude-ops/check/disk", disk("new\n"))
	for what, try := range map[string]func() error{
		"its files": func() error {
			_, err := w.p.Snapshot(t.Context(), gitprovider.SnapshotQuery{Repo: w.Ref(), FilesOnly: true, Contents: true,
				Paths: []gitprovider.Path{providertest.Path(t, "checks/disk.md")}})
			return err
		},
		"the list of files": func() error {
			_, _, err := w.p.ListFiles(t.Context(), w.snapshot(w.p), "")
			return err
		},
		"the difference": func() error {
			_, err := w.review.Show(t.Context(), w.Ref(), pr.Number)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) { w.refused(try(), fault.RepoNotAllowed, "partial clone", "a whole clone") })
	}
	w.Push("main", providertest.File{Path: "checks/disk.md", Content: "theirs\n"})
	_, err := w.merge(pr.Number, true)
	w.refused(err, fault.RepoNotAllowed, "partial clone")
}

// In a mirror its origin decides: an update removes the branch of an open pull request, which closes it. What was
// merged before is recorded as merged.
func TestAMirrorThatIsUpdatedClosesItsPullRequests(t *testing.T) {
	t.Parallel()
	origin := home(t, bare())
	w := home(t, bare())
	w.must(os.RemoveAll(w.dir))
	w.must(os.MkdirAll(w.dir, 0o755))
	w.git("clone", "--quiet", "--mirror", "file://"+origin.dir, w.dir)
	merged := w.propose("claude-ops/check/disk", disk("new\n"))
	open := w.propose("claude-ops/check/other", providertest.Create("checks/x.md", "x\n"))
	w.mustMerge(merged.Number, false)
	w.git("remote", "update", "--prune")
	if a, b := w.state(merged.Number).State, w.state(open.Number).State; a != gitprovider.StateMerged ||
		b != gitprovider.StateClosed {
		t.Errorf("#%d is %s, #%d is %s", merged.Number, a, open.Number, b)
	}
}

func (w *world) looks(p *local.Provider) error {
	_, err := p.ListOpen(w.t.Context(), w.Ref(), gitprovider.LabelOurs)
	return err
}

func TestARootGetsOneIdentityOfManyProcessesAtOnce(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	if id := local.RootIdentity(w.root); id != "" {
		t.Fatalf("it has %q before anybody uses it", id)
	}
	var all sync.WaitGroup
	for range 8 {
		p := w.provider(local.Options{TempDir: t.TempDir()})
		all.Go(func() {
			if err := w.looks(p); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	id := local.RootIdentity(w.root)
	if len(id) < 16 {
		t.Errorf("identity %q", id)
	}
	if left, _ := filepath.Glob(filepath.Join(w.root, local.RootFile+".new-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	info, err := os.Stat(filepath.Join(w.root, local.RootFile))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v: every server that shares the root reads it", info.Mode(), err)
	}
}

func TestARootWhoseIdentityCannotBeReadServesNothing(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(name string) error{
		"a folder":        func(name string) error { return os.Mkdir(name, 0o700) },
		"an empty file":   func(name string) error { return os.WriteFile(name, nil, 0o600) },
		"something else":  func(name string) error { return os.WriteFile(name, []byte("NOT AN IDENTITY\n"), 0o600) },
		"too much of one": func(name string) error { return os.WriteFile(name, make([]byte, 1000), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := home(t, bare())
			file := filepath.Join(w.root, local.RootFile)
			w.must(place(file))
			if err := w.looks(w.provider(local.Options{TempDir: t.TempDir()})); fault.CodeOf(err) != fault.ProviderDisabled {
				t.Errorf("got %v", err)
			}
			if id := local.RootIdentity(w.root); id == "" || len(id) >= 16 {
				t.Errorf("identity %q", id)
			}
		})
	}
}

func TestARootThatIsExchangedWhileAProcessRunsIsRefused(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	w.must(w.looks(w.p))
	file := filepath.Join(w.root, local.RootFile)
	w.must(os.WriteFile(file, []byte("another0another0\n"), 0o600))
	if err := w.looks(w.p); fault.CodeOf(err) != fault.ProviderDisabled {
		t.Errorf("got %v", err)
	}
	if err := w.looks(w.provider(local.Options{TempDir: t.TempDir()})); err != nil {
		t.Errorf("a new process: %v", err)
	}
}

// TestWhatKilledProcessesLeftIsRemovedADayLater has folders of the names that a killed process leaves in the folder for
// temporary files.
func TestWhatKilledProcessesLeftIsRemovedADayLater(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	temp, outside := t.TempDir(), t.TempDir()
	keep := filepath.Join(outside, "keep")
	old := time.Now().Add(-25 * time.Hour)
	for _, dir := range []string{"claudeops-git-old/objects", "claudeops-git-new", "other-old"} {
		w.must(os.MkdirAll(filepath.Join(temp, dir), 0o700))
	}
	for _, file := range []string{keep, filepath.Join(temp, "claudeops-git-old/objects/pack"),
		filepath.Join(temp, "claudeops-git-file")} {
		w.must(os.WriteFile(file, []byte("x"), 0o600))
	}
	w.must(os.Symlink(outside, filepath.Join(temp, "claudeops-git-link")))
	for _, name := range []string{"claudeops-git-old", "other-old", "claudeops-git-file"} {
		w.must(os.Chtimes(filepath.Join(temp, name), old, old))
	}
	_, err := w.provider(local.Options{TempDir: temp}).Commit(t.Context(),
		w.request("claude-ops/check/disk", disk("new\n")))
	w.must(err)
	var left []string
	entries, err := os.ReadDir(temp)
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	if want := []string{"claudeops-git-file", "claudeops-git-link", "claudeops-git-new", "other-old"}; err != nil ||
		!slices.Equal(left, want) {
		t.Errorf("left: %q, %v, want %q", left, err, want)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Error(err)
	}
}

// Each of two state folders that serve one root is named to the other, until it is not used any more.
func TestOtherRecordsOfARootAreTold(t *testing.T) {
	t.Parallel()
	root, now := t.TempDir(), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		ours  string
		after time.Duration
		want  string
	}{
		{"/a", 0, ""}, {"/a", time.Minute, ""}, {"/b", time.Hour, "/a"}, {"/a", 2 * time.Hour, "/b"},
		{"/b", 30 * 24 * time.Hour, ""},
	} {
		local.NoteRecords(root, step.ours, now.Add(step.after))
		if got := strings.Join(local.OtherRecords(root, step.ours, now.Add(step.after)), " "); got != step.want {
			t.Errorf("%s after %s: %q, want %q", step.ours, step.after, got, step.want)
		}
	}
	if err := os.WriteFile(filepath.Join(root, local.StatesFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := local.OtherRecords(root, "/a", now); len(got) != 0 {
		t.Errorf("%q", got)
	}
	if text, err := os.ReadFile(filepath.Join(root, local.StatesFile)); err != nil || string(text) != "{" {
		t.Errorf("looking has written %q, %v", text, err)
	}
}
