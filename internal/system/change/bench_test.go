package change

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkManyFiles plans, removes, brings back and mends 10,000 files in 1,000 folders, of which each of the five
// deployments since the first has changed one.
func BenchmarkManyFiles(b *testing.B) {
	for b.Loop() {
		m := newMachine(b, nil)
		commands := map[string]string{}
		for i := range 10_000 {
			commands[fmt.Sprintf("d%d/c%d.md", i/10, i)] = fmt.Sprintln("command", i)
		}
		var lasts *Done
		took := func(what string, do func()) {
			began := time.Now()
			do()
			b.ReportMetric(time.Since(began).Seconds(), what+"-s")
		}
		took("deploy", func() { lasts = m.deploy(commands) })
		for i := range 5 {
			commands["d0/c0.md"] = fmt.Sprintln("again", i)
			lasts = m.deploy(commands)
		}
		took("plan", func() {
			if p := m.plan(nil); len(p.Changes) != 10_000 {
				b.Fatal(len(p.Changes))
			}
		})
		took("remove", func() { m.deploy(nil) })
		took("back", func() { m.rollback(lasts.ID) })
		e, steps := m.engine(), 0
		e.KillAt(func(step string) bool { steps++; return steps > 15_000 })
		if _, _, err := e.Apply(b.Context(), m.want(nil), Approval{}); !WasKilled(err) {
			b.Fatal(err)
		}
		took("mend", func() { m.plan(nil) })
	}
}
