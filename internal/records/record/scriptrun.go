package record

import (
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// ScriptRun is one run of a script.
type ScriptRun struct {
	ID        string   // of the request, as the audit has it
	Script    string   // the tool's name
	Path      string   // of the script
	Hash      string   // SHA-256 of the script's text, hexadecimal
	Arguments []string // the names of those that were given, never their values
	By        ScriptCaller
	StartedAt time.Time
	EndsBy    time.Time // when it has ended, whatever happens
	State     ScriptRunState
	Ending    ScriptEnding
}

// ScriptCaller identifies who started a run.
type ScriptCaller struct {
	Actor   Actor
	Tier    gitprovider.Tier
	Session string // the agent's; "" for none
	Policy  string // hash of the policy that let them; see Attempt
}

// ScriptRunState says whether a run goes on.
type ScriptRunState string

// The states of a run.
const (
	ScriptRunning     ScriptRunState = "running"
	ScriptEnded       ScriptRunState = "ended"
	ScriptInterrupted ScriptRunState = "interrupted" // the process that ran it was killed; so was the script
)

// ScriptEnding is the result of a run that has ended.
type ScriptEnding struct {
	ExitCode  int
	Duration  time.Duration
	Stdout    string // the beginning
	Stderr    string // the beginning
	Truncated bool   // there was more than the script's output cap
	TimedOut  bool
}

// MaxScriptOutput is the number of bytes kept of each stream of a run.
const MaxScriptOutput = 64 << 10

// Sizes of a page of runs.
const (
	DefaultScriptRuns = 20
	MaxScriptRuns     = 100
)

// ScriptRunQuery selects runs, newest first.
type ScriptRunQuery struct {
	Script string // "" for all
	Before string // runs with a lower id only; "" for no bound
	Limit  int    // default DefaultScriptRuns, at most MaxScriptRuns
}
