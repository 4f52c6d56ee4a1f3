//go:build linux

package scripts

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/processtree"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// TestMain runs what this binary is started as by the runner: the reaper of a script's processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == processtree.ReaperCommand {
		syscall.Exit(processtree.Reap()) // without the second that the race detector waits
	}
	os.Exit(m.Run())
}

// bench is a folder of scripts with a runner.
type bench struct {
	t    *testing.T
	dir  string
	path string // PATH of scripts and of the search for interpreters
	env  map[string]string
}

func newBench(t *testing.T, files map[string]string) *bench {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		operationtest.WriteExecutables(t, dir, map[string]string{filepath.Join(defaultFolder, name): content})
	}
	return &bench{t, dir, os.Getenv("PATH"), map[string]string{"HOME": dir, "CLAUDEOPS_API_TOKENS": "s3cret",
		"GITHUB_TOKEN": "s3cret", "SEEN": "yes"}}
}

func (b *bench) look(program string) (string, error) {
	for _, dir := range filepath.SplitList(b.path) {
		if found, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return found, nil
		}
	}
	return "", exec.ErrNotFound
}

func (b *bench) runner(text string) (*Runner, Settings) {
	s := settings(b.t, b.dir, text)
	return newRunner(s, Machine{Look: b.look, Variable: func(name string) (string, bool) {
		if name == "PATH" {
			return b.path, true
		}
		v, ok := b.env[name]
		return v, ok
	}, Redact: func(text string) string { return strings.ReplaceAll(text, "s3cret", "[redacted]") },
		NewID: rand.Text}), s // it names a control group of the machine, where another run of the tests may be under way
}

// tell is the result of a run, or of one that did not happen.
func tell(result Result, err error) Result {
	var not *NotRun
	if errors.As(err, &not) {
		return Result{Stderr: not.Message, ExitCode: not.ExitCode}
	}
	return result
}

// run runs a tool with arguments in JSON.
func (b *bench) run(ctx context.Context, settings, tool, arguments string) Result {
	b.t.Helper()
	r, s := b.runner(settings)
	found, skipped := discoverAll(s)
	for _, script := range found {
		if script.Name == tool {
			var args map[string]any
			decoder := json.NewDecoder(strings.NewReader(arguments))
			decoder.UseNumber()
			must.Do(b.t, decoder.Decode(&args))
			return tell(r.Run(ctx, script, args, Hooks{}))
		}
	}
	b.t.Fatalf("no %s among %v; %s", tool, names(found), whys(skipped))
	return Result{}
}

const header = "# @param name string required\n# @param count integer optional\n# @param loud switch\n# @param many string[]\n"

// echoes print their arguments, one in a line, in each language.
func echoes() map[string]string {
	return map[string]string{
		"shell.sh": "#!/bin/sh\n" + header + `for a in "$@"; do printf '<%s>\n' "$a"; done`,
		"bashed":   "#!/usr/bin/env bash\n" + header + `printf '<%s>\n' "$@"`,
		"py.py":    "#!/usr/bin/env python3\n" + header + "import sys\nfor a in sys.argv[1:]: print('<' + a + '>')",
		"js.js": "#!/usr/bin/env node\n" + strings.ReplaceAll(header, "#", "//") +
			"for (const a of process.argv.slice(2)) console.log('<' + a + '>')",
	}
}

