package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/files"
)

// completionTime bounds how long a completion may take. It asks no network: what it offers comes from the code, from
// the folder of local repositories, and from records in a file.
const completionTime = time.Second

// maxOffered bounds what a completion offers.
const maxOffered = 200

type completer = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// completes reports whether the command line asks for completions, as the scripts of `claudeops completion` do.
func completes(a *commandLine) bool {
	return len(a.args) > 0 && (a.args[0] == cobra.ShellCompRequestCmd || a.args[0] == cobra.ShellCompNoDescRequestCmd)
}

// addCompletions lets the commands below root complete the values of flags and arguments.
func addCompletions(a *commandLine, root *cobra.Command) {
	flags := flagCompletions(a)
	arguments := argumentCompletions(a)
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		add := func(f *pflag.Flag) {
			complete := flags[f.Name]
			if own := flags[pathOf(cmd)+" "+f.Name]; own != nil {
				complete = own
			}
			if complete != nil {
				_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // an error says that it has one already
			}
		}
		cmd.LocalFlags().VisitAll(add)
		if complete := arguments[pathOf(cmd)]; complete != nil {
			cmd.ValidArgsFunction = complete
		} else if strings.HasSuffix(cmd.Use, " NUMBER") {
			cmd.ValidArgsFunction = arguments["NUMBER"]
		}
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	visit(root)
}

// pathOf returns a command without the program's name, such as "audit list".
func pathOf(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path
}

// flagCompletions returns completions by the name of the flag, with the command before it where the flag means
// something else there.
func flagCompletions(a *commandLine) map[string]completer {
	return map[string]completer{
		"repo": offer(func(ctx context.Context) []string { return repositoriesOf(ctx, a) }), "outcome": fixed(outcomes()...),
		"code": fixed(codes()...), "pull": fixed(asStrings(record.PullStates())...), "tier": fixed("1", "2", "3"),
		"only-tier": fixed("1", "2", "3"),
		"max-tier":  fixed("1", "2", "3"), "client": fixed(strings.Split(clientNames(), ", ")...),
		"preview": fixed("full", "summary"),
		"type":    fixed(asStrings(gitprovider.ChangeTypes())...), "provider": fixed(providerNames()...),
		"default-provider": fixed(providerNames()...), "scopes": fixed(asStrings(access.AllScopes())...),
		"review list state":  fixed("open", "closed", "merged", "all"),
		"session list state": fixed(asStrings(sessions.States())...),
		"session":            offer(func(ctx context.Context) []string { return sessionsOf(ctx, a) }),
	}
}

// providerNames returns the providers that a repository can be of.
func providerNames() []string {
	out := []string{"local"}
	for _, d := range forges.All() {
		out = append(out, d.Name)
	}
	return out
}

// argumentCompletions returns completions by command; NUMBER is for all that take a pull request.
func argumentCompletions(a *commandLine) map[string]completer {
	first := func(complete completer) completer {
		return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return complete(cmd, args, typed)
		}
	}
	return map[string]completer{
		"NUMBER": first(func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			repo := ""
			if f := cmd.Flags().Lookup("repo"); f != nil {
				repo = f.Value.String()
			}
			return offer(func(ctx context.Context) []string { return numbersOf(ctx, a, repo) })(cmd, args, typed)
		}),
		"token revoke":    first(offer(func(ctx context.Context) []string { return tokensOf(ctx, a) })),
		"session show":    first(offer(func(ctx context.Context) []string { return sessionsOf(ctx, a) })),
		"session stop":    first(offer(func(ctx context.Context) []string { return runningSessionsOf(ctx, a) })),
		"connections cut": first(offer(func(ctx context.Context) []string { return connectionsOf(ctx, a) })),
	}
}

func fixed(values ...string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

// offer completes with what find finds in time.
func offer(find func(ctx context.Context) []string) completer {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		found := find(ctx)
		return found[:min(len(found), maxOffered)], cobra.ShellCompDirectiveNoFileComp
	}
}

func asStrings[T ~string](values []T) (out []string) {
	for _, v := range values {
		out = append(out, string(v))
	}
	return out
}

