package definitions

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// many is a catalog of as many agents.
func many(b *testing.B, n int) *Catalog {
	b.Helper()
	files := map[string]string{}
	for i := range n {
		name := fmt.Sprintf("agent-%05d", i)
		if i%2 == 0 {
			files[".fractary/agents/"+name+".yaml"] = agentYAML(name, "1.0.0")
		} else {
			files[".fractary/agents/"+name+"/agent.md"] = agentMarkdown(name, "1.0.0", "A prompt of some length.\n")
		}
	}
	return newCatalog(options{Project: operationtest.WriteFiles(b, b.TempDir(), files),
		Now: func() time.Time { return time.Now().Add(time.Hour) }})
}

func BenchmarkListCold(b *testing.B) {
	c := many(b, 10_000)
	for b.Loop() {
		c.memory.read = map[string]Summary{}
		if list, _, err := c.List(b.Context(), Agent, ""); err != nil || len(list) != 10_000 {
			b.Fatal(len(list), err)
		}
	}
}

func BenchmarkListWarm(b *testing.B) {
	c := many(b, 10_000)
	if _, _, err := c.List(b.Context(), Agent, ""); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if list, _, err := c.List(b.Context(), Agent, ""); err != nil || len(list) != 10_000 {
			b.Fatal(len(list), err)
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB-held")
	runtime.KeepAlive(c)
}

func BenchmarkInfo(b *testing.B) {
	c := many(b, 10_000)
	for b.Loop() {
		if _, err := c.Info(b.Context(), Agent, Reference{Name: "agent-05000"}, ""); err != nil {
			b.Fatal(err)
		}
	}
}
