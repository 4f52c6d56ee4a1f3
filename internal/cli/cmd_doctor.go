package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/fault"
)

// finding is one line of doctor. Blocks says that no pull request can be opened as long as it stands.
type finding struct {
	Name   string `json:"name"`
	Status string `json:"status"` // "ok", "warning", "off" or "problem"
	Detail string `json:"detail"`
	Blocks bool   `json:"blocks"`
}

type doctorOptions struct {
	online bool
	repos  []string
}

func (a *app) doctorCommand() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the configuration and say what would stop a pull request",
		Long: "doctor looks at providers, records, policy, tier and git without contacting any server. With --online it also asks\n" +
			"the providers what our tokens may do: enough to propose, and not so much that they could merge. It ends with exit\n" +
			"code 3 if something would stop every pull request, or every one to a repository that it was asked about.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.online, "online", false, "ask the providers about our access")
	cmd.Flags().StringArrayVar(&o.repos, "repo", nil,
		"repository to ask about, as owner/name; may be repeated (default: those that CLAUDEOPS_REPOS and the policy name)")
	return cmd
}

func (a *app) doctor(ctx context.Context, o doctorOptions) error {
	if len(o.repos) > 0 && !o.online {
		return usageError{errors.New("--repo goes with --online")}
	}
	p := a.wire()
	findings := p.diagnose(ctx)
	if o.online {
		asked, err := p.online(ctx, o.repos)
		if err != nil {
			return err
		}
		findings = append(findings, asked...)
	}
	var blocking []string
	for _, f := range findings {
		if f.Blocks && !slices.Contains(blocking, f.Name) {
			blocking = append(blocking, f.Name)
		}
	}
	answer := map[string]any{
		"findings": findings, "can_open": len(blocking) == 0, "blocking": append([]string{}, blocking...),
	}
	err := a.print(answer, func(w *strings.Builder) { describeFindings(w, findings, blocking) })
	if err == nil && len(blocking) > 0 {
		return silentExit(fault.ExitRefused)
	}
	return err
}

func describeFindings(w *strings.Builder, findings []finding, blocking []string) {
	var rows [][]string
	for _, f := range findings {
		rows = append(rows, []string{f.Status, f.Name, f.Detail})
	}
	columns(w, rows)
	if len(blocking) == 0 {
		w.WriteString("\nNothing here would stop a pull request.\n")
		return
	}
	fmt.Fprintf(w, "\nNo pull request can be opened because of: %s.\n", strings.Join(blocking, ", "))
}

func (p *parts) diagnose(ctx context.Context) []finding {
	out := []finding{p.tierFinding(), p.switchFinding(), p.policyFinding(), p.stateFinding(ctx)}
	out = append(out, p.providerFindings()...)
	out = append(out, p.gitFinding(ctx), p.mountedFinding(), p.noticeFinding(ctx), p.sessionFinding(), p.hookFinding())
	for _, w := range p.cfg.Warnings {
		out = append(out, finding{Name: "configuration", Status: "warning", Detail: w})
	}
	return out
}

func (p *parts) tierFinding() finding {
	limit := p.policy.Tiers.MaxFiles(p.cfg.Tier)
	f := finding{Name: "tier", Status: "ok"}
	f.Detail = fmt.Sprintf("tier %s may change up to %d files in one pull request", p.cfg.Tier, limit)
	if limit == 0 {
		f.Status, f.Blocks = "problem", true
		f.Detail = fmt.Sprintf("tier %s may not propose; set CLAUDEOPS_TIER to 2 or 3 for an agent that may", p.cfg.Tier)
	}
	return f
}

func (p *parts) switchFinding() finding {
	switch {
	case p.readOnlyReason() != "":
		return finding{Name: "switches", Status: "problem", Blocks: true, Detail: p.readOnlyReason()}
	case p.cfg.DryRun:
		return finding{Name: "switches", Status: "problem", Blocks: true,
			Detail: "CLAUDEOPS_DRY_RUN is on: everything is checked, nothing is written"}
	}
	return finding{Name: "switches", Status: "ok", Detail: "neither dry run nor read-only"}
}

func (p *parts) policyFinding() finding {
	if p.policyErr != nil {
		return finding{Name: "policy", Status: "problem", Blocks: true, Detail: p.policyErr.Error()}
	}
	return finding{Name: "policy", Status: "ok", Detail: p.policy.Source + ", hash " + p.policy.Hash()}
}

func (p *parts) stateFinding(ctx context.Context) finding {
	if err := p.store.Check(ctx); err != nil {
		return finding{Name: "records", Status: "problem", Blocks: true, Detail: fault.From(err).Message}
	}
	report, err := p.store.VerifyAudit(ctx, "")
	if err != nil {
		return finding{Name: "records", Status: "problem", Blocks: true, Detail: fault.From(err).Message}
	}
	if !report.OK() {
		return finding{Name: "records", Status: "warning", Detail: "the audit is not whole: " + report.Problem}
	}
	return finding{Name: "records", Status: "ok", Detail: fmt.Sprintf("%s, %d attempts", p.store.Path(), report.Rows)}
}

func (p *parts) providerFindings() []finding {
	var out []finding
	enabled := 0
	for _, e := range p.registry.Entries() {
		f := finding{Name: "provider " + e.Name, Status: "ok", Detail: "hosts " + strings.Join(e.Hosts, ", ")}
		if e.Provider == nil {
			f.Status, f.Detail = "off", e.Disabled
		} else {
			enabled++
		}
		out = append(out, f)
	}
	if enabled == 0 {
		out = append(out, finding{Name: "providers", Status: "problem", Blocks: true,
			Detail: "none is enabled; set GITHUB_TOKEN, or GITEA_URL and GITEA_TOKEN, or CLAUDEOPS_LOCAL_ROOT"})
	}
	return out
}

func (p *parts) noticeFinding(ctx context.Context) finding {
	names := p.targets.Names()
	if len(names) == 0 {
		return finding{Name: "notifications", Status: "off", Detail: "neither CLAUDEOPS_APPRISE_URLS nor CLAUDEOPS_WEBHOOK_URL is set"}
	}
	counts, err := p.store.NoticeCounts(ctx)
	if err != nil {
		return finding{Name: "notifications", Status: "warning", Detail: fault.From(err).Message}
	}
	detail := fmt.Sprintf("%s; %d wait, %d were given up", strings.Join(names, ", "), counts.Pending, counts.GivenUp)
	return finding{Name: "notifications", Status: "ok", Detail: detail}
}

// gitFinding matters to the local provider alone.
func (p *parts) gitFinding(ctx context.Context) finding {
	if p.local == nil {
		return finding{Name: "git", Status: "off", Detail: "used by the local provider only"}
	}
	version, err := p.local.GitVersion(ctx)
	if err != nil {
		return finding{Name: "git", Status: "problem", Blocks: true, Detail: fault.From(err).Message}
	}
	return finding{Name: "git", Status: "ok", Detail: version}
}
