package local_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

// imposter makes the provider run a shell script instead of git.
func (w *world) imposter(script string, opts local.Options) *local.Provider {
	w.t.Helper()
	w.askGit()
	opts.Git = filepath.Join(w.t.TempDir(), "git")
	w.program(opts.Git, script)
	return w.provider(opts)
}

// disturbed makes the provider run a shell script before each git. GIT and DIR in it are git and the repository; pairs
// are more words and what they stand for.
func (w *world) disturbed(script string, pairs ...string) *local.Provider {
	w.t.Helper()
	git, err := exec.LookPath("git")
	w.must(err)
	words := strings.NewReplacer(append(pairs, "GIT", git, "DIR", w.dir)...)
	return w.imposter(words.Replace(script+"\nexec GIT \"$@\""), local.Options{})
}

// askGit gives the repository a symbolic branch, so that branches are not read without git.
func (w *world) askGit() {
	w.t.Helper()
	w.git("symbolic-ref", "refs/heads/linked", "refs/heads/main")
}

func TestCancellationEndsGitAndItsChildren(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"that ends when it is asked to": "echo started > %FIFO; sleep 300 & wait",
		"that does not listen and keeps the pipes": "trap '' TERM; (trap '' TERM; sleep 300) & echo started > %FIFO; " +
			"while :; do wait; done",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := home(t, bare())
			fifo := filepath.Join(t.TempDir(), "fifo")
			w.must(exec.Command("mkfifo", fifo).Run()) // syscall.Mkfifo is not on every system
			p := w.imposter(strings.ReplaceAll(script, "%FIFO", fifo), local.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				_, _ = os.ReadFile(fifo) // returns when the script has started
				cancel()
			}()
			_, err := p.BranchTip(ctx, w.Ref(), "main")
			w.refused(err, fault.Timeout)
		})
	}
}

func TestCancelledGitMayRemoveItsLocks(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	dir := t.TempDir()
	fifo, lock := filepath.Join(dir, "fifo"), filepath.Join(dir, "lock")
	w.must(exec.Command("mkfifo", fifo).Run()) // syscall.Mkfifo is not on every system
	w.must(os.WriteFile(lock, nil, 0o600))
	p := w.imposter("trap 'rm "+lock+"; exit 1' TERM; echo started > "+fifo+"; sleep 300 & wait", local.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = os.ReadFile(fifo) // returns when the script has started
		cancel()
	}()
	_, err := p.BranchTip(ctx, w.Ref(), "main")
	w.refused(err, fault.Timeout)
	if _, err := os.Stat(lock); err == nil {
		t.Error("git was killed before it could remove its lock")
	}
}

func TestGitMayNotTakeForEver(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	p := w.imposter("sleep 300", local.Options{Timeout: 1})
	_, err := p.BranchTip(t.Context(), w.Ref(), "main")
	w.refused(err, fault.Timeout)
}

func TestGitsOwnWordsStayInTheCause(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	p := w.imposter("echo 'fatal: secret words' >&2; exit 128", local.Options{})
	_, err := p.BranchTip(t.Context(), w.Ref(), "main")
	w.refused(err, fault.UpstreamError, "git fsck")
	if strings.Contains(err.Error(), "secret words") || !strings.Contains(causeOf(err).Error(), "secret words") {
		t.Errorf("message %q, cause %q", err, causeOf(err))
	}
}

func TestGitMayNotTalkForEver(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	p := w.imposter("exec yes", local.Options{})
	_, err := p.BranchTip(t.Context(), w.Ref(), "main")
	w.refused(err, fault.UpstreamError, "too large")
}

func TestGitSeesNothingOfOurEnvironment(t *testing.T) {
	w := home(t, bare())
	t.Setenv("GIT_DIR", "/elsewhere")
	t.Setenv("GITHUB_TOKEN", "not-for-git")
	seen := filepath.Join(t.TempDir(), "seen")
	p := w.imposter("env > "+seen+"; exit 0", local.Options{})
	_, err := p.BranchTip(t.Context(), w.Ref(), "main")
	w.must(err)
	env, err := os.ReadFile(seen)
	w.must(err)
	for _, bad := range []string{"GITHUB_TOKEN", "GIT_DIR=", "USER="} {
		if strings.Contains(string(env), bad) {
			t.Errorf("git saw %s in\n%s", bad, env)
		}
	}
	for _, good := range []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_ALLOW_PROTOCOL=\n", "LC_ALL=C"} {
		if !strings.Contains(string(env), good) {
			t.Errorf("git did not see %q in\n%s", good, env)
		}
	}
}