func TestArgumentsArriveAsTheyAre(t *testing.T) {
	b := newBench(t, echoes())
	for _, tool := range []string{"shell", "bashed", "py", "js"} {
		for arguments, want := range map[string]string{
			`{"name":"a b"}`: "<--name>\n<a b>\n",
			`{"name":"x","count":3,"loud":true,"many":["1","two 2"]}`: "<--name>\n<x>\n<--count>\n<3>\n<--loud>\n<--many>\n<1>\n<--many>\n<two 2>\n",
			`{"name":"","loud":false,"many":[],"count":null}`:         "<--name>\n<>\n",
			`{"name":"-rf","many":["--loud"]}`:                        "<--name=-rf>\n<--many=--loud>\n",
			`{"name":"$(touch pwned); ` + "`touch pwned`" +
				` && > pwned | '\""}`: "<--name>\n<$(touch pwned); `touch pwned` && > pwned | '\">\n",
			`{"name":"line\nbreak ünï *"}`: "<--name>\n<line\nbreak ünï *>\n",
		} {
			if got := b.run(t.Context(), "", tool, arguments); got != (Result{Stdout: want}) {
				t.Errorf("%s %s: %+v", tool, arguments, got)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(b.dir, "pwned")); err == nil {
		t.Error("an argument was run")
	}
}

func TestArgumentsThatAreNoGoodRunNothing(t *testing.T) {
	b := newBench(t, map[string]string{"a.sh": "#!/bin/sh\n" + header + "touch ran", "plain.sh": "#!/bin/sh\ntouch ran"})
	for arguments, want := range map[string]string{
		`{}`: `"name" is missing`, `{"name":1}`: `"name" must be a text`,
		`{"name":"x","other":1}`:   `a takes no argument "other"; it takes name, count, loud, many`,
		`{"name":"x","count":1.5}`: "whole number", `{"name":"x","count":"1"}`: "must be a number",
		`{"name":"x","loud":"yes"}`: "true or false", `{"name":"x","many":"y"}`: "must be a list",
		`{"name":"x","many":[1]}`: "item 0: must be a text", `{"name":"x\u0000"}`: "holds a NUL",
		`{"name":"x","count":1.5,"loud":1}`: `"count" must be a whole number; "loud" must be`,
	} {
		if got := b.run(t.Context(), "", "a", arguments); got.ExitCode != exitInvalid || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %+v", arguments, got)
		}
	}
	if got := b.run(t.Context(), "", "plain", `{"words":["x"]}`); !strings.Contains(got.Stderr, "it takes args") {
		t.Errorf("plain words: %+v", got)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "ran")); err == nil {
		t.Error("it ran all the same")
	}
	if got := b.run(t.Context(), "", "plain", `{"args":["x", "-y"]}`); got != (Result{}) {
		t.Errorf("plain words: %+v", got)
	}
}

func TestWhatAScriptDoesIsTold(t *testing.T) {
	b := newBench(t, map[string]string{
		"fails.sh":  "#!/bin/sh\n# @noparams\necho out; echo err >&2; exit 7\n",
		"killed.sh": "#!/bin/sh\n# @noparams\nkill -9 $$\n",
		"stdin.sh":  "#!/bin/sh\n# @noparams\ncat; echo end\n",
		"closed.sh": "#!/bin/sh\n# @noparams\nexec >&- 2>&-; exit 3\n",
		"where.sh": "#!/bin/sh\n# @noparams\npwd; env | sort | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^PATH= -e " +
			"^CLAUDEOPS_SCRIPT_RUN=\n",
		"latin.sh":  "#!/bin/sh\n# @noparams\nprintf 'caf\\351 au lait du matin'\n",
		"binary.sh": "#!/bin/sh\n# @noparams\nprintf 'a\\0b\\377'\n",
		"syntax.sh": "#!/bin/sh\n# @noparams\nif\n",
	})
	for tool, want := range map[string]Result{
		"fails": {Stdout: "out\n", Stderr: "err\n", ExitCode: 7}, "killed": {ExitCode: -1}, "stdin": {Stdout: "end\n"},
		"closed": {ExitCode: 3},
		"where":  {Stdout: b.dir + "\nHOME=" + b.dir + "\nSEEN=yes\n"}, "latin": {Stdout: "caf\ufffd au lait du matin"},
		"binary": {Stdout: "[binary output, in base64]\nYQBi/w=="},
	} {
		if got := b.run(t.Context(), "env: [SEEN]", tool, "{}"); !cmp.Equal(got, want) {
			t.Errorf("%s: %s", tool, cmp.Diff(want, got))
		}
	}
	if got := b.run(t.Context(), "", "syntax", "{}"); got.ExitCode == 0 || got.Stderr == "" {
		t.Errorf("a script that is broken: %+v", got)
	}
}

