package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/strictjson"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

func configCommand(a *commandLine) *cobra.Command {
	return group("config", "Show the settings that hold, and where they come from", configShowCommand(a))
}

func configShowCommand(a *commandLine) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "show", Short: "Show each setting, its value and the place that it comes from",
		Long: "show lists each setting with its value and the place that it comes from: the command line, the environment, " +
			"the\nenvironment file, the policy, or the default. Secrets are shown as \"set\". It reads what every command reads, " +
			"and so does\nthe server of a client that mcp-config has set up. Without --all, settings that nothing sets are left " +
			"out.\n\n" +
			"A dry run and read-only hold if any place says so; a place that says false against it is a warning.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return runConfigShow(a, all) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "list settings that nothing sets, too")
	return cmd
}

func runConfigShow(a *commandLine, all bool) error {
	p := a.program().Wire(app.Needs{})
	now := p.Rules.Now()
	settings := config.Show(a.sources(), forges.All(), map[string]policy.Switch{
		"CLAUDEOPS_DRY_RUN": now.DryRun, "CLAUDEOPS_READ_ONLY": now.ReadOnly,
	})
	shown := []config.Setting{}
	for _, s := range settings {
		for i := range s.Warnings {
			s.Warnings[i] = p.Scanner.Redact(s.Warnings[i])
		}
		if s.Value = p.Scanner.Redact(s.Value); all || s.Source != "" && s.Source != "default" || len(s.Warnings) > 0 {
			shown = append(shown, s)
		}
	}
	return a.print(listOf(shown), func(w *strings.Builder) {
		settingRows(w, shown)
	})
}

func settingRows(w *strings.Builder, settings []config.Setting) {
	rows := [][]string{{"SETTING", "VALUE", "FROM"}}
	for _, s := range settings {
		rows = append(rows, []string{s.Name, s.Value, s.Source})
		for _, warning := range s.Warnings {
			rows = append(rows, []string{"", "", "warning: " + warning})
		}
	}
	listing(w, layout{text: []string{"VALUE"}, folds: true}, rows)
}

func policyCommand(a *commandLine) *cobra.Command {
	return group("policy", "Show the effective rules, ask them about paths, and find what they could open",
		policyShowCommand(a), policyCheckCommand(a), policySuggestCommand(a))
}

func policyShowCommand(a *commandLine) *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Show the effective policy", Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			effective, err := a.program().Wire(app.Needs{}).Rules.Effective()
			if err != nil {
				return err
			}
			view := effective.View()
			return a.print(view, func(w *strings.Builder) { describePolicy(w, view) })
		},
	}
}

func describePolicy(w *strings.Builder, v policy.View) {
	fmt.Fprintf(w, "Policy: %s (hash %s)\n\n", v.Source, v.Hash)
	fmt.Fprintf(w, "May be proposed:\n  %s\nNever:\n  %s\n\n", strings.Join(v.Allow, "\n  "), strings.Join(v.Deny, "\n  "))
	for _, kind := range v.Kinds {
		fmt.Fprintf(w, "From tier %s also, if the files are sound: %s (%s)\n", kind.Tier, kind.Name,
			strings.Join(kind.Patterns, ", "))
	}
	fmt.Fprintf(w, "Tier 1 may not propose. Tier 2: at most %s in one pull request. Tier 3: at most %d.\n",
		fault.CountFiles(v.Tier2MaxFiles), v.Tier3MaxFiles)
	fmt.Fprintf(w, "At most %d bytes a file, %d in all.\n", v.MaxFileBytes, v.MaxTotalBytes)
	fmt.Fprintf(w, "Open pull requests a repository: at most %d; opened an hour: at most %d; a rejected change rests %g hours.\n",
		v.OpenPRs, v.CreationsPerHour, v.CooldownHours)
	others := "a warning"
	if v.Duplicates == policy.DuplicatesAny {
		others = "a refusal"
	}
	fmt.Fprintf(w, "An open pull request of somebody else on the same files is %s.\n", others)
	fmt.Fprintf(w, "Repositories: %s\n", app.OrAll(v.Repositories, "every one that a provider serves"))
	fmt.Fprintf(w, "Base branches: %s\n", app.OrAll(v.BaseBranches,
		"the default branch, or the one that the manifest names"))
	for _, pin := range v.Pins {
		fmt.Fprintf(w, "Pinned: %s\n", pin)
	}
	fmt.Fprintf(w, "Labels: %s\n", strings.Join(v.Labels, ", "))
	describePullRequests(w, v)
	fmt.Fprintf(w, "Required body sections: %s\n", app.OrAll(v.RequiredSections, "none"))
	if v.RemindAfter == "0" {
		w.WriteString("Nobody is reminded of pull requests that wait.\n")
	} else {
		fmt.Fprintf(w, "People are reminded of a pull request on which nobody has acted for %s.\n", v.RemindAfter)
	}
	if v.CloseAfter != "0" {
		fmt.Fprintf(w, "It is closed after %s without an act of a person, at least a day after the reminder.\n", v.CloseAfter)
	}
	if v.SessionTranscripts == "0" {
		w.WriteString("What agents said in sessions is kept.\n")
	} else {
		fmt.Fprintf(w, "What agents said in sessions is removed after %s.\n", v.SessionTranscripts)
	}
	if v.RequireBoundary {
		w.WriteString("No session starts without a boundary that lacks nothing.\n")
	}
	for _, hook := range v.Hooks {
		fmt.Fprintf(w, "A hook starts sessions: %s\n", hook)
	}
	for _, s := range v.Sources {
		fmt.Fprintf(w, "Files of projects may choose: %s\n", s.Origin)
	}
	for _, t := range v.ToolTiers {
		fmt.Fprintf(w, "From tier %s: the tool %s\n", t.Tier, t.Tool)
	}
}

