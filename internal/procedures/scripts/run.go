package scripts

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

//go:embed run.ps1
var powerShellWrapper []byte

// Exit codes of a run that did not happen, as shells have them.
const (
	exitInvalid    = 2   // the arguments are invalid
	exitNotRunable = 126 // the script may not be run, or cannot be started
	exitNotFound   = 127 // script or interpreter is missing
	exitUnknown    = -1  // ended by a signal, or at the time limit
)

// grace is the time from SIGTERM to SIGKILL.
const grace = 2 * time.Second

// Result is the answer of a run, in the words of the published contract.
type Result struct {
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	ExitCode  int    `json:"exitCode"`
	Truncated bool   `json:"truncated"`
	TimedOut  bool   `json:"timedOut"`
}

// NotRun says why a script was not run.
type NotRun struct {
	ExitCode int
	Code     fault.Code
	Message  string
}

func (n *NotRun) Error() string { return n.Message }

// Machine gives a Runner access to the machine.
type Machine struct {
	Look     func(program string) (string, error) // the path of a program, as exec.LookPath finds it
	Variable func(name string) (string, bool)     // of the environment, as scripts may see it
	Redact   func(text string) string             // takes our tokens out of what scripts print
	NewID    func() string
	// Confine is the command and its options, out of reach of what is Claude Ops' own, and with the paths in write alone
	// to change. The error is ErrNoBoundary where the system cannot keep that. nil stands for such a system.
	Confine func(c processtree.Command, o processtree.Options, write []string) (processtree.Command, processtree.Options,
		error)
}

// ErrNoBoundary says that the system cannot keep a script within a boundary. Test for it with errors.Is.
var ErrNoBoundary = errors.New("this system cannot keep it: it needs Landlock (Linux 5.13 or newer)")

// Runner runs scripts, a limited number at once. Make it with newRunner. It is safe for concurrent use.
type Runner struct {
	settings Settings
	machine  Machine
	slots    chan struct{}
}

// newRunner makes a runner.
func newRunner(s Settings, m Machine) *Runner {
	return &Runner{settings: s, machine: m, slots: make(chan struct{}, s.AtOnce)}
}

// Hooks are called at a run's phases; each may be nil.
type Hooks struct {
	Waiting func()       // others have to end first
	Begin   func() error // it is about to start; an error keeps it from it
}

// Plan describes a run before it starts.
type Plan struct {
	Program string
	Words   []string // of its command line, the program aside
	Call    []byte   // that it reads on stdin; nil for nothing
}

// Plan says what a run of the script would be, or why there is none.
func (r *Runner) Plan(s Script, arguments map[string]any) (Plan, *NotRun) {
	if problems := s.Check(arguments); len(problems) > 0 {
		return Plan{}, &NotRun{exitInvalid, fault.InvalidArgument, "The arguments are not valid, so nothing was run: " +
			strings.Join(problems, "; ")}
	}
	program, problem := r.interpreter(s.Interpreter)
	if problem != "" {
		return Plan{}, &NotRun{exitNotFound, fault.Misconfigured, problem}
	}
	if s.Interpreter != PowerShell {
		return Plan{Program: program, Words: append([]string{s.Path}, s.commandLine(arguments)...)}, nil
	}
	call, err := s.powerShellCall(arguments)
	if err != nil { // arguments that came as JSON become JSON again
		return Plan{}, &NotRun{exitInvalid, fault.InvalidArgument, err.Error()}
	}
	return Plan{Program: program, Words: []string{"-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File"},
		Call: call}, nil
}

// Run runs a script and waits for its end. The result describes everything; no process of the script is left. The error
// is a *NotRun, or that of Hooks.Begin.
func (r *Runner) Run(ctx context.Context, s Script, arguments map[string]any, hooks Hooks) (Result, error) {
	plan, refused := r.Plan(s, arguments)
	if refused != nil {
		return Result{}, refused
	}
	if _, err := files.Stat(s.Path); err != nil {
		return Result{}, gone(s.Path)
	}
	if !r.acquireSlot(ctx, hooks.Waiting) {
		return Result{}, &NotRun{exitUnknown, fault.Timeout,
			"The call was cancelled while other scripts were running; nothing was run."}
	}
	defer func() { <-r.slots }()
	if hooks.Begin != nil {
		if err := hooks.Begin(); err != nil {
			return Result{}, err
		}
	}
	result, err := r.runPlan(ctx, s, plan)
	if err != nil {
		return Result{}, &NotRun{exitNotRunable, fault.Misconfigured, "The script could not be started: " + err.Error()}
	}
	return result, nil
}

func gone(path string) *NotRun {
	return &NotRun{exitNotFound, fault.NotFound, "The script " + path + " does not exist any more; list the tools again."}
}

