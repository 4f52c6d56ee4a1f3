package definitions

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
)

// ToolsetName is the toolset's name in CLAUDEOPS_TOOLSETS.
const ToolsetName = "definitions"

// ServerName is the contract's name of a server that has this toolset alone.
const ServerName = "fractary-forge"

// callTimeout leaves the registries that answer the time to do so, also where one does not.
const callTimeout = fetchTimeout + 15*time.Second

// listTimeout bounds how long a list waits for registries: one that does not answer is named, and what others and this
// machine have is listed. searchTimeout is that of a search, which is about registries alone.
const (
	listTimeout   = 5 * time.Second
	searchTimeout = 15 * time.Second
)

// maxNotes bounds the notes of an answer.
const maxNotes = 20

//go:embed schema/*.json
var schemas embed.FS

// toolDeps holds the dependencies of the tools.
type toolDeps struct {
	kernel  func() *operation.Kernel
	service func() *Service
}

// Toolset returns the 18 tools of Forge's published contract, and those for skills, which Forge does not know. kernel
// and service are called for each call.
func Toolset(kernel func() *operation.Kernel, service func() *Service) operation.Toolset {
	s := toolDeps{kernel, service}
	return operation.Toolset{
		Name: ToolsetName, Schemas: schemas, Form: operationForm(),
		Instructions: "Look at definitions of agents, tools and skills and at plugins with fractary_forge_*: list and info find " +
			"them, validate checks one " +
			"before you propose a change to it, fork_check says what upstream has changed.",
		Operations: operation.WithExamples([]operation.Operation{
			s.agentList(), s.agentInfo(), s.agentValidate(), s.toolList(), s.toolInfo(), s.toolValidate(),
			s.pluginList(), s.pluginInfo(), s.pluginSearch(), s.configGet(), s.configShow(), s.configRegistryList(),
			s.cacheClear(), s.cacheStats(), s.forkList(), s.forkInfo(), s.forkDiff(), s.forkCheck(),
			s.skillList(), s.skillInfo(), s.skillValidate(),
		}, examples()),
		Reject: func(ctx context.Context, call operation.Call, name string, why *fault.Error) {
			kernel().Reject(ctx, call, name, why)
		},
		// The one tool that writes touches our own cache alone.
		Listed: func(operation.Operation) bool { return true },
	}
}

// InContract reports whether an operation is one of the 18 tools of Forge's contract.
func InContract(o operation.Operation) bool {
	return !strings.HasPrefix(o.Name, "fractary_forge_skill_")
}

// readOperation returns the common part of a tool that reads. command is the part after `claudeops definitions`.
func readOperation(name, command, title, summary, description string) operation.Operation {
	return operation.Operation{
		Name: "fractary_forge_" + name, Summary: summary, Effect: operation.Read,
		Needs:   operation.Needs{Tier: gitprovider.TierObserve},
		Command: ToolsetName + " " + command, Tool: operation.Tool{Title: title, Description: description},
	}
}

// defineRead completes a tool that reads.
func defineRead[In, Out any](
	s toolDeps, o operation.Operation, check func(in In) *operation.Fault,
	handle func(ctx context.Context, v *inventory, in In) (Out, error),
) operation.Operation {
	way := operation.CallSpec[In]{Check: check, Timeout: callTimeout}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, _ operation.Call, in In) (Out, error) {
			return limited(ctx, func() (Out, error) {
				var none Out
				v, err := s.service().loadView()
				if err != nil {
					return none, faultOf(err)
				}
				out, err := handle(ctx, v, in)
				return out, faultOf(err)
			})
		})
}

// limited ends with the context, whatever do waits for. A panic in do is one here.
func limited[Out any](ctx context.Context, do func() (Out, error)) (Out, error) {
	type result struct {
		out      Out
		err      error
		panicked any
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			r.panicked = recover()
			done <- r
		}()
		r.out, r.err = do()
	}()
	select {
	case r := <-done:
		if r.panicked != nil {
			panic(r.panicked)
		}
		return r.out, r.err
	case <-ctx.Done():
		var none Out
		if errors.Is(ctx.Err(), context.Canceled) {
			return none, faultOf(newError(NetworkError, "the call was given up before it had an answer"))
		}
		return none, ctx.Err()
	}
}

// notesOf says what is not used, and which files and registries could not be read.
func notesOf(ignored []string, problems Problems, failed []error) []string {
	notes := slices.Clone(ignored)
	for _, p := range problems {
		notes = append(notes, p.String())
	}
	for _, err := range failed {
		notes = append(notes, messageOf(err))
	}
	if more := len(notes) - maxNotes; more > 0 {
		notes = append(notes[:maxNotes:maxNotes], fmt.Sprintf("and %d more problems", more))
	}
	return notes
}

// pageOf returns the part that offset and limit select. A limit of 0 is the default.
func pageOf[T any](all []T, offset, limit int) []T {
	from := min(offset, len(all))
	return all[from:min(from+limit, len(all))]
}

// sourceOf reads the argument source.
func sourceOf(text string) Source {
	if text == "all" {
		return ""
	}
	return Source(text)
}

