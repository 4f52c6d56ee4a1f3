package local_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

// BenchmarkCreate measures the provider's work for one create_pr: two files of 4 KB, ten pull requests open.
func BenchmarkCreate(b *testing.B) {
	w := home(b, bare())
	text := strings.Repeat("0123456789abcde\n", 256)
	for i := range 10 {
		w.propose(fmt.Sprintf("claude-ops/check/open-%d", i),
			providertest.Create(fmt.Sprintf("checks/open-%d.md", i), "open\n"))
	}
	n := 0
	for b.Loop() {
		n++
		branch := fmt.Sprintf("claude-ops/check/n%d", n)
		pr := w.propose(branch, disk(text), providertest.Create("checks/new.md", text))
		b.StopTimer()
		w.must(w.p.DeleteBranch(b.Context(), w.Ref(), branch, pr.HeadCommit))
		_, err := w.p.ListOpen(b.Context(), w.Ref(), "claude-ops") // records that it is closed, which the next one would do
		w.must(err)
		b.StartTimer()
	}
}

// BenchmarkSnapshot measures the cost of a dry run.
func BenchmarkSnapshot(b *testing.B) {
	w := home(b, bare())
	w.propose("claude-ops/check/open", disk("open\n"))
	for b.Loop() {
		if snap := w.snapshot(w.p, "checks/disk.md", "checks/new.md"); snap.Tree["checks"].Kind != gitprovider.KindDir {
			b.Fatal("no folder")
		}
	}
}
