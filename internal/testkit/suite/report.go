package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is a line of `go test -json` (go doc test2json; build events: go help buildjson).
type event struct {
	Action     string
	Package    string
	ImportPath string // of build events
	Test       string
	Elapsed    float64 // seconds
	Output     string
}

// Bounds of what a report shows.
const (
	shownSlowest = 8
	quietFor     = 30 * time.Second // after which a line says how far the run is
)

// group is a folder of internal/, or "other".
type group struct {
	name           string
	packages, left int
	tests          int
	seconds        float64
	bad            bool
}

// testID names a test of a package; Test is empty for the package itself.
type testID struct{ Package, Test string }

type timed struct {
	testID
	seconds float64
}

// report collects the events of one run, and prints each group when its last package ends.
type report struct {
	out      io.Writer
	flags    []string
	now      func() time.Time
	began    time.Time
	spoke    time.Time
	folder   string // of the module that runs; "" is the first
	groups   map[string]*group
	pending  map[string]bool // packages that have not ended
	total    int
	output   map[testID][]string
	running  map[testID]bool
	seed     map[string]string // shuffle of a package
	builds   map[string][]string
	slow     []timed
	passed   int
	cut      bool // a package never ended
	skips    []string
	failedAt []testID            // in the order of their ends
	kept     map[testID][]string // what they said
}

func newReport(out io.Writer, flags []string, now func() time.Time) *report {
	return &report{
		out: out, flags: flags, now: now, began: now(), spoke: now(),
		groups: map[string]*group{}, pending: map[string]bool{}, output: map[testID][]string{},
		running: map[testID]bool{}, seed: map[string]string{}, builds: map[string][]string{},
		kept: map[testID][]string{},
	}
}

// groupOf returns the folder of internal/ that a package lies in; what takes longest stands for itself.
func groupOf(path string) string {
	_, inside, ok := strings.Cut(path, "/internal/")
	switch {
	case path == module+"/e2e":
		return "e2e"
	case !ok:
		return "other"
	}
	first, rest, _ := strings.Cut(inside, "/")
	if first == "testkit" && (rest == "crash" || rest == "resilience") {
		return first + "/" + rest
	}
	return first
}

// expect announces packages, so that a group is printed when all of its own have ended.
func (r *report) expect(packages []string) {
	for _, path := range packages {
		name := groupOf(path)
		if r.groups[name] == nil {
			r.groups[name] = &group{name: name}
		}
		r.groups[name].packages++
		r.groups[name].left++
		r.pending[path] = true
		r.total++
	}
}

// follow takes events until there are no more.
func (r *report) follow(events <-chan event) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case e, more := <-events:
			if !more {
				return
			}
			r.take(e)
		case <-tick.C:
			if r.now().Sub(r.spoke) >= quietFor {
				r.printf("  %d of %d packages have ended\n", r.total-len(r.pending), r.total)
			}
		}
	}
}

func (r *report) printf(format string, args ...any) {
	r.spoke = r.now()
	fmt.Fprintf(r.out, format, args...)
}

var shuffleLine = regexp.MustCompile(`^-test\.shuffle (\d+)`) //nolint:gochecknoglobals // compiled once

// take adds one event.
func (r *report) take(e event) {
	id := testID{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
	case "build-fail":
		r.printf("\n%s", strings.Join(r.builds[e.ImportPath], ""))
	case "run":
		r.running[id] = true
	case "output":
		if m := shuffleLine.FindStringSubmatch(e.Output); m != nil {
			r.seed[e.Package] = m[1]
		}
		r.output[id] = append(r.output[id], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e)
		} else {
			r.endTest(id, e)
		}
	}
}

func (r *report) endTest(id testID, e event) {
	delete(r.running, id)
	g := r.groups[groupOf(e.Package)]
	if g != nil {
		g.tests++
	}
	if !strings.Contains(e.Test, "/") {
		r.slow = append(r.slow, timed{id, e.Elapsed})
	}
	switch e.Action {
	case "pass":
		r.passed++
		delete(r.output, id)
	case "skip":
		r.skips = append(r.skips, fmt.Sprintf("%s %s: %s", relative(e.Package), e.Test, reason(r.output[id])))
		delete(r.output, id)
	case "fail":
		r.fail(id)
	}
}

