package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// soak runs the tests again and again on one core, each round in another order, beside a process that keeps writing to
// the disk. As many test binaries run at a time as the load says, so the machine is as busy as with that many busy
// processes, and no time is wasted: the next round begins while the last binaries of a round still run. It prints each
// test that failed at least once.
func soak(ctx context.Context, opts options, packages []string, out io.Writer) error {
	work, err := os.MkdirTemp("", "claudeops-soak-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	binaries, err := compile(ctx, opts, packages, work)
	if err != nil {
		return err
	}
	stop, err := makeDiskBusy(ctx, opts.core, work)
	if err != nil {
		return err
	}
	defer stop()
	s := &rounds{options: opts, out: out, failures: map[testID]int{}}
	s.run(ctx, binaries)
	often := func(a, b testID) int { return s.failures[b] - s.failures[a] }
	for _, id := range slices.SortedFunc(maps.Keys(s.failures), often) {
		fmt.Fprintf(out, "%d of %d rounds: %s %s\n", s.failures[id], opts.soak, relative(id.Package), id.Test)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case len(s.failures) > 0:
		return errFailed
	}
	fmt.Fprintf(out, "%d rounds in a row are green\n", opts.soak)
	return nil
}

// rounds runs binaries, reports a failed test when its binary ends, and each round when its last binary ends.
type rounds struct {
	options
	out      io.Writer
	failures map[testID]int
}

// round is one run of every binary.
type round struct {
	number int
	report *report
	left   int
	costs  []timed // processor time of each package
}

// job is a binary in a round.
type job struct {
	binary
	round *round
}

func (s *rounds) run(ctx context.Context, binaries []binary) {
	queue := make(chan job)
	var workers sync.WaitGroup
	var lock sync.Mutex
	for range s.load {
		workers.Go(func() {
			for j := range queue {
				events, spent := runBinary(ctx, s.core, j.binary, strconv.Itoa(j.round.number))
				if ctx.Err() != nil {
					continue // it was ended with the soak
				}
				lock.Lock()
				s.ended(j, events, spent)
				lock.Unlock()
			}
		})
	}
	for n := range s.soak {
		r := &round{number: s.first + n, left: len(binaries),
			report: newReport(io.Discard, append(s.flags, "-shuffle=on"), time.Now)}
		for _, b := range binaries {
			r.report.expect([]string{b.pkg})
			queue <- job{b, r}
		}
	}
	close(queue)
	workers.Wait()
}

// ended adds what a binary said to its round, and reports the round if it was the last one.
func (s *rounds) ended(j job, events []event, spent time.Duration) {
	r, before := j.round, len(j.round.report.failedAt)
	for _, e := range events {
		r.report.take(e)
	}
	for _, id := range r.report.failedAt[before:] {
		if s.failures[id]++; s.failures[id] == 1 {
			fmt.Fprintf(s.out, "%s  %s\n", strings.Join(r.report.kept[id], ""), r.report.command(id))
		}
	}
	r.costs = append(r.costs, timed{testID{Package: j.pkg}, spent.Seconds()})
	if r.left--; r.left > 0 {
		return
	}
	r.report.end()
	slices.SortFunc(r.costs, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
	sum, dearest := 0.0, []string{}
	for i, cost := range r.costs {
		if sum += cost.seconds; i < shownSlowest {
			dearest = append(dearest, fmt.Sprintf("%s %.0f", relative(cost.Package), cost.seconds))
		}
	}
	fmt.Fprintf(s.out, "round %d: %d passed, %d failed in %s; %.0f s of processor time (%s)\n", r.number, r.report.passed,
		len(r.report.failedAt), time.Since(r.report.began).Round(time.Second), sum, strings.Join(dearest, ", "))
}

// binary is the compiled test of a package.
type binary struct{ pkg, dir, file string }

func compile(ctx context.Context, opts options, packages []string, work string) ([]binary, error) {
	var binaries []binary
	for i, pkg := range packages {
		b := binary{pkg: pkg, dir: filepath.FromSlash(relative(pkg)), file: filepath.Join(work, strconv.Itoa(i)+".test")}
		args := append([]string{"test", "-c", "-o", b.file}, slices.DeleteFunc(slices.Clone(opts.flags), forRun)...)
		text, err := exec.CommandContext(ctx, "go", append(args, pkg)...).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("go test -c %s: %w\n%s", pkg, err, text)
		}
		if _, err := os.Stat(b.file); err == nil { // a package without tests has none
			binaries = append(binaries, b)
		}
	}
	return binaries, nil
}

// forRun reports whether a flag of go test is about running rather than compiling.
func forRun(flag string) bool {
	prefixes := []string{"-p=", "-count", "-timeout", "-parallel", "-shuffle", "-run"}
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(flag, prefix) })
}

// runBinary returns a package's events and the processor time that it took. The shuffle of a round is the same for all
// packages, so that it can be repeated.
func runBinary(ctx context.Context, core int, b binary, seed string) ([]event, time.Duration) {
	cmd := onCore(ctx, core, b.file, "-test.v=test2json", "-test.shuffle="+seed, "-test.timeout=4h", "-test.count=1")
	cmd.Dir = b.dir
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); cmd.ProcessState == nil {
		return []event{{Action: "output", Package: b.pkg, Output: err.Error() + "\n"}, {Action: "fail", Package: b.pkg}}, 0
	}
	return eventsOf(ctx, b.pkg, &output, cmd.ProcessState), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// eventsOf returns what a test binary printed as events. A binary that ended otherwise than it says has failed.
func eventsOf(ctx context.Context, pkg string, printed io.Reader, ended *os.ProcessState) []event {
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", "-p", pkg)
	cmd.Stdin = printed
	text, err := cmd.Output()
	var events []event
	for line := range bytes.Lines(text) {
		var e event
		if json.Unmarshal(line, &e) == nil {
			events = append(events, e)
		}
	}
	n := len(events)
	if err == nil && (ended.Success() || n > 0 && events[n-1].Test == "" && events[n-1].Action == "fail") {
		return events
	}
	return append(events, event{Action: "output", Package: pkg, Output: fmt.Sprintln(ended, err)},
		event{Action: "fail", Package: pkg})
}

// onCore returns a command that runs on one core alone.
func onCore(ctx context.Context, core int, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "taskset", append([]string{"-c", strconv.Itoa(core), name}, args...)...)
}

// makeDiskBusy starts a process that writes to the disk and waits for it. It ends with the function that it returns.
func makeDiskBusy(ctx context.Context, core int, work string) (func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := onCore(ctx, core, "sh", "-c", "while :; do dd if=/dev/zero of="+quote(filepath.Join(work, "disk"))+
		" bs=1M count=16 oflag=dsync conv=notrunc 2>/dev/null; done")
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("a soak needs taskset of util-linux: %w", err)
	}
	return func() {
		cancel()
		_ = cmd.Wait()
	}, nil
}