func TestOutputIsCutBetweenCharacters(t *testing.T) {
	b := newBench(t, map[string]string{
		"much.sh":  "#!/bin/sh\n# @noparams\nyes äöü | head -c 100000000; echo done >&2\n",
		"exact.sh": "#!/bin/sh\n# @noparams\nprintf 1234567890\n",
	})
	got := b.run(t.Context(), "output_cap_bytes: 10", "much", "{}")
	if got != (Result{Stdout: "äöü\nä" + truncatedNotice, Stderr: "done\n", Truncated: true}) {
		t.Errorf("%+v", got)
	}
	if got := b.run(t.Context(), "output_cap_bytes: 10", "exact", "{}"); got != (Result{Stdout: "1234567890"}) {
		t.Errorf("%+v", got)
	}
	got = b.run(t.Context(), "scripts: {much: {output_cap_bytes: 8}}", "much", "{}")
	if got.Stdout != "äöü\n"+truncatedNotice {
		t.Errorf("cut within a character: %+v", got)
	}
}

// running are the processes whose command line holds a text.
func running(text string) (out []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), text) {
			out = append(out, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return out
}

func TestTheTimeLimitEndsAllThatWasStarted(t *testing.T) {
	nap := fmt.Sprintf("9%07d", os.Getpid()) // seconds that no other test sleeps
	b := newBench(t, map[string]string{
		"slow.sh":   "#!/bin/sh\n# @noparams\necho before; trap '' TERM; sleep " + nap + " & sleep " + nap + "; echo after\n",
		"daemon.sh": "#!/bin/sh\n# @noparams\nsetsid sh -c 'sleep " + nap + "' >/dev/null 2>&1 & echo started\n",
		"holds.sh":  "#!/bin/sh\n# @noparams\nsetsid sleep " + nap + " & echo started\n",
	})
	for limit := 1; ; limit *= 4 { // on a busy machine it may take a while until a script has begun
		got := b.run(t.Context(), fmt.Sprintf("timeout_seconds: %d", limit), "slow", "{}")
		if got.Stdout == "" && limit < 60 {
			continue
		}
		if !got.TimedOut || got.ExitCode != -1 || got.Stdout != "before\n" ||
			!strings.Contains(got.Stderr, fmt.Sprintf("Timed out after %s", time.Duration(limit)*time.Second)) {
			t.Errorf("slow: %+v", got)
		}
		break
	}
	for _, tool := range []string{"daemon", "holds"} {
		if got := b.run(t.Context(), "", tool, "{}"); got != (Result{Stdout: "started\n"}) {
			t.Errorf("%s: %+v", tool, got)
		}
	}
	if left := running(nap); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(running(nap)) == 0 && t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	if got := b.run(ctx, "", "slow", "{}"); got.TimedOut || got.ExitCode != -1 ||
		!strings.Contains(got.Stderr, "The call was cancelled") {
		t.Errorf("cancelled: %+v", got)
	}
	if left := running(nap); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

// The number of processes is bounded by the test itself: one that multiplied would bring the machine down where the
// limit fails.
func TestAScriptWithTooManyProcessesIsEnded(t *testing.T) {
	nap := fmt.Sprintf("8%07d", os.Getpid()) // seconds that no other test sleeps
	b := newBench(t, map[string]string{
		"many.sh": "#!/bin/sh\n# @noparams\necho started\ni=0\nwhile [ $i -lt 200 ]; do sleep " + nap +
			" & i=$((i+1)); done\nwait\n",
	})
	got := b.run(t.Context(), "max_processes: 30", "many", "{}")
	if got.ExitCode != -1 || got.TimedOut || !strings.Contains(got.Stderr, "more than 30 processes") {
		t.Errorf("%.300s %d", got.Stderr, got.ExitCode)
	}
	if left := running(nap); len(left) > 0 {
		t.Errorf("left running: %d", len(left))
	}
}

func TestSoManyRunAtOnce(t *testing.T) {
	b := newBench(t, map[string]string{"wait.sh": "#!/bin/sh\n# @noparams\n: > began\ncat fifo\n"})
	fifo := filepath.Join(b.dir, "fifo")
	must.Do(t, syscall.Mkfifo(fifo, 0o600))
	r, s := b.runner("at_once: 1")
	found, _ := discoverAll(s)
	first := make(chan Result, 1)
	go func() { first <- tell(r.Run(t.Context(), found[0], nil, Hooks{})) }()
	end, err := os.OpenFile(fifo, os.O_WRONLY, 0) // waits for the first one's reader
	must.Do(t, err)
	waited, cancel := make(chan struct{}), context.CancelFunc(nil)
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan Result, 1)
	go func() { second <- tell(r.Run(ctx, found[0], nil, Hooks{Waiting: func() { close(waited) }})) }()
	<-waited
	cancel()
	if got := <-second; got.ExitCode != -1 || !strings.Contains(got.Stderr, "nothing was run") {
		t.Errorf("second: %+v", got)
	}
	if _, err := end.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	_ = end.Close()
	if got := <-first; got != (Result{Stdout: "go\n"}) {
		t.Errorf("first: %+v", got)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	b := newBench(t, map[string]string{"Git-Search.ps1": "param($a)", "gone.sh": "#!/bin/sh\n# @noparams\n",
		"page.js": "#!/usr/bin/env node\n// @noparams\n"})
	b.path = t.TempDir()
	for tool, want := range map[string]string{"git_search": "No pwsh and no powershell was found",
		"page": "No node was found"} {
		if got := b.run(t.Context(), "", tool, "{}"); got.ExitCode != exitNotFound || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %+v", tool, got)
		}
	}
	b.path = os.Getenv("PATH")
	r, s := b.runner("")
	found, _ := discoverAll(s)
	must.Do(t, os.RemoveAll(filepath.Join(b.dir, defaultFolder)))
	if got := tell(r.Run(t.Context(), found[1], nil, Hooks{})); found[1].Name != "gone" && found[0].Name != "gone" ||
		got.ExitCode != exitNotFound && got.ExitCode == 0 {
		t.Errorf("%+v", got)
	}
}

// standIn is a PowerShell that runs nothing: it reads stdin as run.ps1 does and shows what the script would be called
// with. It refuses a wrapper that is not run.ps1, text for text, and what ConvertFrom-Json of PowerShell would not give
// back as it is.
const standIn = `#!/usr/bin/env python3
import json, re, sys
def value(v):
    if isinstance(v, str):
        assert v.startswith('='), v
        assert not re.match(r'\d{4}-\d\d-\d\d|/Date\(', v), v
        return v[1:]
    if isinstance(v, dict):
        assert list(v) == ['table'], v
        return {value(name): value(inner) for name, inner in v['table']}
    if isinstance(v, list):
        return [value(item) for item in v]
    return v
call = json.load(sys.stdin)
assert sorted(call) == ['named', 'path', 'plain'], call
print(json.dumps({'words': sys.argv[1:-1], 'wrapper': open(sys.argv[-1]).read(), 'path': call['path'], 'named': value(call['named']), 'plain': value(call['plain'])}))
sys.exit(5)
`

type powerShellCalled struct {
	Words   []string
	Wrapper string
	Path    string
	Named   map[string]any
	Plain   []string
}

func TestPowerShellGetsItsArgumentsAsTheyAre(t *testing.T) {
	b := newBench(t, map[string]string{
		"Git-Search.ps1": "param([Parameter(Mandatory)][ValidateSet('show','log')][string]$Action, [int]$Lines, " +
			"[switch]$All = $true, [bool]$On, [string[]]$Paths, [hashtable]$Map)",
		"Broken.ps1": "param(",
	})
	b.path = operationtest.WriteExecutables(t, t.TempDir(), map[string]string{"pwsh": standIn}) +
		string(filepath.ListSeparator) + b.path
	type object = map[string]any
	type list = []any
	for name, c := range map[string]struct {
		tool, arguments string
		named           object
		plain           []string
	}{
		"nothing more than it needs": {"git_search", `{"Action":"show"}`, object{"Action": "show"}, []string{}},
		"names in any letter case": {"git_search", `{"action":"LOG","LINES":-3}`, object{"Action": "LOG", "Lines": -3.0},
			[]string{}},
		"a switch that is off": {"git_search", `{"Action":"log","All":false,"On":false}`,
			object{"Action": "log", "All": false, "On": false}, []string{}},
		"a switch that is on": {"git_search", `{"Action":"log","All":true,"On":true}`,
			object{"Action": "log", "All": true, "On": true}, []string{}},
		"lists of none, one and more": {"git_search", `{"Action":"log","Paths":[]}`,
			object{"Action": "log", "Paths": list{}}, []string{}},
		"hyphens, spaces and nothing": {"git_search", `{"Action":"log","Paths":["-Force","b c","","--","-x:1"]}`,
			object{"Action": "log", "Paths": list{"-Force", "b c", "", "--", "-x:1"}}, []string{}},
		"texts that look like times": {"git_search",
			`{"Action":"log","Paths":["2026-01-02T03:04:05Z","2026-01-02","/Date(1)/"]}`,
			object{"Action": "log", "Paths": list{"2026-01-02T03:04:05Z", "2026-01-02", "/Date(1)/"}}, []string{}},
		"PowerShell in a text": {"git_search",
			`{"Action":"log","Paths":["$(Remove-Item x); & 'y' | z # \"","$env:HOME","@{a=1}","=x"]}`,
			object{"Action": "log", "Paths": list{`$(Remove-Item x); & 'y' | z # "`, "$env:HOME", "@{a=1}", "=x"}}, []string{}},
		"other alphabets and new lines": {"git_search", `{"Action":"log","Paths":["ünï 漢 😀\r\n\tx"]}`,
			object{"Action": "log", "Paths": list{"ünï 漢 😀\r\n\tx"}}, []string{}},
		"tables within tables": {"git_search",
			`{"Action":"log","Map":{"a":[1,{"b":null,"":true}],"A":"=","table":[["x"]]}}`,
			object{"Action": "log", "Map": object{"a": list{1.0, object{"b": nil, "": true}}, "A": "=",
				"table": list{list{"x"}}}}, []string{}},
		"a block that cannot be read": {"broken",
			`{"args":["-Name","x y","-Force","-On:$false","-N:-1","-5","--","-Last"]}`,
			object{"Name": "x y", "Force": true, "On": false, "N": "-1", "Last": true}, []string{"-5", "--"}},
		"values that follow a switch": {"broken", `{"args":["a","-Count","-3","b"]}`, object{"Count": "-3"},
			[]string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := b.run(t.Context(), "", c.tool, c.arguments)
			var called powerShellCalled
			if err := json.Unmarshal([]byte(got.Stdout), &called); err != nil || got.ExitCode != 5 {
				t.Fatalf("%+v: %v", got, err)
			}
			file := map[string]string{"git_search": "Git-Search.ps1", "broken": "Broken.ps1"}[c.tool]
			want := powerShellCalled{
				Words:   []string{"-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File"},
				Wrapper: string(powerShellWrapper),
				Path:    filepath.Join(b.dir, defaultFolder, file), Named: c.named, Plain: c.plain,
			}
			operationtest.Same(t, "the call", want, called)
		})
	}
	if got := b.run(t.Context(), "", "git_search", `{"Action":"blame"}`); got.ExitCode != exitInvalid ||
		!strings.Contains(got.Stderr, "must be one of show, log") {
		t.Errorf("a value outside of the set: %+v", got)
	}
}