// fail prints what a test said, and how to run it alone. A test that failed because of a subtest adds no command.
func (r *report) fail(id testID) {
	of := slices.ContainsFunc(r.failedAt, func(f testID) bool {
		return f.Package == id.Package && strings.HasPrefix(f.Test, id.Test+"/")
	})
	r.failedAt = append(r.failedAt, id)
	r.printf("\n%s", strings.Join(r.output[id], ""))
	if !of {
		r.printf("  run it alone: %s\n\n", r.command(id))
	}
	r.kept[id] = r.output[id]
	delete(r.output, id)
}

// endPackage counts a package. One that failed without a failed test panicked, ran out of time or did not compile:
// the tests that were running then are named.
func (r *report) endPackage(e event) {
	if !r.pending[e.Package] {
		return
	}
	delete(r.pending, e.Package)
	whole := testID{e.Package, ""}
	bad := e.Action == "fail"
	if bad && !slices.ContainsFunc(r.failedAt, func(f testID) bool { return f.Package == e.Package }) {
		for id := range r.running {
			if id.Package == e.Package {
				r.printf("\n%s was running:\n%s", id.Test, strings.Join(r.output[id], ""))
			}
		}
		for id, said := range r.output { // what came after the end of a test, such as the stacks of a panic
			if id.Package == e.Package && id.Test != "" && !r.running[id] {
				r.printf("\n%s", strings.Join(said, ""))
			}
		}
		r.fail(whole)
	}
	for id := range r.running {
		if id.Package == e.Package {
			delete(r.running, id)
		}
	}
	delete(r.output, whole)
	g := r.groups[groupOf(e.Package)]
	g.left--
	g.seconds += e.Elapsed
	g.bad = g.bad || bad
	if g.left == 0 {
		r.printGroup(g)
	}
}

func (r *report) printGroup(g *group) {
	mark := "ok  "
	if g.bad {
		mark = "FAIL"
	}
	r.printf("%s %-20s %3d packages %6d tests %7.1f s\n", mark, g.name, g.packages, g.tests, g.seconds)
}

// end prints the slowest tests, those that were skipped, and the sum. It reports whether all is well.
func (r *report) end() bool {
	for _, g := range r.groups {
		if g.left > 0 { // go test was ended before it reached them
			g.bad, r.cut = true, true
			r.printGroup(g)
		}
	}
	slices.SortStableFunc(r.slow, func(a, b timed) int {
		switch {
		case a.seconds > b.seconds:
			return -1
		case a.seconds < b.seconds:
			return 1
		}
		return strings.Compare(a.Test, b.Test)
	})
	r.printf("\nThe slowest tests:\n")
	for _, t := range r.slow[:min(shownSlowest, len(r.slow))] {
		r.printf("  %6.1f s  %s %s\n", t.seconds, relative(t.Package), t.Test)
	}
	for _, skip := range r.skips {
		r.printf("skipped: %s\n", skip)
	}
	r.printf("\nTests and subtests, in %s:\n", r.now().Sub(r.began).Round(time.Second))
	sum := fmt.Sprintf("%d passed, %d failed", r.passed, len(r.failedAt))
	if len(r.skips) > 0 {
		sum += fmt.Sprintf(", %d skipped", len(r.skips))
	}
	r.printf("%s\n", sum)
	return !r.failed()
}

func (r *report) failed() bool { return r.cut || len(r.failedAt) > 0 }

// command returns the command that runs a test alone, to be pasted into a shell at the root of the repository.
func (r *report) command(id testID) string {
	words := []string{"go", "test", "-count=1"}
	for _, flag := range r.flags {
		if strings.HasPrefix(flag, "-race") || strings.HasPrefix(flag, "-tags") {
			words = append(words, flag)
		}
	}
	if seed := r.seed[id.Package]; seed != "" {
		words = append(words, "-shuffle="+seed)
	}
	if id.Test != "" {
		parts := strings.Split(id.Test, "/")
		for i, part := range parts {
			parts[i] = "^" + regexp.QuoteMeta(part) + "$"
		}
		words = append(words, "-run", quote(strings.Join(parts, "/")))
	}
	if r.folder != "" {
		return "(cd " + r.folder + " && " + strings.Join(append(words, "."), " ") + ")"
	}
	return strings.Join(append(words, relative(id.Package)), " ")
}

// quote makes one word of a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

const module = "github.com/claudeops/claudeops"

// relative returns the path of a package from the root of the module.
func relative(path string) string {
	if rest, ok := strings.CutPrefix(path, module); ok {
		return "." + rest
	}
	return path
}

// reason returns a skipped test's message, without its frame.
func reason(output []string) string {
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			return line
		}
	}
	return "no reason given"
}