// outcomes returns the outcomes that an attempt may have.
func outcomes() []string {
	return []string{
		string(record.OutcomeOpened), string(record.OutcomeRevised), string(record.OutcomeReused),
		string(record.OutcomeDryRun),
		string(record.OutcomeRefused), string(record.OutcomeFailed), string(record.OutcomeDone),
	}
}

func codes() (out []string) {
	for _, code := range fault.Codes() {
		out = append(out, string(code))
	}
	return out
}

// onFile returns the parts of the command if its records are in a file; nil if they are elsewhere, since asking takes a
// network then.
func onFile(a *commandLine) *app.Parts {
	p := a.program().Wire(app.Needs{Records: true})
	if p.Cfg.Records.DatabaseURL != "" {
		return nil
	}
	return p
}

// repositoriesOf returns the repositories below the local root, those of the policy, and those that something was
// proposed for.
func repositoriesOf(ctx context.Context, a *commandLine) (out []string) {
	p := a.program().Wire(app.Needs{Records: true})
	if p.Cfg.Forges.LocalRoot != "" {
		for _, dir := range files.Glob(p.Cfg.Forges.LocalRoot, "*/*") {
			out = append(out, filepath.Base(filepath.Dir(dir))+"/"+strings.TrimSuffix(filepath.Base(dir), ".git"))
		}
	}
	for _, entry := range p.Rules.Now().Policy.View().Repositories {
		if _, repo, named := strings.Cut(entry, ":"); named {
			entry = repo
		}
		if !strings.ContainsAny(entry, "*?[{") {
			out = append(out, entry)
		}
	}
	if p := onFile(a); p != nil {
		if names, err := p.Store.History.Repositories(ctx); err == nil {
			for _, n := range names {
				out = append(out, n.Owner+"/"+n.Name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// numbersOf returns the open pull requests of ours, of one repository if it is named, with their titles.
func numbersOf(ctx context.Context, a *commandLine, repo string) (out []string) {
	p := onFile(a)
	if p == nil {
		return nil
	}
	open, err := p.Store.Pulls.OpenPulls(ctx, maxOffered)
	if err != nil {
		return nil
	}
	for _, pull := range open {
		if repo == "" || strings.EqualFold(repo, pull.Owner+"/"+pull.Repo) {
			out = append(out, fmt.Sprintf("%d\t%s", pull.Number, cmp.Or(cleanLine(pull.Title, 60), pull.Branch)))
		}
	}
	return out
}

func sessionsOf(ctx context.Context, a *commandLine) (out []string) {
	if p := onFile(a); p != nil {
		records, err := p.Store.AgentSessions.Sessions(ctx, sessions.Query{Limit: 20})
		if err != nil {
			return nil
		}
		for _, r := range records {
			out = append(out, fmt.Sprintf("%s\ttier %s, %s", r.ID, r.Tier, r.State))
		}
	}
	return out
}

func runningSessionsOf(ctx context.Context, a *commandLine) (out []string) {
	if p := onFile(a); p != nil {
		records, err := p.Store.AgentSessions.Sessions(ctx, sessions.Query{State: sessions.StateRunning, Limit: 20})
		if err != nil {
			return nil
		}
		for _, r := range records {
			out = append(out, fmt.Sprintf("%s\ttier %s", r.ID, r.Tier))
		}
	}
	return out
}

func connectionsOf(ctx context.Context, a *commandLine) (out []string) {
	if p := onFile(a); p != nil {
		open, err := p.Store.Connections().Connections(ctx)
		if err != nil {
			return nil
		}
		for _, c := range open {
			agent := "token " + c.Credential
			if c.Session != "" {
				agent = "session " + c.Session
			}
			out = append(out, fmt.Sprintf("%s\ttier %s, %s", c.ID, c.Tier, agent))
		}
	}
	return out
}

func tokensOf(ctx context.Context, a *commandLine) (out []string) {
	if p := onFile(a); p != nil {
		tokens, err := p.Store.Access.Tokens(ctx)
		if err != nil {
			return nil
		}
		for _, t := range tokens {
			if t.RevokedAt.IsZero() {
				out = append(out, t.Name)
			}
		}
	}
	return out
}
