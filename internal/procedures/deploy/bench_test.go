package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/change"
)

// BenchmarkPlan plans over 1,000 modules of ten files each, 10,000 in all, and runs git status on the tree that they
// are deployed to: cold is a plan before anything was deployed, unchanged one with nothing to change, of files whose
// hashes are remembered.
func BenchmarkPlan(b *testing.B) {
	files := map[string]string{}
	var config strings.Builder
	config.WriteString(
		"version: 1\nprofiles: {default: {include_tags: [x]}}\ntargets: {claude_code: {options: {write_repo_skills: " +
			"true}}}\nmodules:\n")
	for i := range 1000 {
		fmt.Fprintf(&config, "- {id: 'skill:s%d', type: skill, tags: [x], source: {local_path: {path: m/s%d}}}\n", i, i)
		files[fmt.Sprintf("repo/m/s%d/SKILL.md", i)] = fmt.Sprintf("---\nname: s%d\ndescription: d\n---\n", i)
		for j := range 9 {
			files[fmt.Sprintf("repo/m/s%d/f%d.md", i, j)] = strings.Repeat(fmt.Sprintf("line %d %d\n", i, j), 100)
		}
	}
	files["repo/"+configName] = config.String()
	dir := b.TempDir()
	operationtest.WriteFiles(b, filepath.Join(dir, "agentpack"), files)
	operationtest.WriteFiles(b, dir, map[string]string{"project/.keep": "", "user/.keep": ""})
	project := filepath.Join(dir, "project")
	git(b, project, "init", "-q")
	git(b, project, "config", "gc.auto", "0") // nothing of git's is left running
	git(b, project, "config", "maintenance.auto", "false")
	program, err := exec.LookPath("git")
	if err != nil {
		b.Fatal(err)
	}
	settings := Settings{Home: filepath.Join(dir, "agentpack"), UserHome: filepath.Join(dir, "user"), Folder: project,
		Git: GitCommand{Path: program, Env: []string{"PATH=" + os.Getenv("PATH")}}, Now: time.Now}
	service := NewService(settings)
	plan := func(b *testing.B, want int) {
		for b.Loop() {
			p, err := service.Plan(b.Context(), Request{})
			if err != nil || len(p.Changes) != want {
				b.Fatal(len(p.Changes), err)
			}
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.Sys)/(1<<20), "MiB-sys")
	}
	b.Run("cold", func(b *testing.B) { plan(b, 10_000) })
	if _, _, err := service.Apply(b.Context(), Request{}, change.Approval{}, false); err != nil {
		b.Fatal(err)
	}
	git(b, project, "add", "-A")
	git(b, project, "commit", "-q", "-m", "x")
	b.Run("unchanged-first", func(b *testing.B) { plan(b, 0) }) // its first round reads every file, and remembers
	b.Run("unchanged", func(b *testing.B) { plan(b, 0) })
	// As claudeops deploy plan does it: a process that has asked nothing yet.
	b.Run("unchanged-new-process", func(b *testing.B) {
		for b.Loop() {
			if p, err := NewService(settings).Plan(b.Context(), Request{}); err != nil || len(p.Changes) > 0 {
				b.Fatal(p, err)
			}
		}
	})
	b.Run("git-status", func(b *testing.B) {
		for b.Loop() {
			git(b, project, "status", "--porcelain")
		}
	})
}
