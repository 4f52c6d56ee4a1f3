package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// BenchmarkCreatePR is create_pr as an agent gets it, without the transport: all gates, two files of 4 KB, a real git
// repository, real records on disk. Each round has a repository of its own.
func BenchmarkCreatePR(b *testing.B) {
	dir := b.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	must.Do(b, os.WriteFile(policy, []byte("version: 1\ncaps: {creations_per_hour: 1000}\n"), 0o600))
	env := map[string]string{
		"CLAUDEOPS_TIER": "2", "CLAUDEOPS_LOCAL_ROOT": filepath.Join(dir, "root"),
		"CLAUDEOPS_STATE_DIR": filepath.Join(dir, "state"),
		"CLAUDEOPS_REPOS_DIR": filepath.Join(dir, "repos"), "CLAUDEOPS_POLICY": policy,
	}
	must.Do(b, os.Mkdir(env["CLAUDEOPS_STATE_DIR"], 0o700))
	_, p := newProcess(b, env)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		name := fmt.Sprintf("r%d", i)
		makeRepository(b, filepath.Join(env["CLAUDEOPS_LOCAL_ROOT"], "bench", name+".git"), benchStream())
		raw := benchRequest(b, name)
		b.StartTimer()
		result, err := p.Flow.Create(
			b.Context(),
			operation.Caller{Actor: record.Actor{Door: record.DoorCLI, Client: "bench"}},
			raw,
		)
		if err != nil || result.Number != 1 {
			b.Fatalf("%+v, %v", result, err)
		}
	}
}

// BenchmarkListLocal is `pr list` of 664 open pull requests of a local repository, seven pages of it.
func BenchmarkListLocal(b *testing.B) {
	const many = 664
	dir := b.TempDir()
	env := map[string]string{
		"CLAUDEOPS_TIER": "2", "CLAUDEOPS_LOCAL_ROOT": filepath.Join(dir, "root"),
		"CLAUDEOPS_STATE_DIR": filepath.Join(dir, "state"), "CLAUDEOPS_REPOS_DIR": filepath.Join(dir, "repos"),
	}
	must.Do(b, os.Mkdir(env["CLAUDEOPS_STATE_DIR"], 0o700))
	a, parts := newProcess(b, env)
	at := filepath.Join(env["CLAUDEOPS_LOCAL_ROOT"], "bench", "many.git")
	var stream strings.Builder
	stream.WriteString(benchStream())
	for i := range many {
		fmt.Fprintf(&stream, "commit refs/heads/claude-ops/fix/c%d\ncommitter a <a@example.org> 1767225600 +0000\ndata 1\nx\n"+
			"from refs/heads/main\nM 100644 inline checks/n%d.md\ndata 2\ny\n\n", i, i)
	}
	makeRepository(b, at, stream.String())
	heads, err := exec.Command("git", "--git-dir", at, "for-each-ref", "--format=%(refname:short) %(objectname)",
		"refs/heads/claude-ops").Output()
	must.Do(b, err)
	req := prflow.ListRequest{RepoOwner: "bench", RepoName: "many"}
	if _, err := listAll(b.Context(), a, req); err != nil { // the records know the root from now on
		b.Fatal(err)
	}
	for line := range strings.Lines(string(heads)) {
		branch, head, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, err := parts.Store.LocalPulls.InsertPR(b.Context(), "bench/many", gitprovider.PullRequest{Title: branch,
			Branch: branch, HeadCommit: head, Base: "main", Labels: []string{gitprovider.LabelOurs}}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		all, err := listAll(b.Context(), a, req)
		if err != nil || len(all.PRs) != many {
			b.Fatalf("%d pull requests, %v", len(all.PRs), err)
		}
	}
}

func benchRequest(b *testing.B, name string) []byte {
	b.Helper()
	text := strings.Repeat("- Look at the disk, and compare it with yesterday's record.\n", 70)
	raw := must.Get(json.Marshal(prflow.CreateRequest{
		RepoOwner: "bench", RepoName: name, Title: "Check the disk", Body: "Why: it fills up.",
		Files: []prflow.FileRequest{
			{Path: "checks/disk.md", Action: "update", Content: &text},
			{Path: "checks/inodes.md", Action: "create", Content: &text},
		},
	}))(b)
	return raw
}

// benchStream is a commit of 201 files.
func benchStream() string {
	files := []string{"checks/disk.md", "x\n"}
	for i := range 200 {
		files = append(files, fmt.Sprintf("checks/c%d.md", i), "x\n")
	}
	return streamOf(files...)
}
