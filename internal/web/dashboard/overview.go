package dashboard

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/policy"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/records"
)

// overview is the first page.
type overview struct {
	*renderer
	settings handler.Settings
	attempts records.Attempts
	summary  records.Summary
	registry *gitprovider.Registry
	policy   func() (policy.Policy, error)
	health   *health.Checker
	rows     *attemptRows
	pulls    *pullList
	sessions *sessionPages
}

// What the overview looks back on.
const (
	chartDays    = 14
	lastAttempts = 10
	dryRunDays   = 30
	maxNeeds     = 30
)

func (h *overview) show(req *handler.Request) (handler.Response, error) {
	if err := handler.DecodeQuery(req, &struct{}{}); err != nil {
		return handler.Response{}, err
	}
	view := pages.Overview{
		Page: h.frame(req, "Overview", "/"), Tier: h.settings.Tier.String(), TierMeans: h.tierMeans(), DryRun: h.settings.DryRun,
		ReadOnly: h.env.Line(h.settings.ReadOnly), Days: chartDays,
	}
	for _, p := range h.registry.Entries() {
		view.Providers = append(view.Providers, pages.Provider{
			Name: p.Name, Enabled: p.Provider != nil, Hosts: strings.Join(p.Hosts, ", "), Disabled: h.env.Line(p.Disabled),
		})
	}
	rows, err := h.attempts.Attempts(req.Context(), record.AttemptQuery{Limit: lastAttempts})
	if err != nil {
		return handler.Response{}, err
	}
	if view.Attempts, err = h.rows.of(req.Context(), rows); err != nil {
		return handler.Response{}, err
	}
	if view.Counts, err = h.counts(req.Context()); err != nil {
		return handler.Response{}, err
	}
	if view.Refusals, err = h.refusals(req.Context()); err != nil {
		return handler.Response{}, err
	}
	if last, _ := h.pulls.memo.seen(); last.number > 0 {
		view.Open = &pages.Open{Count: last.open, Failed: last.failed, At: pages.WhenOf(last.at, h.env.Now())}
	}
	if view.Needs, err = h.needs(req); err != nil {
		return handler.Response{}, err
	}
	if view.Running, err = h.sessions.running(req); err != nil {
		return handler.Response{}, err
	}
	return h.html("overview", view)
}

func (h *overview) tierMeans() string {
	rules, err := h.policy()
	if err != nil {
		return "the policy cannot be read"
	}
	n := rules.Tiers.MaxFiles(h.settings.Tier)
	if n == 0 {
		return "may not propose"
	}
	return fmt.Sprintf("may change %d files in one pull request", n)
}

// stateMeans are the states of proposals, in the order in which they are shown.
func stateMeans() [][2]string {
	return [][2]string{
		{string(record.StateOpened), "became pull requests"}, {string(record.StateDryRun), "checked, and nothing written"},
		{string(record.StateReserved), "being written, nothing there yet"}, {string(record.StateCommitted), "being written, the branch is there"},
		{string(record.StateUnsettled), "left behind; nobody knows what is there"}, {string(record.StateFailed), "ended without a pull request"},
	}
}

func (h *overview) counts(ctx context.Context) (out []pages.Count, err error) {
	counts, err := h.summary.ProposalCounts(ctx)
	for _, state := range stateMeans() {
		if n := counts[record.ProposalState(state[0])]; n > 0 {
			out = append(out, pages.Count{Text: strings.ReplaceAll(state[0], "_", " "), Means: state[1], Count: n})
		}
	}
	return out, err
}

func (h *overview) refusals(ctx context.Context) (out []pages.Bar, err error) {
	since := h.env.Now().UTC().AddDate(0, 0, -chartDays)
	counts, err := h.summary.RefusalsByGate(ctx, since)
	for _, g := range counts {
		q := url.Values{"gate": {string(g.Gate)}, "outcome": {"refused"}, "since": {since.Format(time.DateOnly)}}
		out = append(out, pages.Bar{Gate: string(g.Gate), Count: g.Count, Max: counts[0].Count, Link: "/proposals?" + q.Encode()})
	}
	return out, err
}

// needs is what waits for a person, the most urgent first.
func (h *overview) needs(req *handler.Request) (out []pages.Need, err error) {
	switch v := h.verification(h.health.LastVerification()); v.State {
	case "broken":
		out = append(out, pages.Need{What: "The audit is not whole", Why: v.Problem, Link: "/audit", At: v.At})
	case "failed":
		out = append(out, pages.Need{What: "The audit could not be verified", Why: v.Problem, Link: "/audit"})
	}
	if h.settings.ReadOnly != "" {
		out = append(out, pages.Need{What: "No proposals are taken", Why: h.env.Line(h.settings.ReadOnly), Link: "/doctor"})
	}
	disabled, err := h.disabledNeeds(req.Context())
	if err != nil {
		return nil, err
	}
	out = append(out, disabled...)
	unfinished, err := h.summary.Unfinished(req.Context())
	if err != nil {
		return nil, err
	}
	for _, p := range unfinished {
		if p.Abandoned || p.State == record.StateUnsettled {
			out = append(out, h.needOf(p, "unfinished: a process ended or gave up before it was done; the next proposal settles it"))
		}
	}
	sessions, err := h.sessions.needs(req)
	if err != nil {
		return nil, err
	}
	out = append(out, sessions...)
	waiting, err := h.summary.WaitingDryRuns(req.Context(), h.env.Now().AddDate(0, 0, -dryRunDays))
	for _, p := range waiting {
		out = append(out, h.needOf(p, "a dry run, which you may open"))
	}
	if len(out) > maxNeeds {
		rest := pages.Need{What: fmt.Sprintf("%d more", len(out)-maxNeeds), Why: "not shown here"}
		out = append(out[:maxNeeds:maxNeeds], rest)
	}
	return out, err
}

// disabledNeeds are the providers that are disabled although there are repositories at them. One that nobody uses needs
// nobody, unless there is no other.
func (h *overview) disabledNeeds(ctx context.Context) (out []pages.Need, err error) {
	repos, err := h.summary.Repositories(ctx)
	enabled := false
	for _, p := range h.registry.Entries() {
		enabled = enabled || p.Provider != nil
		used := slices.ContainsFunc(repos, func(r record.RepoName) bool { return r.Provider == p.Name })
		if p.Provider == nil && used {
			out = append(out, pages.Need{What: "The provider " + p.Name + " is disabled", Why: h.env.Line(p.Disabled), Link: "/doctor"})
		}
	}
	if !enabled {
		out = append(out, pages.Need{What: "No provider is enabled", Why: "each says above what it lacks", Link: "/doctor"})
	}
	return out, err
}

func (h *overview) needOf(p record.Proposal, why string) pages.Need {
	repo := gitprovider.RepoRef{Owner: p.Owner, Name: p.Repo}
	return pages.Need{
		What: h.env.Line(p.Title), Why: h.env.Line(repo.String()) + ": " + why, Link: "/proposals/" + url.PathEscape(p.ID),
		At: pages.WhenOf(p.CreatedAt, h.env.Now()),
	}
}