func TestABoundaryThatCannotBeKeptRunsNothing(t *testing.T) {
	b := newBench(t, map[string]string{"a.sh": "#!/bin/sh\n# @noparams\ntouch ran\n"})
	r, s := b.runner("boundary: landlock")
	r.machine.Confine = func(c processtree.Command, o processtree.Options, _ []string) (processtree.Command,
		processtree.Options, error) {
		return c, o, errors.New("no Landlock here")
	}
	found, _ := discoverAll(s)
	if got := tell(r.Run(t.Context(), found[0], nil, Hooks{})); got.ExitCode != exitNotRunable ||
		!strings.Contains(got.Stderr, "no Landlock here") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "ran")); err == nil {
		t.Error("it ran all the same")
	}
	var confined []string
	r.machine.Confine = func(c processtree.Command, o processtree.Options, _ []string) (processtree.Command,
		processtree.Options, error) {
		confined = append(confined, c.Args...)
		return c, o, nil
	}
	if got := tell(r.Run(t.Context(), found[0], nil, Hooks{})); got != (Result{}) ||
		!slices.Contains(confined, found[0].Path) {
		t.Errorf("%+v, confined %v", got, confined)
	}
	r, _ = b.runner("boundary: none")
	r.machine.Confine = nil
	if got := tell(r.Run(t.Context(), found[0], nil, Hooks{})); got != (Result{}) {
		t.Errorf("%+v", got)
	}
}

