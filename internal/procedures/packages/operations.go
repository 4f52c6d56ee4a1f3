package packages

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// ToolsetName is the toolset's name in CLAUDEOPS_TOOLSETS.
const ToolsetName = "packages"

// ServerName is the contract's name of a server that has this toolset alone.
const ServerName = "aam"

// Time limits of calls.
const (
	readTimeout  = time.Minute
	writeTimeout = 10 * time.Minute
)

//go:embed schema/*.json
var schemas embed.FS

// toolDeps holds the dependencies of the tools.
type toolDeps struct {
	kernel  func() *operation.Kernel
	service func() *Service
}

// Toolset returns the 13 tools of AAM's published contract, and what people have beside them. kernel and service are
// called for each call.
func Toolset(kernel func() *operation.Kernel, service func() *Service) operation.Toolset {
	s := toolDeps{kernel, service}
	return operation.Toolset{
		Name: ToolsetName, Schemas: schemas, Form: operationForm(),
		Instructions: "Share procedures as packages with aam_*: search and info find them in registries, install puts them " +
			"and what they depend on into the " +
			"project, create_package, validate and publish make one of what you have written.",
		Operations: inWords(operation.WithExamples([]operation.Operation{
			s.searchOperation(), s.list(), s.info(), s.validate(), s.configGet(), s.registryList(), s.doctor(),
			s.install(), s.uninstall(), s.publish(), s.createPackage(), s.configSet(), s.registryAdd(),
			s.outdated(), s.upgrade(), s.autoremove(),
		}, examples())),
		Reject: func(ctx context.Context, call operation.Call, name string, why *fault.Error) {
			kernel().Reject(ctx, call, name, why)
		},
		Listed: func(o operation.Operation) bool { return kernel().Listed(o) },
	}
}

// readOperation returns the common part of a tool. command is the part after `claudeops packages`.
func readOperation(name, command, title, summary, description string) operation.Operation {
	return operation.Operation{
		Name: "aam_" + name, Summary: summary, Effect: operation.Read, Needs: operation.Needs{Tier: gitprovider.TierObserve},
		Command: ToolsetName + " " + command, Tool: operation.Tool{Title: title, Description: description},
	}
}

// beside begins an operation that is in no contract, so that no tool leads to it.
func beside(command, summary, description string) operation.Operation {
	o := readOperation("", command, "", summary, description)
	o.Name = "packages_" + command
	return o
}

// defineRead completes a tool that reads.
func defineRead[In, Out any](s toolDeps, o operation.Operation,
	handle func(ctx context.Context, call operation.Call, in In) (Out, error)) operation.Operation {
	return operation.Define(s.kernel, ToolsetName, o, operation.CallSpec[In]{Timeout: readTimeout},
		func(ctx context.Context, call operation.Call, in In) (Out, error) {
			out, err := handle(ctx, call, in)
			return out, faultOf(err)
		})
}

// defineWrite completes a tool that writes below some folders.
func defineWrite[In, Out any](
	s toolDeps, o operation.Operation, roots func(in In) []string,
	handle func(ctx context.Context, call operation.Call, in In) (Out, error),
) operation.Operation {
	o.Effect, o.Needs.Tier, o.Needs.Dry = operation.Write, gitprovider.TierRemediate, operation.DryTried
	way := operation.CallSpec[In]{Timeout: writeTimeout, Roots: roots}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, call operation.Call, in In) (Out, error) {
			out, err := handle(ctx, call, in)
			return out, faultOf(err)
		})
}

// project returns the folder that a tool writes.
func (s toolDeps) project() []string { return []string{s.service().settings.Project} }

// home returns the folder of the user's configuration.
func (s toolDeps) home() []string {
	return []string{filepath.Join(s.service().settings.Home, workspaceName)}
}

// isPerson reports whether a person calls, at the terminal, who may name any folder. Others may name those below the
// project.
func isPerson(call operation.Call) bool { return call.Caller.Door == record.DoorCLI }

// resolveFolder returns an argument that names a folder, and the folder in which it has to stay when it is opened; ""
// for a person. AAM_PERMISSION_DENIED for one where the caller may not look.
func (s *Service) resolveFolder(call operation.Call, name string) (dir, within string, err error) {
	if name == "~" || strings.HasPrefix(name, "~/") {
		name = s.settings.Home + name[1:]
	}
	name = filepath.FromSlash(name)
	if !filepath.IsAbs(name) {
		name = filepath.Join(s.settings.Project, name)
	}
	name = filepath.Clean(name)
	switch {
	case isPerson(call):
		return name, "", nil
	case !s.settings.inProject(name):
		return "", "", newError(PermissionDenied, "%s does not lie in the project", name).Suggest("name a folder in " +
			s.settings.Project)
	}
	return name, s.settings.Project, nil
}

// NoArguments is the input of tools that take none.
type NoArguments struct{}

// counts counts artifacts by their type, for answers.
func counts(of map[ArtifactType]int) (total int, out map[string]int) {
	out = map[string]int{}
	for t, n := range of {
		out[string(t)] = n
		total += n
	}
	return total, out
}

// orNull returns a text, or null for none.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Failure is an error in structured content. Its text begins with the code in brackets, as the contract has it.
type Failure struct {
	Error Problem `json:"error"`
}

