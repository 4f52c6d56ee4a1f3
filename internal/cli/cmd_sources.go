package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation/people"
	"github.com/claudeops/claudeops/internal/settings/sources"
)

func sourcesCommand(a *app) *cobra.Command {
	return group("sources", "Say which registries and repositories the files of projects may choose", sourcesListCommand(a), sourcesAllowCommand(a), sourcesRemoveCommand(a))
}

// sourceEntry is a source in answers.
type sourceEntry struct {
	sources.Source
	From string `json:"from"` // the file that has it
}

func sourcesListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the sources that are allowed, and the file that has each", Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			p := a.wire(needs{})
			if problem := p.rules.problem(); problem != "" {
				return fault.New(fault.Misconfigured, "%s", problem)
			}
			file := p.allowedSources()
			allowed, err := file.Load()
			if err != nil {
				return fault.New(fault.Misconfigured, "%s", err)
			}
			entries := []sourceEntry{}
			for _, s := range p.rules.policy.Server.Sources {
				entries = append(entries, sourceEntry{s, p.rules.policy.Source})
			}
			for _, s := range allowed {
				entries = append(entries, sourceEntry{s, file.Path})
			}
			return a.print(listOf(entries), func(w *strings.Builder) {
				if len(entries) == 0 {
					w.WriteString("No source is allowed beside those of your own configuration.\n")
					return
				}
				rows := [][]string{{"ORIGIN", "TOKEN", "FROM"}}
				for _, e := range entries {
					rows = append(rows, []string{e.Origin, orAll(nonEmpty(e.TokenEnv), "-"), e.From})
				}
				columns(w, rows)
			})
		},
	}
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

func sourcesAllowCommand(a *app) *cobra.Command {
	var s sources.Source
	cmd := &cobra.Command{
		Use: "allow ORIGIN", Short: "Let files of projects use a registry, a git repository or a folder", Args: usageArgs(cobra.ExactArgs(1)),
		Long: "allow puts an address on the list of sources. A file of a project, such as .fractary/config.json, agentpack.yaml or aam.yaml, may\n" +
			"then name that address and what lies below it. An address is a URL of https, http, ssh, git or file, git's form USER@HOST:PATH, or the\n" +
			"path of a folder. Name as little as possible: https://git.example.org/team rather than https://git.example.org.",
		Example: "  claudeops sources allow https://registry.example.org\n  claudeops sources allow https://git.example.org/ops --token-env OPS_REGISTRY_TOKEN",
		RunE: func(cmd *cobra.Command, args []string) error {
			origin, err := sources.OriginOf(args[0])
			if err != nil {
				return usageError{fmt.Errorf("%q %w", args[0], err)}
			}
			s.Origin = origin
			if err := s.Check(); err != nil {
				return usageError{err}
			}
			p := a.wire(needs{})
			file := p.allowedSources()
			if err := changeSources(cmd.Context(), a, p, people.AllowSource, describeSource(s), func() error { return file.Add(s) }); err != nil {
				return err
			}
			return a.print(s, func(w *strings.Builder) { fmt.Fprintf(w, "Files of projects may use %s.\n", s.Origin) })
		},
	}
	cmd.Flags().StringVar(&s.TokenEnv, "token-env", "", "variable whose value is sent to the origin's host; https only")
	cmd.Flags().BoolVar(&s.Private, "private", false, "the host may have an address of this machine or of a private network")
	return cmd
}

func describeSource(s sources.Source) string {
	what := s.Origin
	if s.TokenEnv != "" {
		what += ", with the token in " + s.TokenEnv
	}
	if s.Private {
		what += ", also at a private address"
	}
	return what
}

func sourcesRemoveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "remove ORIGIN", Short: "Take a source off the list", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			origin, err := sources.OriginOf(args[0])
			if err != nil {
				return usageError{fmt.Errorf("%q %w", args[0], err)}
			}
			p := a.wire(needs{})
			file := p.allowedSources()
			if err := changeSources(cmd.Context(), a, p, people.RemoveSource, origin, func() error { return file.Remove(origin) }); err != nil {
				return err
			}
			return a.print(map[string]string{"removed": origin}, func(w *strings.Builder) { fmt.Fprintf(w, "Files of projects may no longer use %s.\n", origin) })
		},
	}
}

// changeSources records a change of the list, and makes it. The row is there before the change: a source that is used
// must be in the audit.
func changeSources(ctx context.Context, a *app, p *parts, action people.Action, what string, change func() error) error {
	if p.allowedSources().Path == "" {
		return fault.New(fault.Misconfigured, "%s", p.cfg.Records.Problem)
	}
	return p.people().Do(ctx, people.Act{Action: action, By: a.caller(p)}, func(row people.Row) error {
		if err := p.store.Ledger.Record(ctx, row(what), nil); err != nil {
			return err
		}
		err := change()
		if errors.Is(err, sources.ErrNotListed) {
			return fault.New(fault.NotFound, "%s; `claudeops sources list` shows the list", err)
		}
		if err != nil && !errors.Is(err, sources.ErrListed) {
			return fault.Wrap(err, fault.Misconfigured, "the list of sources was not changed: %s", err)
		}
		return nil
	})
}
