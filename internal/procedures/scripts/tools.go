package scripts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// ToolsetName is the toolset's name in CLAUDEOPS_TOOLSETS.
const ToolsetName = "scripts"

// ServerName is the contract's name of a server that has this toolset alone.
const ServerName = "powershell"

// noScripts is the tool that stands in the list where there is nothing to run.
const noScripts = "no_scripts_found"

// Codes of this package's failures.
const (
	notFound      = fault.NotFound
	notConfigured = fault.Misconfigured
	notSeen       = fault.Timeout
)

// toolDeps holds the dependencies of the tools.
type toolDeps struct {
	kernel  func() *operation.Kernel
	service func() *Service
}

// Toolset returns the scripts that are found, each a tool. kernel and service are called when tools are listed, and for
// each call.
func Toolset(kernel func() *operation.Kernel, service func() *Service) operation.Toolset {
	s := toolDeps{kernel, service}
	return operation.Toolset{
		Name: ToolsetName, Form: operationForm(), Operations: operation.WithExamples(s.operations(), examples()),
		Instructions: "The operator's scripts are tools of their own, each with its arguments: call the tool that fits " +
			"rather than a shell command. " +
			"The answer has stdout, stderr and exitCode; an exitCode other than 0 is what the script found, not a failure of the tool.",
		Found: s.found,
		Reject: func(ctx context.Context, call operation.Call, name string, why *fault.Error) {
			kernel().Reject(ctx, call, name, why)
		},
		Listed: func(operation.Operation) bool { return true },
	}
}

// operationForm returns the form of the contract: a script that did not run answers like one that failed.
func operationForm() *operation.Form {
	return &operation.Form{
		FailureType: reflect.TypeFor[Result](), Answers: true,
		Failure: func(_ operation.Operation, err error, requestID string) any { return failedResult(err, requestID) },
	}
}

func failedResult(err error, requestID string) Result {
	not := notRunOf(err)
	text := not.Message
	if f := operation.FaultOf(err); f.General.Code == fault.Internal && requestID != "" {
		text += " (request id " + requestID + ")"
	}
	return Result{Stderr: text, ExitCode: not.ExitCode}
}

// notRunOf returns the reason why a script was not run.
func notRunOf(err error) *NotRun {
	var not *NotRun
	if errors.As(err, &not) {
		return not
	}
	f := operation.FaultOf(err)
	out := &NotRun{exitNotRunable, f.General.Code, f.Told()}
	if f.Reason == operation.ReasonArguments {
		out.ExitCode = exitInvalid
	}
	return out
}

// found makes a tool of each script.
func (s toolDeps) found(context.Context) []operation.Operation {
	service := s.service()
	listing := service.List()
	if text := listing.Empty(); text != "" {
		return []operation.Operation{s.none(text)}
	}
	out := make([]operation.Operation, 0, len(listing.Scripts))
	for _, script := range listing.Scripts {
		out = append(out, s.tool(script, service.catalogue.schema(script), nil))
	}
	return out
}

// none returns the tool that says that there is nothing to run.
func (s toolDeps) none(text string) operation.Operation {
	o := operation.Operation{
		Name: noScripts, Summary: "No scripts were found", Effect: operation.Read,
		Needs: operation.Needs{Tier: gitprovider.TierObserve},
		Tool: operation.Tool{Title: "No scripts were found",
			Description: text + " Scripts that are put there become tools at once."},
		Schemas: operation.Schemas{Input: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
			Output: resultSchema()},
	}
	way := operation.CallSpec[map[string]any]{Decode: decodeArguments}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(context.Context, operation.Call, map[string]any) (Result, error) {
			return Result{Stderr: text, ExitCode: exitNotFound}, nil
		})
}

// tool returns the tool of a script. begun, if not nil, is called with the id of a run when it starts.
func (s toolDeps) tool(script Script, schema json.RawMessage, begun func(id string)) operation.Operation {
	o := operation.Operation{
		Name: script.Name, Summary: script.Summary(), Effect: operation.Exec,
		Needs: operation.Needs{Tier: gitprovider.Tier(script.Tier), CacheOnly: script.ReadOnly, Dry: operation.DryTried},
		Tool: operation.Tool{
			Title: script.Title(), Description: script.toolDescription(),
			Destructive: !script.ReadOnly, Repeatable: script.ReadOnly,
		},
		Schemas: operation.Schemas{Input: schema, Output: resultSchema()},
	}
	way := operation.CallSpec[map[string]any]{
		Decode: decodeArguments, Timeout: maxTimeout + time.Hour, MaxAnswer: maxAnswer(script),
	}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, call operation.Call, arguments map[string]any) (Result, error) {
			return s.callScript(ctx, call, script.Name, arguments, begun)
		})
}

