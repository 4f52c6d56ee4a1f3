package local

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Values read from files equal git's, or git is asked.
func TestBranchesAreReadFromFilesAsGitReadsThem(t *testing.T) {
	t.Parallel()
	const sure, asked = true, false
	for name, test := range map[string]struct {
		do   func(r refRepository)
		want bool
	}{
		"loose": {func(r refRepository) { r.git("update-ref", "refs/heads/a/b/c", "main") }, sure},
		"packed": {func(r refRepository) {
			r.git("update-ref", "refs/heads/a/b", "main")
			r.git("pack-refs",
				"--all")
		}, sure},
		"packed, with a tag": {func(r refRepository) { r.git("tag", "-m", "x", "v1"); r.git("pack-refs", "--all") }, sure},
		"packed, then moved": {func(r refRepository) {
			r.git("pack-refs", "--all")
			r.git("update-ref", "refs/heads/main",
				r.second())
		}, sure},
		"packed, then deleted": {func(r refRepository) {
			r.git("branch", "x")
			r.git("pack-refs", "--all")
			r.git("branch",
				"-D", "x")
		}, sure},
		"an odd name":           {func(r refRepository) { r.git("update-ref", "refs/heads/büro/größe", "main") }, sure},
		"a lock of a writer":    {func(r refRepository) { r.write("refs/heads/main.lock", "") }, sure},
		"detached HEAD":         {func(r refRepository) { r.write("HEAD", r.second()+"\n") }, sure},
		"HEAD names none":       {func(r refRepository) { r.git("symbolic-ref", "HEAD", "refs/heads/none") }, sure},
		"a commit that is gone": {func(r refRepository) { r.write("refs/heads/gone", strings.Repeat("ab", 20)+"\n") }, sure},
		"empty folders": {func(r refRepository) {
			r.git("branch", "d/e")
			r.git("branch", "-D", "d/e")
			r.folder("refs/heads/d/f")
		}, sure},
		"HEAD outside of heads": {func(r refRepository) { r.git("symbolic-ref", "HEAD", "refs/other/x") }, asked},
		"symbolic": {func(r refRepository) { r.git("symbolic-ref", "refs/heads/link", "refs/heads/main") },
			asked},
		"symbolic, to nothing": {func(r refRepository) { r.git("symbolic-ref", "refs/heads/link", "refs/heads/none") },
			asked},
		"empty":                  {func(r refRepository) { r.write("refs/heads/empty", "") }, asked},
		"no line end":            {func(r refRepository) { r.write("refs/heads/short", r.second()) }, asked},
		"something behind":       {func(r refRepository) { r.write("refs/heads/more", r.second()+" and more\n") }, asked},
		"the id of nothing":      {func(r refRepository) { r.write("refs/heads/zero", strings.Repeat("0", 40)+"\n") }, asked},
		"a name git refuses":     {func(r refRepository) { r.write("refs/heads/a..b", r.second()+"\n") }, asked},
		"malformed packed":       {func(r refRepository) { r.write("packed-refs", "what is this\n") }, asked},
		"packed with a bad name": {func(r refRepository) { r.write("packed-refs", r.second()+" refs/heads/a..b\n") }, asked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRefRepository(t)
			test.do(r)
			read, sure, err := r.repo.readBranches(t.Context())
			if err != nil || sure != test.want {
				t.Fatalf("sure %v, want %v (%v)", sure, test.want, err)
			}
			asked, err := r.repo.askBranches(t.Context())
			if err != nil {
				if test.want {
					t.Fatal(err)
				}
				return // git refuses it, too
			}
			if test.want && (!maps.Equal(read.tips, asked.tips) || read.head != asked.head) {
				t.Errorf("read %+v\ngit %+v", read, asked)
			}
		})
	}
}

// refRepository is a bare repository with one commit on main.
type refRepository struct {
	t    *testing.T
	repo *repository
}

func newRefRepository(t *testing.T) refRepository {
	t.Helper()
	dir := t.TempDir()
	r := refRepository{t, &repository{gitDir: dir, root: dir, git: newRunner("", "", time.Minute, identity{})}}
	r.git("init", "--quiet", "--bare", "--initial-branch=main")
	r.git("update-ref", "refs/heads/main", r.commit("one"))
	return r
}

func (r refRepository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.repo.gitDir
	cmd.Env = append(os.Environ(), "GIT_DIR="+r.repo.gitDir, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@example.org", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r refRepository) commit(message string) string {
	r.t.Helper()
	return r.git("commit-tree", "-m", message, r.git("hash-object", "-t", "tree", "-w", "/dev/null"))
}

func (r refRepository) second() string { return r.commit("two") }

func (r refRepository) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.repo.gitDir, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r refRepository) folder(name string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Join(r.repo.gitDir, name), 0o700); err != nil {
		r.t.Fatal(err)
	}
}

// Git removes empty folders below refs whenever a reference goes, and makes them again for the next.
func TestFoldersThatComeAndGoAreNoFault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := layout{ctx: t.Context(), repo: &repository{root: dir, gitDir: dir,
		ref: gitprovider.RepoRef{Owner: "o", Name: "r"}}}
	stop := make(chan struct{})
	var git sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		git.Go(func() {
			folder := filepath.Join(dir, "refs", "heads", "claude-ops", name)
			for {
				select {
				case <-stop:
					return
				default:
				}
				_ = os.MkdirAll(folder, 0o750)
				_ = os.Remove(folder)
				_ = os.WriteFile(folder, nil, 0o600) // a branch that has the folder's name
				_ = os.Remove(folder)
			}
		})
	}
	for range 20_000 {
		if err := l.walk(filepath.Join(dir, "refs")); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	git.Wait()
}