func TestGitVersions(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	for said, want := range map[string]fault.Code{
		"git version 2.38.0": "", "git version 2.39.5": "", "git version 2.53.0.windows.1": "", "git version 3.0.0": "",
		"git version 2.50.1 (Apple Git-155)": "",
		"git version 2.37.9":                 fault.ProviderDisabled, "git version 1.99.0": fault.ProviderDisabled,
		"git version x.y": fault.ProviderDisabled, "nonsense": fault.ProviderDisabled,
	} {
		version, err := w.imposter("echo '"+said+"'", local.Options{}).GitVersion(t.Context())
		if fault.CodeOf(err) != want {
			t.Errorf("%s: got %q, %v", said, version, err)
		}
	}
	version, err := w.p.GitVersion(t.Context())
	w.must(err)
	if !strings.HasPrefix(version, "2.") && !strings.HasPrefix(version, "3.") {
		t.Errorf("version %q", version)
	}
}

func TestAnOldGitIsNamedWhenItDoesNotKnowAnOption(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	p := w.imposter(`for last; do :; done; [ "$last" = version ] && echo git version 2.30.2 && exit; exit 129`,
		local.Options{})
	_, err := p.BranchTip(t.Context(), w.Ref(), "main")
	w.refused(err, fault.ProviderDisabled, "2.30.2", "2.38")
}

func TestAMissingGitIsADisabledProvider(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	w.askGit()
	p := w.provider(local.Options{Git: filepath.Join(t.TempDir(), "none")})
	_, err := p.BranchTip(t.Context(), w.Ref(), "main")
	w.refused(err, fault.ProviderDisabled, "install git")
}

// An object that git gc packs while it is looked for is found at the second look; one that stays away is not.
func TestAnObjectThatWasPackedAwayIsReadOnceMore(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	for name, always := range map[string]string{"once": "[ -e MARK ]", "always": "false"} {
		p := w.disturbed(`
case "$*" in *--batch-command*) `+always+` || { touch MARK; while read -r line; do echo "${line#* } missing"; done; exit 0; };; esac`,
			"MARK", filepath.Join(t.TempDir(), "mark"))
		_, err := p.Snapshot(t.Context(), gitprovider.SnapshotQuery{Repo: w.Ref(), FilesOnly: true})
		if name == "once" {
			w.must(err)
		} else {
			w.refused(err, fault.UpstreamError, "git fsck")
		}
	}
}

func TestAFullDiskIsSaidToBeFull(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	p := w.imposter(`echo "fatal: write error: No space left on device" >&2; exit 128`, local.Options{})
	_, err := p.ReadCommit(t.Context(), w.Ref(), w.Branches()["main"])
	if fault.CodeOf(err) == fault.NotFound {
		_, err = p.Snapshot(t.Context(), gitprovider.SnapshotQuery{Repo: w.Ref(), FilesOnly: true})
	}
	w.refused(err, fault.UpstreamError, "no room on the disk")
	if strings.Contains(err.Error(), "fsck") {
		t.Error(err)
	}
}

// trap writes a program that leaves a mark when it is run.
func (w *world) trap(name string) (program, mark string) {
	w.t.Helper()
	dir := w.t.TempDir()
	program, mark = filepath.Join(dir, name), filepath.Join(dir, "mark")
	w.program(program, "echo \"$0 $*\" >> "+mark+"\ncat")
	return program, mark
}

func (w *world) unmarked(mark string) {
	w.t.Helper()
	if text, err := os.ReadFile(mark); err == nil {
		w.t.Fatalf("the repository made us run:\n%s", text)
	}
}

// everything does all that the provider and the reviewer can do, conflicts included.
func (w *world) everything() {
	w.t.Helper()
	ctx := w.t.Context()
	first := w.propose("claude-ops/check/first", disk("# Disk\n\nONE\ntwo\nthree\n"))
	second := w.propose("claude-ops/check/second", disk("# Disk\n\none\ntwo\nTHREE\n"),
		providertest.Create("checks/new.md", "new\n"))
	made, err := w.p.Commit(ctx, w.request("claude-ops/check/dropped", disk("dropped\n")))
	w.must(err)
	w.must(w.p.DeleteBranch(ctx, w.Ref(), made.Branch, made.ID))
	w.must(w.p.Label(ctx, w.Ref(), first.Number, []string{"more"}))
	_, err = w.review.Show(ctx, w.Ref(), second.Number)
	w.must(err)
	w.must(w.review.Approve(ctx, w.Ref(), first.Number, local.Note{Who: "Ann"}))
	if w.kind.ordinary {
		w.git("update-ref", "--no-deref", "HEAD", "main") // detached, without the filters of a checkout
	}
	for _, number := range []int{first.Number, second.Number} {
		_, err = w.review.Merge(ctx, w.Ref(), number, local.MergeNote{Note: local.Note{Who: "Ann"}})
		w.must(err)
	}
	third := w.propose("claude-ops/check/third", disk("third\n"))
	w.must(w.review.Close(ctx, w.Ref(), third.Number, local.Note{Who: "Ann", Body: "no"}))
	_, err = w.p.ListOpen(ctx, w.Ref(), "claude-ops")
	w.must(err)
}

