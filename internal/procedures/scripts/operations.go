package scripts

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// operations returns the operations for people on scripts. None is a tool of agents, who have one for each script.
func (s toolDeps) operations() []operation.Operation {
	return []operation.Operation{s.listOperation(), s.showOperation(), s.runsOperation(), s.runOperation(),
		s.startOperation()}
}

// ScriptListRequest asks for all scripts.
type ScriptListRequest struct{}

// ScriptList lists the scripts that can be run.
type ScriptList struct {
	Scripts []ScriptItem    `json:"scripts"`
	Skipped []SkippedScript `json:"skipped" doc:"Files that would be scripts but are not offered"`
	Message string          `json:"message" doc:"Why there is nothing to run; empty if there is something"`
	Broken  bool            `json:"-"` // the operator's settings cannot be used
}

// Incomplete implements operation.Partial: the command ends with an error where the settings cannot be used.
func (l ScriptList) Incomplete() bool { return l.Broken }

// ScriptItem is a script in a list.
type ScriptItem struct {
	Name        string `json:"name" doc:"Of its tool"`
	Path        string `json:"path"`
	Interpreter string `json:"interpreter"`
	Summary     string `json:"summary"`
	Tier        int    `json:"tier" doc:"The lowest that may run it"`
	ReadOnly    bool   `json:"read_only" doc:"The operator says that it changes nothing"`
	Parameters  int    `json:"parameters" doc:"How many it takes"`
}

// SkippedScript is a file that is not offered.
type SkippedScript struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

func itemOf(s Script) ScriptItem {
	return ScriptItem{s.Name, s.Path, string(s.Interpreter), s.Summary(), s.Tier, s.ReadOnly, len(s.Parameters)}
}

// readOperation returns an operation that reads. command is "" if a command of its own, with a name as its argument,
// asks for it.
func readOperation(name, command, summary, path, id string) operation.Operation {
	return operation.Operation{
		Name: name, Summary: summary, Effect: operation.Read,
		Needs: operation.Needs{Tier: gitprovider.TierObserve, Scope: access.Read}, Command: command,
		Route: operation.Route{Method: http.MethodGet, Path: path, ID: id},
	}
}

func (s toolDeps) listOperation() operation.Operation {
	o := readOperation("list_scripts", "scripts list", "List the scripts that can be run", "/scripts", "listScripts")
	return operation.Define(s.kernel, ToolsetName, o, operation.CallSpec[ScriptListRequest]{},
		func(context.Context, operation.Call, ScriptListRequest) (ScriptList, error) {
			listing := s.service().List()
			out := ScriptList{Scripts: []ScriptItem{}, Skipped: []SkippedScript{}, Message: listing.Empty(),
				Broken: listing.problem != ""}
			for _, script := range listing.Scripts {
				out.Scripts = append(out.Scripts, itemOf(script))
			}
			for _, skipped := range listing.Skipped {
				out.Skipped = append(out.Skipped, SkippedScript(skipped))
			}
			return out, nil
		})
}

// ScriptRequest names a script.
type ScriptRequest struct {
	Name string `json:"name" required:"true" path:"name" maxLength:"64" doc:"Of the script's tool"`
}

// ScriptDetail is all that is known of a script.
type ScriptDetail struct {
	ScriptItem
	Hash           string         `json:"hash" doc:"SHA-256 of its text"`
	Details        string         `json:"details"`
	TimeoutSeconds int            `json:"timeout_seconds"`
	OutputCapBytes int            `json:"output_cap_bytes" doc:"Of each of stdout and stderr"`
	InputSchema    map[string]any `json:"input_schema" doc:"JSON Schema of its arguments"`
}

func (s toolDeps) showOperation() operation.Operation {
	o := readOperation("get_script", "", "Read what a script takes, and how it runs", "/scripts/{name}", "getScript")
	return operation.Define(s.kernel, ToolsetName, o, operation.CallSpec[ScriptRequest]{},
		func(_ context.Context, _ operation.Call, in ScriptRequest) (ScriptDetail, error) {
			script, missing := s.service().findScript(in.Name)
			if missing != nil {
				return ScriptDetail{}, kernelError(missing)
			}
			return ScriptDetail{
				ScriptItem: itemOf(script), Hash: script.Hash, Details: script.Details,
				TimeoutSeconds: int(script.Timeout.Seconds()),
				OutputCapBytes: script.OutputCap, InputSchema: script.Schema(),
			}, nil
		})
}

