package local_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
)

// imposter makes the provider run a shell script instead of git.
func (w *world) imposter(script string, opts local.Options) *local.Provider {
	w.t.Helper()
	w.askGit()
	opts.Git = filepath.Join(w.t.TempDir(), "git")
	w.program(opts.Git, script)
	return w.provider(opts)
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
