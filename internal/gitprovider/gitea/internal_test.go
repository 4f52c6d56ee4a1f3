package gitea

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// TestTreeIDIsGits compares with git itself, in both object formats.
func TestTreeIDIsGits(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			git := func(stdin string, args ...string) string {
				cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...)
				cmd.Env = append(slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "GIT_") }),
					"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
				cmd.Stdin = strings.NewReader(stdin)
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, &stderr)
				}
				return strings.TrimSpace(string(out))
			}
			git("", "init", "--quiet", "--bare", "--object-format="+format)
			blob := git("text\n", "hash-object", "-w", "--stdin")
			commit := strings.Repeat("ab", len(blob)/2)
			deep := git("100644 blob "+blob+"\tx.md\n", "mktree")
			// git sorts a-b before a/ and a.md before a/: the order that naive sorting gets wrong.
			checks := git("040000 tree "+deep+"\ta\n100644 blob "+blob+"\ta-b\n100644 blob "+blob+"\ta.md\n", "mktree")
			root := git("040000 tree "+checks+"\tchecks\n100755 blob "+blob+"\trun.sh\n120000 blob "+blob+
				"\tlink\n160000 commit "+
				commit+"\tsub\n", "mktree", "--missing")
			file := gitprovider.Entry{Kind: gitprovider.KindFile, ID: blob}
			tree := gitprovider.Tree{
				"checks": {Kind: gitprovider.KindDir}, "checks/a": {Kind: gitprovider.KindDir}, "checks/a/x.md": file,
				"checks/a-b": file, "checks/a.md": file, "link": {Kind: gitprovider.KindSymlink, ID: blob},
				"run.sh": {Kind: gitprovider.KindFile, Executable: true, ID: blob},
				"sub":    {Kind: gitprovider.KindSubmodule, ID: commit},
			}
			if got := treeID(tree, blob); got != root {
				t.Errorf("tree %s, git says %s", got, root)
			}
			tree["checks/a"] = gitprovider.Entry{Kind: gitprovider.KindDir, ID: deep}
			delete(tree, "checks/a/x.md")
			if got := treeID(tree, blob); got != root {
				t.Errorf("tree %s with a folder that is not looked into, git says %s", got, root)
			}
		})
	}
}

func TestFoldersThatTheChangeEmptiesAreGone(t *testing.T) {
	t.Parallel()
	dir := gitprovider.Entry{Kind: gitprovider.KindDir}
	tree := gitprovider.Tree{"a": dir, "a/b": dir, "a/b/c": dir, "d": dir, "d/e": {Kind: gitprovider.KindFile, ID: "1"},
		"kept": {Kind: gitprovider.KindDir, ID: "2"}}
	dropEmpty(tree)
	if len(tree) != 3 || tree["d/e"].ID != "1" || tree["kept"].ID != "2" {
		t.Errorf("tree %v", tree)
	}
}

func TestShortestLeavesOutWhatAnotherOneFinds(t *testing.T) {
	t.Parallel()
	got := shortest([]string{"b", "claude-ops/x-1", "claude-ops/x", "a", "a/b"})
	if want := []string{"a", "b", "claude-ops/x"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLabelIDsAreUsedAllOrNone(t *testing.T) {
	t.Parallel()
	ids, repo := newLabelIDs(), gitprovider.RepoRef{Owner: "Joe", Name: "x"}
	ids.add(repo, []*gitea.Label{{ID: 7, Name: "a"}, nil, {ID: 8, Name: "old", IsArchived: true}})
	lower := gitprovider.RepoRef{Owner: "joe", Name: "x"}
	for _, tc := range []struct {
		names []string
		want  []int64
	}{{[]string{"a"}, []int64{7}}, {[]string{"a", "b"}, nil}, {[]string{"old"}, nil}, {nil, nil}} {
		if got := ids.cachedIDs(lower, tc.names); !slices.Equal(got, tc.want) {
			t.Errorf("%v: got %v, want %v", tc.names, got, tc.want)
		}
	}
}

func TestFreshBranchesAreTakenOnce(t *testing.T) {
	t.Parallel()
	fresh, repo := newFreshBranches(), gitprovider.RepoRef{Owner: "joe", Name: "x"}
	fresh.add(repo, "b")
	if !fresh.consume(repo, "b") || fresh.consume(repo, "b") || fresh.consume(repo, "other") {
		t.Error("a fresh branch is not taken exactly once")
	}
}