// maxAnswer returns the maximum size of two streams of a script in JSON, where a byte may take six.
func maxAnswer(s Script) int { return 2*6*(s.OutputCap+len(truncatedNotice)) + 64<<10 }

// decodeArguments reads the arguments of a script; what they may be, only the script says.
func decodeArguments(text []byte) (map[string]any, []fault.Violation) {
	bad := func(message string) []fault.Violation {
		return []fault.Violation{{Code: fault.InvalidArgument, Message: message}}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return map[string]any{}, nil
	}
	if !jsontext.Value(text).IsValid() {
		return nil, bad("the arguments are not a JSON object in which each name stands once")
	}
	var out map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&out); err != nil || out == nil {
		return nil, bad("the arguments must be a JSON object")
	}
	return out, nil
}

// callScript runs a script by its tool's name, as it is by now.
func (s toolDeps) callScript(ctx context.Context, call operation.Call, name string, arguments map[string]any,
	begun func(id string)) (Result, error) {
	service := s.service()
	script, missing := service.findScript(name)
	if missing != nil {
		return Result{}, kernelError(missing)
	}
	note := operation.Note{Paths: []string{script.Path}, Digest: "sha256:" + script.Hash}
	plan, bad := service.runner.Plan(script, arguments)
	if bad != nil {
		call.Note(note)
		return Result{}, kernelError(bad)
	}
	if call.DryRun {
		note.Message = "would run " + argumentsText(service.begun(script, arguments, "", record.ScriptCaller{}).Arguments)
		call.Note(note)
		return dryRun(script, plan, arguments), nil
	}
	kernel := s.kernel()
	run := record.ScriptRun{ID: call.ID, By: record.ScriptCaller{
		Actor: call.Caller.Actor, Tier: kernel.Tier(call), Session: kernel.CurrentAuthority().Session,
		Policy: call.Done("").Policy,
	}}
	result, err := service.runRecorded(ctx, script, arguments, &run, phases{
		waiting: func() { call.Progress("waiting until other scripts have ended") }, begun: begun,
	})
	if !run.StartedAt.IsZero() {
		note.Message = summary(run)
	}
	call.Note(note)
	return result, kernelError(err)
}

// kernelError returns an error as the kernel takes it.
func kernelError(err error) error {
	var not *NotRun
	if !errors.As(err, &not) || not == nil {
		return err
	}
	reason := operation.Reason("")
	if not.ExitCode == exitInvalid {
		reason = operation.ReasonArguments
	}
	f := &operation.Fault{Reason: reason, General: fault.Wrap(not, not.Code, "%s", not.Message)}
	if reason == "" {
		f.Code = fmt.Sprint(not.ExitCode)
	}
	return f
}

// dryRun says what would be run.
func dryRun(s Script, plan Plan, arguments map[string]any) Result {
	parsed, err := json.Marshal(arguments)
	if err != nil { // they came as JSON
		parsed = nil
	}
	text := fmt.Sprintf("This is a dry run: nothing was run.\nscript: %s\nsha256: %s\nprogram: %s\narguments: %s\n",
		s.Path, s.Hash, plan.Program, parsed)
	if plan.Call != nil {
		text += "stdin: " + string(plan.Call) + "\n"
	} else {
		words, _ := json.Marshal(plan.Words) // texts always marshal
		text += "command line: " + string(words) + "\n"
	}
	return Result{Stdout: text}
}

// Summary describes the script in one line for people.
func (s Script) Summary() string {
	if s.Synopsis != "" {
		return s.Synopsis
	}
	return "Run " + s.Path
}

// Title returns the name of a tool as people read it.
func (s Script) Title() string { return strings.ReplaceAll(s.Name, "_", " ") }

// toolDescription returns the description of a tool for a model.
func (s Script) toolDescription() string {
	const most = 2000
	text := s.Summary()
	if s.Details != "" {
		text += "\n" + s.Details
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " ..."
	}
	text += fmt.Sprintf("\nRuns %s of the operator; from tier %d.", s.Interpreter, s.Tier)
	if s.ReadOnly {
		text += " It changes nothing."
	}
	return text
}

// resultSchema returns the JSON Schema of every answer.
func resultSchema() json.RawMessage {
	return json.RawMessage(
		`{"type":"object","properties":{"stdout":{"type":"string"},"stderr":{"type":"string"},"exitCode":{"type":"integer"},` +
			`"truncated":{"type":"boolean"},"timedOut":{"type":"boolean"}},"required":["stdout","stderr","exitCode","truncated","timedOut"],"additionalProperties":false}`)
}