// Where the settings say nothing, a system that cannot keep a boundary runs scripts without; another failure runs
// nothing.
func TestWithoutSettingsTheBoundaryIsWhatTheSystemCanKeep(t *testing.T) {
	files := map[string]string{"a.sh": "#!/bin/sh\n# @noparams\necho ran in $TMPDIR $XDG_CACHE_HOME\n"}
	for name, c := range map[string]struct {
		settings string
		err      error
		code     int
	}{
		"none there":             {"", ErrNoBoundary, 0},
		"none there, wrapped":    {"", fmt.Errorf("%w: x", ErrNoBoundary), 0},
		"none there, insisted":   {"boundary: landlock", ErrNoBoundary, exitNotRunable},
		"one that fails":         {"", errors.New("the program is gone"), exitNotRunable},
		"none, and none wanted":  {"boundary: none", errors.New("it was asked"), 0},
		"one there":              {"", nil, 0},
		"one there and insisted": {"boundary: landlock", nil, 0},
	} {
		b := newBench(t, files)
		r, s := b.runner(c.settings)
		var own string
		r.machine.Confine = func(c2 processtree.Command, o processtree.Options, write []string) (processtree.Command,
			processtree.Options, error) {
			if len(write) < 2 || write[0] != b.dir {
				t.Errorf("%s: may write %v", name, write)
			}
			own = write[1]
			return c2, o, c.err
		}
		found, _ := discoverAll(s)
		got := tell(r.Run(t.Context(), found[0], nil, Hooks{}))
		want := "ran in\n"
		if c.err == nil {
			want = "ran in " + own + " " + own + "/cache\n"
		}
		if got.ExitCode != c.code || c.code == 0 && got.Stdout != want {
			t.Errorf("%s: %+v, not %q", name, got, want)
		}
		if _, err := os.Stat(own); own != "" && err == nil {
			t.Errorf("%s: the temporary folder is still there", name)
		}
	}
}