func TestHooksNeverRun(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	program, mark := w.trap("hook")
	for _, folder := range []string{"hooks", "other-hooks"} {
		w.must(os.MkdirAll(filepath.Join(w.dir, folder), 0o755))
		for _, name := range []string{
			"pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "reference-transaction", "update", "pre-receive",
			"post-receive", "post-update", "pre-merge-commit", "post-merge", "post-index-change", "fsmonitor-watchman",
			"pre-auto-gc",
		} {
			w.must(os.Symlink(program, filepath.Join(w.dir, folder, name)))
		}
	}
	w.everything()
	w.unmarked(mark)
	w.git("config", "core.hooksPath", filepath.Join(w.dir, "other-hooks"))
	_, err := w.p.Commit(t.Context(), w.request("claude-ops/check/again", disk("again\n")))
	w.must(err)
	w.unmarked(mark)

	w.git("update-ref", "refs/heads/by-a-person", "main")
	if _, err := os.Stat(mark); err != nil {
		t.Fatal("the trap does not work: git itself did not run the hook")
	}
}

func TestTheRepositorysConfigurationRunsNothing(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]kind{"bare": bare(), "ordinary": ordinary()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, k,
				providertest.File{Path: "checks/disk.md", Content: "# Disk\n\none\ntwo\nthree\n"},
				providertest.File{Path: ".gitattributes", Content: "* filter=evil diff=evil merge=evil text eol=crlf ident\n"})
			program, mark := w.trap("evil")
			w.hostile(program)
			w.everything()
			w.unmarked(mark)
			for _, f := range w.Files("main") {
				if strings.Contains(f.Content, "\r") {
					t.Errorf("%s was converted", f.Path)
				}
			}
		})
	}
}

// hostile writes all the configuration by which a repository can make git run a program.
func (w *world) hostile(program string) {
	w.t.Helper()
	gitDir := strings.TrimSpace(w.git("rev-parse", "--absolute-git-dir"))
	elsewhere := w.t.TempDir()
	included := filepath.Join(elsewhere, "included")
	config := map[string]string{
		"core.fsmonitor": program, "core.sshCommand": program, "core.gitProxy": program, "core.editor": program,
		"core.pager": program, "core.askPass": program, "core.alternateRefsCommand": program, "core.autocrlf": "true",
		"filter.evil.clean": program, "filter.evil.smudge": program, "filter.evil.process": program,
		"filter.evil.required": "true",
		"diff.evil.command":    program, "diff.evil.textconv": program, "diff.external": program,
		"merge.evil.driver": program + " %O %A %B", "merge.default": "evil", "merge.renormalize": "true",
		"commit.gpgSign": "true", "gpg.program": program, "alias.update-ref": "!" + program,
		"alias.for-each-ref": "!" + program,
		"credential.helper":  program, "protocol.ext.allow": "always", "uploadpack.packObjectsHook": program,
		"remote.origin.url": "ext::" + program, "remote.origin.promisor": "true", "gc.auto": "1",
	}
	var b strings.Builder
	for key, value := range config {
		section, name := key[:strings.LastIndexByte(key, '.')], key[strings.LastIndexByte(key, '.')+1:]
		if outer, inner, nested := strings.Cut(section, "."); nested {
			section = outer + " \"" + inner + "\""
		}
		b.WriteString("[" + section + "]\n\t" + name + " = \"" + value + "\"\n")
	}
	w.must(os.WriteFile(included, []byte(b.String()), 0o600))
	own, err := os.OpenFile(filepath.Join(gitDir, "config"), os.O_APPEND|os.O_WRONLY, 0)
	w.must(err)
	_, err = own.WriteString("[include]\n\tpath = " + included + "\n" + b.String())
	w.must(err)
	w.must(own.Close())
	w.must(os.MkdirAll(filepath.Join(gitDir, "info"), 0o755))
	w.must(os.WriteFile(filepath.Join(gitDir, "info", "attributes"), []byte("* filter=evil diff=evil merge=evil\n"),
		0o600))
}