// ScriptRunsRequest selects runs.
type ScriptRunsRequest struct {
	Script string `json:"script" maxLength:"64" doc:"Only those of the script with this name"`
	Before string `json:"before" maxLength:"64" doc:"Only those before the run with this id"`
	Limit  int    `json:"limit" minimum:"1" maximum:"100" doc:"How many; 20 if it is not given"`
}

// ScriptRunList is a page of runs, newest first.
type ScriptRunList struct {
	Runs []ScriptRunItem `json:"runs"`
}

// ScriptRunItem is a run in a list.
type ScriptRunItem struct {
	ID         string   `json:"id" doc:"As the audit has it"`
	Script     string   `json:"script"`
	State      string   `json:"state" enum:"running,ended,interrupted"`
	ExitCode   int      `json:"exit_code"`
	StartedAt  string   `json:"started_at"`
	DurationMS int      `json:"duration_ms"`
	TimedOut   bool     `json:"timed_out"`
	Door       string   `json:"door"`
	Caller     string   `json:"caller" doc:"As the client names itself"`
	Tier       int      `json:"tier"`
	Session    string   `json:"session" doc:"The agent's session; empty for none"`
	Arguments  []string `json:"arguments" doc:"Names of those that were given"`
	Hash       string   `json:"hash" doc:"SHA-256 of the script that ran"`
}

func runItemOf(r record.ScriptRun) ScriptRunItem {
	return ScriptRunItem{
		ID: r.ID, Script: r.Script, State: string(r.State), ExitCode: r.Ending.ExitCode,
		StartedAt:  r.StartedAt.UTC().Format(time.RFC3339),
		DurationMS: int(r.Ending.Duration.Milliseconds()), TimedOut: r.Ending.TimedOut, Door: string(r.By.Actor.Door),
		Caller: r.By.Actor.String(),
		Tier:   int(r.By.Tier), Session: r.By.Session, Arguments: append([]string{}, r.Arguments...), Hash: r.Hash,
	}
}

func (s toolDeps) runsOperation() operation.Operation {
	o := readOperation("list_script_runs", "scripts runs", "List the runs of scripts, newest first", "/script-runs",
		"listScriptRuns")
	return operation.Define(s.kernel, ToolsetName, o, operation.CallSpec[ScriptRunsRequest]{},
		func(ctx context.Context, _ operation.Call, in ScriptRunsRequest) (ScriptRunList, error) {
			runs, err := s.service().Runs(ctx, record.ScriptRunQuery{Script: in.Script, Before: in.Before, Limit: in.Limit})
			out := ScriptRunList{Runs: []ScriptRunItem{}}
			for _, r := range runs {
				out.Runs = append(out.Runs, runItemOf(r))
			}
			return out, asFault(err)
		})
}

// ScriptRunRequest names a run.
type ScriptRunRequest struct {
	ID string `json:"id" required:"true" path:"id" maxLength:"64" doc:"Of the run"`
}

// ScriptRunDetail is a run with what it printed.
type ScriptRunDetail struct {
	ScriptRunItem
	Stdout    string `json:"stdout" doc:"The beginning, 64 KiB at most"`
	Stderr    string `json:"stderr" doc:"The beginning, 64 KiB at most"`
	Truncated bool   `json:"truncated" doc:"There was more than the script's output cap"`
}

func (s toolDeps) runOperation() operation.Operation {
	o := readOperation("get_script_run", "", "Read a run of a script, with what it printed", "/script-runs/{id}", "getScriptRun")
	return operation.Define(s.kernel, ToolsetName, o, operation.CallSpec[ScriptRunRequest]{},
		func(ctx context.Context, _ operation.Call, in ScriptRunRequest) (ScriptRunDetail, error) {
			r, err := s.service().Run(ctx, in.ID)
			return ScriptRunDetail{runItemOf(r), r.Ending.Stdout, r.Ending.Stderr, r.Ending.Truncated}, asFault(err)
		})
}

