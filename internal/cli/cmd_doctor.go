package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/doctor"
)

type doctorOptions struct {
	online bool
	repos  []string
}

func doctorCommand(a *commandLine) *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the configuration and say what would stop a pull request",
		Long: "doctor opens what is configured: records, policy, key, local repositories, the agents' CLI. It contacts no " +
			"server. With\n" +
			"--online it also asks the providers, looks up every repository that is named, and says what our tokens may do there:\n" +
			"enough to propose, and not so much that they could merge. It ends with exit code 3 if something would stop a pull\n" +
			"request: every one, or every one at a provider that is configured or to a repository that is named.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), a, o) },
	}
	cmd.Flags().BoolVar(&o.online, "online", false, "ask the providers about our access")
	cmd.Flags().StringArrayVar(&o.repos, "repo", nil,
		"repository to ask about, as owner/name, beside those that CLAUDEOPS_REPOS and the policy name; may be repeated")
	return cmd
}

func runDoctor(ctx context.Context, a *commandLine, o doctorOptions) error {
	findings, err := findingsOf(ctx, a, o)
	if err != nil {
		return err
	}
	blocking := doctor.Blocking(findings)
	answer := map[string]any{"findings": findings, "can_open": len(blocking) == 0, "blocking": blocking}
	err = a.print(answer, func(w *strings.Builder) { describeFindings(w, findings, blocking) })
	if err == nil && len(blocking) > 0 {
		return silentExit(fault.ExitRefused)
	}
	return err
}

// findingsOf returns doctor's findings.
func findingsOf(ctx context.Context, a *commandLine, o doctorOptions) ([]doctor.Finding, error) {
	if len(o.repos) > 0 && !o.online {
		return nil, app.Usage(errors.New("--repo goes with --online"))
	}
	var repos []gitprovider.RepoRef
	for _, name := range o.repos {
		repo, err := parseRepo(name)
		if err != nil {
			return nil, err
		}
		repos = append(repos, repo)
	}
	d := app.NewDoctorOf(a.program().Wire(app.Needs{}))
	findings := append(d.Look(ctx), a.program().ToolsetFindings(ctx)...)
	if o.online {
		findings = append(findings, d.Online(ctx, repos)...)
	}
	return doctor.Merge(findings), nil
}

func describeFindings(w *strings.Builder, findings []doctor.Finding, blocking []string) {
	var rows [][]string
	for _, f := range findings {
		rows = append(rows, findingRows(f)...)
	}
	columns(w, rows)
	if len(blocking) == 0 {
		w.WriteString("\nNothing here would stop a pull request.\n")
		return
	}
	fmt.Fprintf(w, "\nPull requests would be stopped by: %s.\n", strings.Join(blocking, ", "))
}

// findingRows returns the lines about a part: how it is, and below it what it stops and what to do.
func findingRows(f doctor.Finding) [][]string {
	detail := f.Detail
	if f.Title != "" {
		detail = f.Title + ": " + detail
	}
	rows := [][]string{{f.Status, f.Name, detail}}
	if f.Stops != "" && f.Status != doctor.OK {
		rows = append(rows, []string{"", "", "it stops " + f.Stops})
	}
	if f.Do != "" {
		rows = append(rows, []string{"", "", "to change that: " + f.Do})
	}
	return rows
}