func TestAWorkTreeOfTheConfigurationIsNotTouched(t *testing.T) {
	t.Parallel()
	w := home(t, ordinary())
	elsewhere := t.TempDir()
	w.must(os.WriteFile(filepath.Join(elsewhere, "precious"), []byte("precious\n"), 0o600))
	w.git("config", "core.worktree", elsewhere)
	pr := w.propose("claude-ops/check/disk", disk("new\n"))
	w.wantState(pr.Number, gitprovider.StateOpen)
	entries, err := os.ReadDir(elsewhere)
	w.must(err)
	if len(entries) != 1 {
		t.Errorf("the other folder holds %v", entries)
	}
}

func TestWorkTreeAndIndexStayAsTheyAre(t *testing.T) {
	t.Parallel()
	w := home(t, ordinary())
	w.git("reset", "--quiet", "--hard")
	w.must(os.WriteFile(filepath.Join(w.dir, "checks", "disk.md"), []byte("dirty\n"), 0o600))
	w.must(os.WriteFile(filepath.Join(w.dir, "staged.md"), []byte("staged\n"), 0o600))
	w.must(os.WriteFile(filepath.Join(w.dir, "untracked.md"), []byte("untracked\n"), 0o600))
	w.git("add", "staged.md")
	shot := func() string {
		index, err := os.ReadFile(filepath.Join(w.dir, ".git", "index"))
		w.must(err)
		head, err := os.ReadFile(filepath.Join(w.dir, ".git", "HEAD"))
		w.must(err)
		dirty, err := os.ReadFile(filepath.Join(w.dir, "checks", "disk.md"))
		w.must(err)
		return string(index) + string(head) + string(dirty) + w.git("--no-optional-locks", "status", "--porcelain")
	}
	before := shot()
	pr := w.propose("claude-ops/check/disk", disk("new\n"), providertest.Create("checks/new.md", "x\n"))
	w.state(pr.Number)
	_, err := w.review.Show(t.Context(), w.Ref(), pr.Number)
	w.must(err)
	if after := shot(); after != before {
		t.Errorf("before:\n%q\nafter:\n%q", before, after)
	}
}

func TestReadsLeaveNoObjects(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	pr := w.propose("claude-ops/check/disk", disk("# Disk\n\nONE\ntwo\nthree\n"))
	w.Push("main", providertest.File{Path: "checks/disk.md", Content: "# Disk\n\none\ntwo\nTHREE\n"})
	before := w.git("count-objects", "-v")
	if m := w.state(pr.Number).Mergeable; m == nil || !*m {
		t.Fatalf("mergeable %v", m)
	}
	w.snapshot(w.p, "checks/disk.md")
	if after := w.git("count-objects", "-v"); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestWorkspacesAreRemoved(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	temp := t.TempDir()
	w.p = w.provider(local.Options{TempDir: temp})
	w.review = local.NewReviewer(w.p)
	w.everything()
	entries, err := os.ReadDir(temp)
	w.must(err)
	if len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestNewObjectsKeepTheRepositorysPermissions(t *testing.T) {
	t.Parallel()
	w := home(t, bare())
	objects := filepath.Join(w.dir, "objects")
	w.must(os.Chmod(objects, 0o2770)) //nolint:gosec // what git init --shared=group makes
	old, err := os.ReadDir(objects)
	w.must(err)
	var changes []gitprovider.FileChange
	for i := range 20 { // enough objects for a folder that is not there yet
		changes = append(changes, providertest.Create(fmt.Sprintf("checks/n%d.md", i), fmt.Sprint(i)))
	}
	_, err = w.p.Commit(t.Context(), w.request("claude-ops/check/many", changes...))
	w.must(err)
	now, err := os.ReadDir(objects)
	w.must(err)
	fresh := slices.DeleteFunc(now, func(e os.DirEntry) bool {
		return slices.ContainsFunc(old, func(o os.DirEntry) bool { return o.Name() == e.Name() })
	})
	if len(fresh) == 0 {
		t.Fatal("no object folder was made")
	}
	for _, folder := range fresh {
		info, err := folder.Info()
		w.must(err)
		if got := info.Mode().Perm(); got&0o070 != 0o070 || got&0o007 != 0 {
			t.Errorf("the new object folder %s has the mode %o, want it writable for the group and closed to others",
				folder.Name(), got)
		}
	}
}
