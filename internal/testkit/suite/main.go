// Command suite runs tests and reports them for people: a line for each folder of internal/, the slowest tests, and how
// many ran. A failed test is printed with the command that runs it alone.
//
//	suite [-flags "FLAGS OF GO TEST"] [-memory] [-module FOLDER]... [-soak N [-load L] [-core C] [-first F]] PACKAGE...
//
// The packages start in the order given. The status is 1 if a test failed or a package did not compile.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the flags of the command.
type options struct {
	flags   []string // of go test
	run     []string // more of them, which do not belong to the command that repeats a test
	modules []string // folders of further modules whose tests run as well
	soak    int      // rounds; 0 runs the tests once
	load    int      // test binaries of a soak that run at a time
	core    int      // on which a soak runs
	first   int      // number of a soak's first round, by which it shuffles
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var opts options
	flags := flag.NewFlagSet("suite", flag.ContinueOnError)
	testFlags := flags.String("flags", "", "flags of go test, separated by spaces")
	inMemory := flags.Bool("memory", false, "keep the temporary files of tests in memory where there is room")
	flags.Func("module", "folder of another module to test as well", func(dir string) error {
		opts.modules = append(opts.modules, dir)
		return nil
	})
	flags.IntVar(&opts.soak, "soak", 0, "run the tests this many times in other orders, on one busy core")
	flags.IntVar(&opts.load, "load", 20, "how many test binaries of a soak run at a time")
	flags.IntVar(&opts.core, "core", 0, "the core that a soak runs on")
	flags.IntVar(&opts.first, "first", 1, "the number of a soak's first round; each number is another order")
	if err := flags.Parse(args); err != nil {
		return err
	}
	opts.flags = strings.Fields(*testFlags)
	if *inMemory {
		memory, remove, err := useMemory(memoryRoot, freeBytes(memoryRoot))
		defer remove()
		if err != nil {
			return err
		}
		opts.run = memory
	}
	packages, err := listPackages(ctx, ".", opts.flags, flags.Args())
	if err != nil {
		return err
	}
	if opts.soak > 0 {
		return soak(ctx, opts, packages, out)
	}
	return once(ctx, opts, packages, out)
}

var errFailed = errors.New("tests failed")

// once runs every package, and the other modules after them.
func once(ctx context.Context, opts options, packages []string, out io.Writer) error {
	r := newReport(out, opts.flags, time.Now)
	r.expect(packages)
	fmt.Fprintf(out, "%d packages; what changed since the last run is compiled first\n", len(packages))
	args := slices.Concat([]string{"test", "-json"}, opts.flags, opts.run)
	if err := goTest(ctx, r, ".", append(args, packages...)); err != nil {
		return err
	}
	for _, dir := range opts.modules {
		others, err := listPackages(ctx, dir, nil, []string{"."})
		if err != nil {
			return err
		}
		r.expect(others)
		r.folder = dir
		if err := goTest(ctx, r, dir, append(args, ".")); err != nil {
			return err
		}
	}
	if !r.end() {
		return errFailed
	}
	return nil
}

// goTest hands the events of one `go test -json` to the report. A failed test is not an error here.
func goTest(ctx context.Context, r *report, dir string, args []string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var complaints strings.Builder
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		return err
	}
	events, stop := make(chan event), make(chan struct{})
	go func() {
		defer close(stop)
		r.follow(events)
	}()
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			events <- e
		}
	}
	close(events)
	<-stop
	err = errors.Join(lines.Err(), cmd.Wait())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && !r.failed() { // go itself failed: it says why on standard error
		return fmt.Errorf("go test: %w\n%s", err, complaints.String())
	}
	return lines.Err()
}

// listPackages resolves patterns to import paths, each once and in their order, and downloads the modules that the
// tests need. The downloads are counted, not listed.
func listPackages(ctx context.Context, dir string, testFlags, patterns []string) ([]string, error) {
	args := []string{"list", "-e", "-test", "-deps", "-f", "{{if .DepOnly}}{{else}}{{.ImportPath}}{{end}}"}
	for _, flag := range testFlags {
		if strings.HasPrefix(flag, "-tags") {
			args = append(args, flag)
		}
	}
	seen := map[string]bool{}
	var packages []string
	for _, pattern := range patterns {
		cmd := exec.CommandContext(ctx, "go", append(args, pattern)...)
		cmd.Dir = dir
		counter := &downloads{out: os.Stderr}
		cmd.Stderr = counter
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list %s: %w\n%s", pattern, err, counter.rest.String())
		}
		for _, path := range strings.Fields(string(out)) {
			if isTestVariant(path) || seen[path] {
				continue
			}
			seen[path] = true
			packages = append(packages, path)
		}
	}
	return packages, nil
}

// isTestVariant reports whether go list made a path up for a test binary: "p.test", "p [p.test]".
func isTestVariant(path string) bool {
	return strings.HasSuffix(path, ".test") || strings.HasPrefix(path, "[") || strings.HasSuffix(path, "]") ||
		strings.HasSuffix(path, "_test")
}

// downloads counts the lines "go: downloading ..." and keeps all others.
type downloads struct {
	out  io.Writer
	n    int
	rest strings.Builder
}

func (d *downloads) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "go: downloading ") {
			d.rest.WriteString(line)
			continue
		}
		if d.n++; d.n%25 == 0 {
			fmt.Fprintf(d.out, "  %d modules downloaded\n", d.n)
		}
	}
	return len(b), nil
}
