// Package admin holds the operator's acts on the installation: the list of allowed sources, and the removal of old
// records. Each act is an operation.
package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/settings/sources"
)

// SourceActs are the operations for people. All fields are required.
type SourceActs struct {
	Kernel func() *operation.Kernel
	Audit  func() operation.Audit
	File   func() (sources.File, error)        // that the commands change, or why there is none
	Policy func() (p policy.Policy, err error) // which has sources, too, or why it cannot be read
}

// AllowSourceRequest names a source to allow.
type AllowSourceRequest struct {
	Origin   string `json:"origin" path:"origin" doc:"Address or folder of the source"`
	TokenEnv string `json:"token_env,omitempty" doc:"variable whose value is sent to the origin's host; https only"`
	Private  bool   `json:"private,omitempty" doc:"the host may have an address of this machine or of a private network"`
}

// RemoveSourceRequest names a source to remove.
type RemoveSourceRequest struct {
	Origin string `json:"origin" path:"origin" doc:"Address or folder of the source"`
}

// SourceRemoved names a source that was removed.
type SourceRemoved struct {
	Origin string `json:"removed"`
}

// AllowedSource is a source that is allowed.
type AllowedSource struct {
	sources.Source
	From string `json:"from"` // the file that has it
}

// AllowedSources is the sources that are allowed.
type AllowedSources struct {
	Sources []AllowedSource `json:"sources"`
}

// Operations returns the list, allow and remove.
func (a SourceActs) Operations() []operation.Operation {
	list := operation.Operation{
		Name: "list_sources", Summary: "List the sources that are allowed, and the file that has each",
		Effect: operation.Read, Command: "sources list",
		Needs: operation.Needs{For: operation.Person}, Shown: operation.Shown{Fresh: true, View: sourcesView},
	}
	allow := operation.Operation{
		Name: "allow_source", Action: "source.allow",
		Summary: "Let files of projects use a registry, a git repository or a folder",
		Effect:  operation.Write, Command: "sources allow", Needs: operation.Needs{For: operation.Person, Policy: true},
		Shown: operation.Shown{
			Fresh: true,
			Help: "allow puts an address on the list of sources. A file of a project, such as .fractary/config.json, " +
				"agentpack.yaml or aam.yaml, may\n" +
				"then name that address and what lies below it. An address is a URL of https, http, ssh, git or file, git's form " +
				"USER@HOST:PATH, or the\n" +
				"path of a folder. Name as little as possible: https://git.example.org/team rather than https://git.example.org.",
			Example: "  claudeops sources allow https://registry.example.org\n" +
				"  claudeops sources allow https://git.example.org/ops --token-env OPS_REGISTRY_TOKEN",
			Said: func(out any, _ bool) string {
				return fmt.Sprintf("Files of projects may use %s.", out.(sources.Source).Origin)
			},
		},
	}
	remove := operation.Operation{
		Name: "remove_source", Action: "source.remove", Summary: "Take a source off the list", Effect: operation.Write,
		Command: "sources remove",
		Needs:   operation.Needs{For: operation.Person},
		Shown: operation.Shown{
			Fresh: true, Example: "  claudeops sources remove https://registry.example.org",
			Said: func(out any, _ bool) string {
				return fmt.Sprintf("Files of projects may no longer use %s.", out.(SourceRemoved).Origin)
			},
		},
	}
	return []operation.Operation{
		operation.Define(a.Kernel, "", list, operation.CallSpec[struct{}]{}, a.list),
		operation.Define(a.Kernel, "", allow,
			operation.CallSpec[AllowSourceRequest]{Check: func(in AllowSourceRequest) *operation.Fault {
				_, err := in.source()
				return invalid(err)
			}}, a.allow),
		operation.Define(a.Kernel, "", remove,
			operation.CallSpec[RemoveSourceRequest]{Check: func(in RemoveSourceRequest) *operation.Fault {
				_, err := originOf(in.Origin)
				return invalid(err)
			}}, a.removeSource),
	}
}

func invalid(err error) *operation.Fault {
	if err == nil {
		return nil
	}
	return operation.Invalid("origin", "%s", err)
}

func originOf(address string) (string, error) {
	canonical, err := sources.OriginOf(address)
	if err != nil {
		return "", fmt.Errorf("%q %w", address, err)
	}
	return canonical, nil
}

func (r AllowSourceRequest) source() (s sources.Source, err error) {
	if s.Origin, err = originOf(r.Origin); err != nil {
		return s, err
	}
	s.TokenEnv, s.Private = r.TokenEnv, r.Private
	return s, s.Check()
}

func sourcesView(out any) operation.View {
	v := operation.View{Empty: "No source is allowed beside those of your own configuration.",
		Table: [][]string{{"ORIGIN", "TOKEN", "FROM"}}, Text: []string{"FROM"}}
	for _, e := range out.(AllowedSources).Sources {
		token := e.TokenEnv
		if token == "" {
			token = "-"
		}
		v.Table = append(v.Table, []string{e.Origin, token, e.From})
	}
	return v
}

func (a SourceActs) list(context.Context, operation.Call, struct{}) (AllowedSources, error) {
	p, err := a.Policy()
	if err != nil {
		return AllowedSources{}, err
	}
	file, err := a.File()
	var listed sources.List
	if err == nil {
		if listed, err = file.Load(); err != nil {
			return AllowedSources{}, fault.New(fault.Misconfigured, "%s", err)
		}
	}
	out := AllowedSources{[]AllowedSource{}}
	for _, s := range p.Server.Sources {
		out.Sources = append(out.Sources, AllowedSource{s, p.Source})
	}
	for _, s := range listed {
		out.Sources = append(out.Sources, AllowedSource{s, file.Path})
	}
	return out, nil
}

func (a SourceActs) allow(ctx context.Context, call operation.Call, in AllowSourceRequest) (sources.Source, error) {
	s, err := in.source()
	if err != nil {
		return s, err
	}
	what := s.Origin
	if s.TokenEnv != "" {
		what += ", with the token in " + s.TokenEnv
	}
	if s.Private {
		what += ", also at a private address"
	}
	return s, a.recordChange(ctx, call, what, func(f sources.File) error { return f.Add(s) })
}

func (a SourceActs) removeSource(ctx context.Context, call operation.Call, in RemoveSourceRequest) (SourceRemoved,
	error) {
	canonical, err := originOf(in.Origin)
	if err != nil {
		return SourceRemoved{}, err
	}
	return SourceRemoved{canonical}, a.recordChange(ctx, call, canonical,
		func(f sources.File) error { return f.Remove(canonical) })
}

// recordChange records a change of the list, and makes it. The row is there before the change: a source that is used
// must be in the audit.
func (a SourceActs) recordChange(ctx context.Context, call operation.Call, what string,
	change func(sources.File) error) error {
	file, err := a.File()
	if err != nil {
		return err
	}
	if err := a.Audit().Record(ctx, call.Done(what), nil); err != nil {
		return err
	}
	err = change(file)
	if errors.Is(err, sources.ErrNotListed) {
		return fault.New(fault.NotFound, "%s; `claudeops sources list` shows the list", err)
	}
	if err != nil && !errors.Is(err, sources.ErrListed) {
		return fault.Wrap(err, fault.Misconfigured, "the list of sources was not changed: %s", err)
	}
	return nil
}