// acquireSlot waits for its turn; false if the call was cancelled before.
func (r *Runner) acquireSlot(ctx context.Context, waiting func()) bool {
	select {
	case r.slots <- struct{}{}:
		return true
	default:
	}
	if waiting != nil {
		waiting()
	}
	select {
	case r.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// interpreter returns the program for a kind of script.
func (r *Runner) interpreter(i Interpreter) (program, problem string) {
	candidates := []string{string(i)}
	switch i {
	case PowerShell:
		candidates = []string{"pwsh", "powershell"}
	case Python:
		candidates = []string{"python3", "python"}
	}
	for _, name := range candidates {
		if found, err := r.machine.Look(name); err == nil {
			if abs, err := filepath.Abs(found); err == nil {
				return abs, ""
			}
		}
	}
	return "", fmt.Sprintf("No %s was found on this machine; install it, or put it into PATH.",
		strings.Join(candidates, " and no "))
}

func (r *Runner) runPlan(ctx context.Context, s Script, plan Plan) (Result, error) {
	own, err := files.MakeTemporary("", "claudeops-script-")
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = own.Remove() }()
	command := processtree.Command{Path: plan.Program, Args: append([]string{filepath.Base(plan.Program)}, plan.Words...),
		Dir: r.settings.WorkingDir}
	if plan.Call != nil {
		wrapper, err := own.Write("run.ps1", powerShellWrapper)
		if err != nil {
			return Result{}, err
		}
		command.Args = append(command.Args, wrapper)
		command.Stdin = bytes.NewReader(plan.Call)
	}
	id := r.machine.NewID()
	mark := "CLAUDEOPS_SCRIPT_RUN=" + id
	command.Env = r.scriptEnv(mark)
	options := processtree.Options{Grace: grace, Mark: mark, MostProcesses: r.settings.Processes}
	if command, options, err = r.confined(command, options, own.Path); err != nil {
		return Result{}, err
	}
	group, err := processtree.MakeGroup("claudeops-script-" + id)
	if err == nil { // most users can make none; the reaper does without
		options.Group = group
	}
	return r.runTree(ctx, command, options, s.Limits)
}

// confined returns a command within the boundary of the settings. own is the temporary folder of the run.
func (r *Runner) confined(c processtree.Command, o processtree.Options, own string) (processtree.Command,
	processtree.Options, error) {
	if r.settings.Boundary == BoundaryNone {
		return c, o, nil
	}
	err := ErrNoBoundary
	within, options := c, o
	if r.machine.Confine != nil {
		within.Env = withTemporary(c.Env, own)
		within, options, err = r.machine.Confine(within, o,
			slices.Concat([]string{r.settings.WorkingDir, own}, r.settings.Write))
	}
	switch {
	case err == nil:
		return within, options, nil
	case errors.Is(err, ErrNoBoundary) && r.settings.Boundary == BoundaryAuto:
		return c, o, nil
	}
	return c, o, fmt.Errorf("the boundary of the settings: %w", err)
}

// withTemporary returns an environment whose temporary folder is dir, and whose caches lie there unless it says where:
// those of the home cannot be changed.
func withTemporary(env []string, dir string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == "TMPDIR" || name == "TEMP"
	})
	if !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "XDG_CACHE_HOME=") }) {
		out = append(out, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
	}
	return append(out, "TMPDIR="+dir)
}