// Problem describes an error.
type Problem struct {
	Code      Code           `json:"code"`
	Message   string         `json:"message"`
	Hint      string         `json:"hint,omitempty"`
	Details   map[string]any `json:"details,omitempty"`
	RequestID string         `json:"request_id,omitempty"`
}

// operationForm returns the form of the contract's answers and errors.
func operationForm() *operation.Form {
	return &operation.Form{
		FailureType: reflect.TypeFor[Failure](),
		Failure: func(_ operation.Operation, err error, requestID string) any {
			return failureOf(operation.FaultOf(err), requestID)
		},
		Text: modelText,
	}
}

// modelText returns the text for a model: an error by its code, a list as a list.
func modelText(answer any) string {
	if f, ok := answer.(Failure); ok {
		return f.sentence()
	}
	if l, ok := answer.(operation.ListAnswer); ok {
		list, notes := l.AsList()
		out := plainJSON(list)
		for _, note := range notes {
			out += "\n" + note
		}
		return out
	}
	return plainJSON(answer)
}

// plainJSON is JSON without HTML escapes.
func plainJSON(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil { // answers always marshal
		return "{}"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (f Failure) sentence() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s] %s", f.Error.Code, f.Error.Message)
	if f.Error.Hint != "" {
		fmt.Fprintf(&b, "\nhint: %s", f.Error.Hint)
	}
	if len(f.Error.Details) > 0 {
		fmt.Fprintf(&b, "\ndetails: %s", plainJSON(f.Error.Details))
	}
	if f.Error.RequestID != "" {
		fmt.Fprintf(&b, "\nrequest id: %s", f.Error.RequestID)
	}
	return b.String()
}

func failureOf(f *operation.Fault, requestID string) Failure {
	out := Problem{Code: Code(f.Code), Message: f.Told(), Hint: strings.Join(f.Suggestions, "; "),
		RequestID: requestID}
	if len(f.Details) > 0 {
		out.Details = map[string]any{}
	}
	for key, value := range f.Details {
		out.Details[key] = value
	}
	if f.Code == "" {
		out.Code = codeOfReason(f)
	}
	if len(f.General.Violations) > 0 {
		if out.Details == nil {
			out.Details = map[string]any{}
		}
		out.Details["violations"] = f.General.Violations
	}
	return Failure{out}
}

// codeOfReason returns the code for what a step of the call refused.
func codeOfReason(f *operation.Fault) Code {
	switch f.Reason {
	case operation.ReasonDisabled, operation.ReasonTier, operation.ReasonWriting, operation.ReasonApproval:
		return PermissionDenied
	case operation.ReasonArguments:
		return InvalidArgument
	case operation.ReasonSize, operation.ReasonTime:
		return LimitReached
	case operation.ReasonBusy:
		return Busy
	}
	return InternalError
}

// faultOf returns an error of this package as the way of a call takes it.
func faultOf(err error) error {
	return operation.Contracted(err, Code.general)
}

// general returns the program's own code for one of the contract.
func (c Code) general() fault.Code {
	switch c {
	case InvalidArgument, ManifestInvalid:
		return fault.InvalidArgument
	case NotInitialized, ManifestNotFound, RegistryNotFound, RegistryNotConfigured, PackageNotFound, PackageNotInstalled:
		return fault.NotFound
	case RegistryUnreachable:
		return fault.UpstreamError
	case DependencyConflict, VersionExists, NameConflict, Busy:
		return fault.Conflict
	case PermissionDenied:
		return fault.ScopeDenied
	case IntegrityError:
		return fault.ContentDenied
	case ConfigInvalid:
		return fault.Misconfigured
	case LimitReached:
		return fault.LimitReached
	}
	return fault.Internal
}

// examples returns example calls, by command.
func examples() map[string]string {
	return map[string]string{
		"packages search":   "claudeops packages search pdf\nclaudeops packages search pdf --package-type skill --limit 5",
		"packages list":     "claudeops packages list",
		"packages info":     "claudeops packages info pdf-tools\nclaudeops packages info @ops/pdf-tools 1.2.0",
		"packages validate": "claudeops packages validate",
		"packages doctor":   "claudeops packages doctor",
		"packages outdated": "claudeops packages outdated",
		"packages upgrade":  "claudeops packages upgrade\nclaudeops packages upgrade pdf-tools --dry-run",
		"packages install": "claudeops packages install pdf-tools@^1.0.0\nclaudeops packages install pdf-tools " +
			"--platform claude",
		"packages uninstall":  "claudeops packages uninstall pdf-tools",
		"packages autoremove": "claudeops packages autoremove --dry-run",
		"packages create": "claudeops packages create\nclaudeops packages create --name @ops/pdf-tools " +
			"--description \"Reads and fills PDFs\"",
		"packages publish":       "claudeops packages publish\nclaudeops packages publish --registry team --tag beta",
		"packages config get":    "claudeops packages config get default_platform",
		"packages config set":    "claudeops packages config set default_platform claude",
		"packages registry list": "claudeops packages registry list",
		"packages registry add":  "claudeops packages registry add team ~/registry",
	}
}
