package main

import (
	"bytes"
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

// together is how many test binaries of a soak run at a time on their one core.
const together = 4

// soak runs the tests again and again on one core, each time in another order, beside busy processes on that core and
// one that keeps writing to the disk. It prints each test that failed at least once.
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
	stop, err := makeBusy(ctx, opts.load, work)
	if err != nil {
		return err
	}
	defer stop()
	failures := map[testID]int{}
	for n := 1; n <= opts.soak; n++ {
		r := newReport(io.Discard, append(opts.flags, "-shuffle=on"), time.Now)
		r.expect(packages)
		runBinaries(ctx, r, binaries, strconv.Itoa(n))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.end()
		fmt.Fprintf(out, "round %d of %d: %d passed, %d failed in %s\n", n, opts.soak, r.passed, len(r.failedAt),
			time.Since(r.began).Round(time.Second))
		for _, id := range r.failedAt {
			if failures[id]++; failures[id] == 1 {
				fmt.Fprintf(out, "%s  %s\n", strings.Join(r.kept[id], ""), r.command(id))
			}
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(failures), func(a, b testID) int { return failures[b] - failures[a] }) {
		fmt.Fprintf(out, "%d of %d rounds: %s %s\n", failures[id], opts.soak, relative(id.Package), id.Test)
	}
	if len(failures) > 0 {
		return errFailed
	}
	fmt.Fprintf(out, "%d rounds in a row are green\n", opts.soak)
	return nil
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

// runBinaries runs each binary once.
func runBinaries(ctx context.Context, r *report, binaries []binary, seed string) {
	queue := make(chan binary)
	var workers sync.WaitGroup
	var lock sync.Mutex
	for range together {
		workers.Go(func() {
			for b := range queue {
				events := runBinary(ctx, b, seed)
				lock.Lock()
				for _, e := range events {
					r.take(e)
				}
				lock.Unlock()
			}
		})
	}
	for _, b := range binaries {
		queue <- b
	}
	close(queue)
	workers.Wait()
}

// runBinary is a package's events. The shuffle of a round is the same for all packages, so that it can be repeated.
func runBinary(ctx context.Context, b binary, seed string) []event {
	cmd := onOneCore(ctx, "go", "tool", "test2json", "-t", "-p", b.pkg, b.file, "-test.v=test2json",
		"-test.shuffle="+seed, "-test.timeout=4h", "-test.count=1")
	cmd.Dir = b.dir
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	var events []event
	for line := range strings.Lines(output.String()) {
		var e event
		if json.Unmarshal([]byte(line), &e) == nil {
			events = append(events, e)
		}
	}
	if n := len(events); err != nil && (n == 0 || events[n-1].Test != "" || events[n-1].Action != "fail") {
		events = append(events, event{Action: "output", Package: b.pkg, Output: err.Error() + "\n"},
			event{Action: "fail", Package: b.pkg})
	}
	return events
}

// onOneCore is a command that runs on the machine's first core alone.
func onOneCore(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "taskset", append([]string{"-c", "0", name}, args...)...)
}

// makeBusy starts processes that use the first core as much as they get, and one that writes to the disk and waits for
// it. They end with the function that it returns.
func makeBusy(ctx context.Context, load int, work string) (func(), error) {
	scripts := make([]string, load, load+1)
	for i := range scripts {
		scripts[i] = "while :; do :; done"
	}
	scripts = append(scripts, "while :; do dd if=/dev/zero of="+quote(filepath.Join(work, "disk"))+
		" bs=1M count=16 oflag=dsync conv=notrunc 2>/dev/null; done")
	ctx, cancel := context.WithCancel(ctx)
	var commands []*exec.Cmd
	stop := func() {
		cancel()
		for _, cmd := range commands {
			_ = cmd.Wait()
		}
	}
	for _, script := range scripts {
		cmd := onOneCore(ctx, "sh", "-c", script)
		if err := cmd.Start(); err != nil {
			stop()
			return nil, fmt.Errorf("a soak needs taskset of util-linux: %w", err)
		}
		commands = append(commands, cmd)
	}
	return stop, nil
}