// scriptEnv returns the variables that scripts see: the basics, and those that the operator names. Our own variables
// are never among them.
func (r *Runner) scriptEnv(mark string) []string {
	env := []string{mark}
	for _, name := range append([]string{"PATH", "HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "USER", "LANG",
		"LC_ALL", "TMPDIR", "TZ", "SYSTEMROOT", "TEMP"}, r.settings.Env...) {
		if v, ok := r.machine.Variable(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// runTree runs a command, and ends all that it started.
func (r *Runner) runTree(ctx context.Context, c processtree.Command, o processtree.Options, limits Limits) (Result,
	error) {
	ran, err := processtree.Run(ctx, processtree.Spec{Command: c, Options: o, Time: limits.Timeout,
		Output: limits.OutputCap + slack})
	if err != nil {
		return Result{}, err
	}
	out, errs := printed{ran.Stdout, limits.OutputCap}, printed{ran.Stderr, limits.OutputCap}
	result := Result{
		Stdout: out.redacted(r.machine.Redact), Stderr: errs.redacted(r.machine.Redact), ExitCode: ran.Exit.Code,
		TimedOut: ran.TimedOut, Truncated: out.over() || errs.over(),
	}
	why := ""
	switch {
	case ran.TooMany:
		why = fmt.Sprintf("It had more than %d processes at the same time (max_processes)", o.MostProcesses)
	case ran.TimedOut:
		why = fmt.Sprintf("Timed out after %s", limits.Timeout)
	case ran.Canceled:
		why = "The call was cancelled"
	}
	if why != "" {
		result.ExitCode = exitUnknown
		result.Stderr = strings.TrimPrefix(result.Stderr+"\n"+why+"; what the script had started was ended.", "\n")
	}
	if len(ran.Remaining) > 0 {
		result.Stderr = strings.TrimPrefix(fmt.Sprintf("%s\nThe processes %v could not be ended.", result.Stderr,
			ran.Remaining), "\n")
	}
	return result, nil
}

// powerShellCall is the input of run.ps1. Named and Plain hold values as powerShellValue writes them.
type powerShellCall struct {
	Path  string `json:"path"`
	Named any    `json:"named"`
	Plain any    `json:"plain"`
}

// powerShellCall returns the call of a script of PowerShell, in JSON.
func (s Script) powerShellCall(arguments map[string]any) ([]byte, error) {
	named, plain := map[string]any{}, []any{}
	if s.Note != "" {
		named, plain = bind(textsOf(arguments["args"]))
	}
	for _, p := range s.Parameters {
		if v, ok := s.given(arguments, p.Name); ok {
			named[p.Name] = v
		}
	}
	return json.Marshal(powerShellCall{Path: s.Path, Named: powerShellValue(named), Plain: powerShellValue(plain)})
}

// powerShellValue returns a value that PowerShell's ConvertFrom-Json gives back as it is. A text that looks like a time
// would become one, and an object whose names differ in letter case alone would be an error: so each text begins with
// "=", and an object is a list of pairs.
func powerShellValue(v any) any {
	switch v := v.(type) {
	case string:
		return "=" + v
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			out = append(out, powerShellValue(item))
		}
		return out
	case map[string]any:
		pairs := make([]any, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			pairs = append(pairs, []any{"=" + name, powerShellValue(v[name])})
		}
		return map[string]any{"table": pairs}
	}
	return v
}

// bind tells which plain words are names of parameters and which are values, since a list that run.ps1 hands on holds
// values alone: -Name takes the word behind it, unless that is a name too; -Name:value takes its own.
func bind(words []string) (named map[string]any, plain []any) {
	named, plain = map[string]any{}, []any{}
	for at := 0; at < len(words); at++ {
		name, own, joined := parameterName(words[at])
		switch {
		case name == "":
			plain = append(plain, words[at])
		case joined:
			named[name] = switchOr(own)
		case at+1 < len(words) && !isParameterName(words[at+1]):
			at++
			named[name] = words[at]
		default:
			named[name] = true
		}
	}
	return named, plain
}

func isParameterName(word string) bool {
	name, _, _ := parameterName(word)
	return name != ""
}

// parameterName returns the name in -Name or -Name:value; "" if the word is a value.
func parameterName(word string) (name, value string, joined bool) {
	rest, dashed := strings.CutPrefix(word, "-")
	name, value, joined = strings.Cut(rest, ":")
	first, _ := utf8.DecodeRuneInString(name)
	if !dashed || first != '_' && !unicode.IsLetter(first) || strings.ContainsFunc(name, unicode.IsSpace) {
		return "", "", false
	}
	return name, value, joined
}

// switchOr returns a text, or what $true and $false stand for.
func switchOr(text string) any {
	switch strings.ToLower(text) {
	case "$true":
		return true
	case "$false":
		return false
	}
	return text
}

// Notices at the end of what a script printed.
const (
	truncatedNotice = "\n[truncated]"
	binaryNotice    = "[binary output, in base64]\n"
)

// slack is the number of bytes kept beyond the cap until our tokens have been removed, so that none is cut in two and
// half of it shown.
const slack = 8 << 10

// printed is a script's output on a stream, and the limit for showing it.
type printed struct {
	processtree.Output
	most int
}

// over reports whether there is more than is shown.
func (c printed) over() bool { return c.Size > c.most }

// redacted returns the kept output, without our tokens: cut between characters, with a notice if something is missing.
// Output that is not text is given in base64.
func (c printed) redacted(redact func(string) string) string {
	kept := []byte(redact(string(c.Text)))
	if c.over() {
		kept = wholeCharacters(kept[:min(len(kept), c.most)])
	}
	text := string(kept)
	switch {
	case utf8.Valid(kept) && !strings.ContainsRune(text, 0):
	case mostlyText(kept):
		text = strings.ToValidUTF8(text, "\ufffd")
	default:
		text = binaryNotice + base64.StdEncoding.EncodeToString(kept[:min(len(kept), c.most*3/4)])
	}
	if c.over() {
		text += truncatedNotice
	}
	return text
}

// wholeCharacters cuts a character that is not complete off the end.
func wholeCharacters(text []byte) []byte {
	for back := 1; back <= utf8.UTFMax && back <= len(text); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return text[:at]
			}
			break
		}
	}
	return text
}

// mostlyText reports whether bytes are text with a few that are not UTF-8: no NUL, and at most one in ten.
func mostlyText(text []byte) bool {
	bad := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == 0:
			return false
		case r == utf8.RuneError && size == 1:
			bad++
		}
		i += size
	}
	return bad*10 <= len(text)
}
