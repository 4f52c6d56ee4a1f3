//go:build unix

package fileset

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// BenchmarkManyFiles plans, removes, brings back and mends many files, ten in each folder, of which each of the five
// deployments since the first has changed one. Each step is told by the clock (-s) and in processor time (-cpu-s).
func BenchmarkManyFiles(b *testing.B) {
	for _, many := range []int{1_000, 2_000, 10_000} {
		b.Run(fmt.Sprint(many), func(b *testing.B) {
			for b.Loop() {
				manyFiles(b, many)
			}
		})
	}
}

func manyFiles(b *testing.B, many int) {
	m := newMachine(b, nil)
	commands := map[string]string{}
	for i := range many {
		commands[fmt.Sprintf("d%d/c%d.md", i/10, i)] = fmt.Sprintln("command", i)
	}
	var lasts *Done
	took := func(what string, do func()) {
		began, spent := time.Now(), processorTime()
		do()
		b.ReportMetric(time.Since(began).Seconds(), what+"-s")
		b.ReportMetric((processorTime() - spent).Seconds(), what+"-cpu-s")
	}
	took("deploy", func() { lasts = m.deploy(commands) })
	for i := range 5 {
		commands["d0/c0.md"] = fmt.Sprintln("again", i)
		lasts = m.deploy(commands)
	}
	took("plan", func() {
		if p := m.plan(nil); len(p.Changes) != many {
			b.Fatal(len(p.Changes))
		}
	})
	took("remove", func() { m.deploy(nil) })
	took("back", func() { m.rollback(lasts.ID) })
	e, steps := m.engine(), 0
	e.KillAt(func(string) bool { steps++; return steps > many*3/2 })
	if _, _, err := e.Apply(b.Context(), m.want(nil), Approval{}); !WasKilled(err) {
		b.Fatal(err)
	}
	took("mend", func() { m.plan(nil) })
}

// processorTime returns the time that this process has spent on processors, the kernel's work for it included.
func processorTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