// internalError is the one code that the contract does not have: a fault of this program.
const internalError Code = "INTERNAL_ERROR"

// Failure is an error as the contract has it.
type Failure struct {
	Error       bool           `json:"error"`
	Code        Code           `json:"code"`
	Message     string         `json:"message"`
	Details     map[string]any `json:"details"`
	Suggestions []string       `json:"suggestions"`
}

// operationForm returns the form of the contract's errors.
func operationForm() *operation.Form {
	return &operation.Form{
		FailureType: reflect.TypeFor[Failure](),
		Failure: func(_ operation.Operation, err error, requestID string) any {
			return failureOf(operation.FaultOf(err), requestID)
		},
	}
}

func failureOf(f *operation.Fault, requestID string) Failure {
	out := Failure{Error: true, Code: Code(f.Code), Message: f.Told(), Details: map[string]any{},
		Suggestions: []string{}}
	for key, value := range f.Details {
		out.Details[key] = value
	}
	out.Suggestions = append(out.Suggestions, f.Suggestions...)
	if f.Code == "" {
		out.Code = codeOfReason(f)
	}
	if len(f.General.Violations) > 0 {
		out.Details["violations"] = f.General.Violations
		for _, v := range f.General.Violations {
			if v.Suggestion != "" {
				out.Suggestions = append(out.Suggestions, v.Suggestion)
			}
		}
	}
	if requestID != "" {
		out.Details["request_id"] = requestID
	}
	return out
}

// codeOfReason returns the contract's code for what a step of the call refused.
func codeOfReason(f *operation.Fault) Code {
	switch f.Reason {
	case operation.ReasonDisabled, operation.ReasonTier, operation.ReasonWriting, operation.ReasonApproval:
		return PermissionDenied
	case operation.ReasonArguments, operation.ReasonSize:
		return ValidationError
	case operation.ReasonBusy:
		return ConflictError
	case operation.ReasonTime:
		return NetworkError
	}
	if f.General.Code == fault.Misconfigured {
		return ConfigError
	}
	return internalError
}

// faultOf returns an error of this package as the way of a call takes it.
func faultOf(err error) error {
	var missing *notFoundError
	var limit *limitError
	switch {
	case errors.As(err, &missing):
		err = missing.coded()
	case errors.As(err, &limit):
		err = newError(ValidationError, "%s", limit.Error())
	}
	return operation.Contracted(err, Code.general)
}

// general returns the program's own code for one of the contract.
func (c Code) general() fault.Code {
	switch c {
	case PluginNotFound, AgentNotFound, ToolNotFound, SkillNotFound:
		return fault.NotFound
	case ValidationError:
		return fault.InvalidArgument
	case PermissionDenied:
		return fault.ScopeDenied
	case NetworkError, AuthFailed:
		return fault.UpstreamError
	case AuthRequired:
		return fault.ProviderDisabled
	case ConfigError:
		return fault.Misconfigured
	case IntegrityError:
		return fault.ContentDenied
	case DependencyError, ConflictError:
		return fault.Conflict
	}
	return fault.Internal
}

// examples returns example calls, by command.
func examples() map[string]string {
	return map[string]string{
		"definitions agent list": "claudeops definitions agent list\nclaudeops definitions agent list --source local " +
			"--tags demo --json",
		"definitions agent info": "claudeops definitions agent info reviewer",
		"definitions agent validate": "claudeops definitions agent validate reviewer\n" +
			"claudeops definitions agent validate .claude/agents/reviewer.md --strict",
		"definitions skill list": "claudeops definitions skill list\nclaudeops definitions skill list --source local --json",
		"definitions skill info": "claudeops definitions skill info free-disk",
		"definitions skill validate": "claudeops definitions skill validate free-disk\n" +
			"claudeops definitions skill validate .agents/skills/free-disk/SKILL.md",
		"definitions tool list":            "claudeops definitions tool list --limit 20",
		"definitions tool info":            "claudeops definitions tool info grep --version ^1.0.0",
		"definitions tool validate":        "claudeops definitions tool validate .fractary/tools/grep.yaml --strict",
		"definitions cache stats":          "claudeops definitions cache stats",
		"definitions cache clear":          "claudeops definitions cache clear --type manifests",
		"definitions config get":           "claudeops definitions config get registries.0.url",
		"definitions config show":          "claudeops definitions config show --format yaml",
		"definitions config registry-list": "claudeops definitions config registry-list",
		"definitions fork list":            "claudeops definitions fork list --type agent",
		"definitions fork info":            "claudeops definitions fork info my-reviewer",
		"definitions fork diff":            "claudeops definitions fork diff my-reviewer --format unified",
		"definitions fork check":           "claudeops definitions fork check\nclaudeops definitions fork check my-reviewer",
		"definitions plugin list":          "claudeops definitions plugin list",
		"definitions plugin info":          "claudeops definitions plugin info @fractary/faber",
		"definitions plugin search":        "claudeops definitions plugin search review --limit 5",
	}
}
