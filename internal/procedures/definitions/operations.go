package definitions

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
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

// set holds the dependencies of the tools.
type set struct {
	kernel  func() *operation.Kernel
	service func() *Service
}

// Toolset returns the 18 tools of Forge's published contract. kernel and service are called for each call.
func Toolset(kernel func() *operation.Kernel, service func() *Service) operation.Toolset {
	s := set{kernel, service}
	return operation.Toolset{
		Name: ToolsetName, Schemas: schemas, Form: form(),
		Instructions: "Look at definitions of agents and tools and at plugins with fractary_forge_*: list and info find " +
			"them, validate checks one " +
			"before you propose a change to it, fork_check says what upstream has changed.",
		Operations: operation.WithExamples([]operation.Operation{
			s.agentList(), s.agentInfo(), s.agentValidate(), s.toolList(), s.toolInfo(), s.toolValidate(),
			s.pluginList(), s.pluginInfo(), s.pluginSearch(), s.configGet(), s.configShow(), s.configRegistryList(),
			s.cacheClear(), s.cacheStats(), s.forkList(), s.forkInfo(), s.forkDiff(), s.forkCheck(),
		}, examples()),
		Reject: func(ctx context.Context, call operation.Call, name string, why *fault.Error) {
			kernel().Reject(ctx, call, name, why)
		},
		// The contract has 18 tools; the one that writes touches our own cache alone.
		Listed: func(operation.Operation) bool { return true },
	}
}

// named returns the common part of a tool that reads. command is the part after `claudeops definitions`.
func named(name, command, title, summary, description string) operation.Operation {
	return operation.Operation{
		Name: "fractary_forge_" + name, Summary: summary, Effect: operation.Read,
		Needs:   operation.Needs{Tier: gitprovider.TierObserve},
		Command: ToolsetName + " " + command, Tool: operation.Tool{Title: title, Description: description},
	}
}

// reading completes a tool that reads.
func reading[In, Out any](
	s set, o operation.Operation, check func(in In) *operation.Fault,
	handle func(ctx context.Context, v *view, in In) (Out, error),
) operation.Operation {
	way := operation.Way[In]{Check: check, Timeout: callTimeout}
	return operation.Define(s.kernel, ToolsetName, o, way,
		func(ctx context.Context, _ operation.Call, in In) (Out, error) {
			return limited(ctx, func() (Out, error) {
				var none Out
				v, err := s.service().open()
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

// page returns the part that offset and limit select. A limit of 0 is the default.
func page[T any](all []T, offset, limit int) []T {
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