func describePullRequests(w *strings.Builder, v policy.View) {
	kind, labels, forks := "ready for review", "are left out", "may not be targeted"
	if v.PullRequests.Draft {
		kind = "as drafts"
	}
	if v.PullRequests.CreateLabels {
		labels = "are made"
	}
	if v.AllowForks {
		forks = "may be targeted"
	}
	fmt.Fprintf(w, "Pull requests are opened %s; labels that a repository lacks %s; forks %s.\n", kind, labels, forks)
	fmt.Fprintf(w, "Reviewers: %s. Assignees: %s.\n", app.OrAll(v.PullRequests.Reviewers, "none"),
		app.OrAll(v.PullRequests.Assignees, "none"))
}

// pathVerdict is the answer for one path.
type pathVerdict struct {
	Path    string     `json:"path"`
	Allowed bool       `json:"allowed"`
	Code    fault.Code `json:"code"` // "" when allowed
	Rule    string     `json:"rule"`
}

func policyCheckCommand(a *commandLine) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "check PATH...",
		Short: "Say which paths may be proposed, and by which rule",
		Long: "check answers for each path whether agents of the tier (--tier, CLAUDEOPS_TIER) may propose a change of it, " +
			"and which\n" +
			"rule says so. It ends with exit code 3 if one of them may not be changed. --paths-from takes a JSON array of strings,\n" +
			"for paths that no command line can hold.",
		Example: "  claudeops policy check checks/disk.md prompts/observe.md\n" +
			"  claudeops --tier 3 policy check agentpack.yaml",
		Args: usageArgs(cobra.ArbitraryArgs),
		RunE: func(_ *cobra.Command, args []string) error {
			paths, err := pathsToCheck(a, args, from)
			if err != nil {
				return err
			}
			return runPolicyCheck(a, paths)
		},
	}
	cmd.Flags().StringVar(&from, "paths-from", "", "file with a JSON array of strings; - reads stdin")
	return cmd
}

func pathsToCheck(a *commandLine, args []string, from string) ([]string, error) {
	switch {
	case from == "" && len(args) == 0:
		return nil, app.Usage(errors.New("name at least one path, or give --paths-from"))
	case from == "":
		return args, nil
	case len(args) > 0:
		return nil, app.Usage(errors.New("give paths as arguments or with --paths-from, not both"))
	}
	text, err := a.readInput(from)
	if err != nil {
		return nil, err
	}
	var wrapped struct {
		Paths []string `json:"paths" required:"true"`
	}
	if violations := strictjson.Decode([]byte(`{"paths":`+string(text)+`}`), &wrapped,
		strictjson.Options{}); len(violations) > 0 {
		return nil, app.Usage(fmt.Errorf("--paths-from %s: not a JSON array of strings: %s", from, violations[0].Message))
	}
	return wrapped.Paths, nil
}

// verdictOf returns the answer for one path in a pull request of its own: the scope's, and where that allows it, the
// tier's.
func verdictOf(rules policy.Policy, tier gitprovider.Tier, path string) (verdict pathVerdict, why string) {
	answer := rules.CheckPaths(tier, []string{path})
	v := answer.Paths[0]
	if v.Allowed && len(answer.TierSays) > 0 {
		denied := answer.TierSays[0]
		return pathVerdict{Path: path, Code: denied.Code, Rule: "tier " + tier.String()}, denied.Message
	}
	return pathVerdict{Path: path, Allowed: v.Allowed, Code: v.Code, Rule: v.Rule}, v.Message
}

func runPolicyCheck(a *commandLine, paths []string) error {
	effective, err := a.program().Wire(app.Needs{}).Rules.Effective()
	if err != nil {
		return err
	}
	verdicts := make([]pathVerdict, 0, len(paths))
	refused, said := 0, ""
	for _, path := range paths {
		verdict, why := verdictOf(effective, a.program().Wire(app.Needs{}).Cfg.Permissions.Tier, path)
		if !verdict.Allowed {
			refused++
		}
		if verdict.Code == fault.TierDenied {
			said = why
		}
		verdicts = append(verdicts, verdict)
	}
	err = a.print(listOf(verdicts), func(w *strings.Builder) {
		for _, v := range verdicts {
			word := "yes"
			if !v.Allowed {
				word = "no "
			}
			fmt.Fprintf(w, "%s  %+q  %s\n", word, v.Path, v.Rule)
		}
		if said != "" {
			fmt.Fprintf(w, "\n%s\n", said)
		}
	})
	if err == nil && refused > 0 {
		return silentExit(fault.ExitRefused)
	}
	return err
}