// BenchmarkListing lists 1,000 scripts: the first time each is read, later only what has changed.
func BenchmarkListing(b *testing.B) {
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("%s/check-%d.sh", defaultFolder,
			i)] = "#!/bin/sh\n# Check something.\n# @param mount string required Where\n# @param limit integer optional Percent\n"
	}
	s := DefaultSettings(operationtest.WriteExecutables(b, b.TempDir(), files))
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			newCatalogue(s).discoverScripts()
		}
	})
	known := newCatalogue(s)
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			known.discoverScripts()
		}
	})
}

// BenchmarkRun runs a script that does nothing, with the reaper above it and by itself.
func BenchmarkRun(b *testing.B) {
	dir := operationtest.WriteExecutables(b, b.TempDir(),
		map[string]string{defaultFolder + "/nothing.sh": "#!/bin/sh\n# @noparams\n"})
	s := DefaultSettings(dir)
	found, _ := discoverAll(s)
	r := newRunner(s, Machine{Look: exec.LookPath, Variable: func(string) (string, bool) { return "", false },
		Redact: func(t string) string { return t }, NewID: rand.Text})
	b.Run("tool", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.Run(b.Context(), found[0], nil, Hooks{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("directly", func(b *testing.B) {
		for b.Loop() {
			must.Do(b, exec.CommandContext(b.Context(), "sh", found[0].Path).Run())
		}
	})
}