// asFault keeps the code of an error of the records.
func asFault(err error) error {
	if err == nil {
		return nil
	}
	return &operation.Fault{Code: "1", General: fault.From(err)}
}

// StartScriptRequest starts a script for a person.
type StartScriptRequest struct {
	Script    string         `json:"script" required:"true" maxLength:"64" doc:"Name of the script's tool"`
	Arguments map[string]any `json:"arguments" doc:"Its arguments"`
}

// StartedScript says how the run ended.
type StartedScript struct {
	ID string `json:"id" doc:"Of the run; empty in a dry run"`
	Result
}

// startOperation is for people: the rights of their credential count, not the tier of the server's agent.
func (s toolDeps) startOperation() operation.Operation {
	return operation.Define(s.kernel, "", operation.Operation{
		Name: "start_script", Summary: "Run a script, as a person", Effect: operation.Exec,
		Needs: operation.Needs{For: operation.People, Scope: access.Operate, Dry: operation.DryTried, OwnGates: true},
		Route: operation.Route{
			Method: http.MethodPost, Path: "/script-runs", ID: "startScript", MaxBody: operation.MaxArguments,
			TooLarge: "give less at once",
			Notes:    "For people: the token's tier counts, not that of the server's agent. The answer comes when the script has ended.",
		},
	}, operation.CallSpec[StartScriptRequest]{Decode: operation.RawArguments[StartScriptRequest],
		Timeout: operation.Unbounded}, func(
		ctx context.Context, call operation.Call, _ StartScriptRequest,
	) (StartedScript, error) {
		call.Records(func(context.Context, *fault.Error) error { return nil }) // the script's own call has the row
		in, violations := decodeStart(call.Arguments)
		if len(violations) > 0 {
			return StartedScript{}, fault.Refusal(violations)
		}
		call.Arguments = in.arguments
		return s.startScript(ctx, call, in.script, nil)
	})
}

type startOrder struct {
	script    string
	arguments json.RawMessage
}

func decodeStart(text []byte) (out startOrder, violations []fault.Violation) {
	fields, violations := decodeArguments(text)
	for name := range fields {
		if name != "script" && name != "arguments" {
			violations = append(violations, fault.Violation{Code: fault.InvalidArgument, Path: name,
				Message: "`" + name + "` is not a field; there are script and arguments"})
		}
	}
	out.script, _ = fields["script"].(string)
	if out.script == "" || len(out.script) > maxNameLength {
		violations = append(violations, fault.Violation{Code: fault.InvalidArgument, Path: "script",
			Message: "`script` must be the name of a script"})
	}
	given, isObject := fields["arguments"].(map[string]any)
	if fields["arguments"] != nil && !isObject {
		violations = append(violations, fault.Violation{Code: fault.InvalidArgument, Path: "arguments",
			Message: "`arguments` must be an object"})
	}
	if given == nil {
		given = map[string]any{}
	}
	arguments, err := json.Marshal(given)
	if err != nil { // they came as JSON
		arguments = []byte("{}")
	}
	out.arguments = arguments
	return out, violations
}

// startScript runs a script for the person who calls. begun, if not nil, is called with the run's id when it starts.
func (s toolDeps) startScript(ctx context.Context, call operation.Call, name string,
	begun func(id string)) (StartedScript, error) {
	out := StartedScript{}
	script, missing := s.service().findScript(name)
	if missing != nil {
		return out, kernelError(missing)
	}
	call.Person = true
	answer, err := s.tool(script, s.service().catalogue.schema(script), func(id string) {
		out.ID = id
		if begun != nil {
			begun(id)
		}
	}).Handle(ctx, call)
	out.Result, _ = answer.(Result)
	return out, err
}

// examples returns example calls, by command.
func examples() map[string]string {
	return map[string]string{
		"scripts list": "claudeops scripts list",
		"scripts runs": "claudeops scripts runs --script check_disk --limit 5",
	}
}
