package dashboard

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/records"
)

// overview is the first page.
type overview struct {
	*renderer
	settings handler.Settings
	records  records.Records
	registry *gitprovider.Registry
	policy   func() (policy.Policy, error)
	health   *health.Checker
	sessions *sessionPages
	toolsets Toolsets
}

// What the overview looks back on.
const (
	chartDays    = 14
	lastAttempts = 10
	dryRunDays   = 30
	maxNeeds     = 30
	maxOpenPulls = 20
)

// overviewPage is what the first page shows.
type overviewPage struct {
	pages.Page
	Setup     setup
	Attempts  []attempt
	Chart     chart
	Pulls     []waitingPull
	MorePulls bool
	Refusals  []gateBar
	Days      int
	Needs     []need
	Running   []sessionRow
	Costs     []costRow
}

// setup is how the server is configured.
type setup struct {
	handler.Settings
	TierMeans string
	Providers []registration
}

// waitingPull is an open pull request, as it was last seen.
type waitingPull struct {
	record.PullRecord
	Page string    // address of our page, without the base
	At   time.Time // when it was proposed
}

// gateBar is one bar of the chart of refusals.
type gateBar struct {
	record.GateCount
	Max  int
	Link string
}

// need is something that needs a person.
type need struct {
	What, Why string
	Link      string // without the base
	At        time.Time
}

// registration is a provider as the overview shows it.
type registration struct{ gitprovider.Registration }

func (h *overview) providers() (out []registration) {
	for _, entry := range h.registry.Entries() {
		out = append(out, registration{entry})
	}
	return out
}

func (h *overview) show(req *handler.Request) (handler.Response, error) {
	if err := handler.DecodeQuery(req, &struct{}{}); err != nil {
		return handler.Response{}, err
	}
	view := overviewPage{
		Page: h.frame(req, "Overview", "/"), Days: chartDays,
		Setup: setup{h.settings, h.tierMeans(), h.providers()},
	}
	rows, err := h.records.Attempts.Attempts(req.Context(), record.AttemptQuery{Limit: lastAttempts})
	if err != nil {
		return handler.Response{}, err
	}
	if view.Attempts, err = attemptsOf(req.Context(), h.records.Pulls, rows); err != nil {
		return handler.Response{}, err
	}
	if view.Chart, err = h.chart(req.Context()); err != nil {
		return handler.Response{}, err
	}
	if view.Refusals, err = h.refusals(req.Context()); err != nil {
		return handler.Response{}, err
	}
	if view.Pulls, view.MorePulls, err = h.openPulls(req.Context()); err != nil {
		return handler.Response{}, err
	}
	if view.Needs, err = h.needs(req); err != nil {
		return handler.Response{}, err
	}
	if view.Running, err = h.sessions.running(req); err != nil {
		return handler.Response{}, err
	}
	if view.Costs, err = costs(req.Context(), h.sessions.records, h.env.Now()); err != nil {
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

// openPulls are the pull requests that wait for a review or a merge, the oldest first. They come from the record, so that the page
// is right before anybody has asked a provider, and costs it nothing.
func (h *overview) openPulls(ctx context.Context) (out []waitingPull, more bool, err error) {
	open, err := h.records.Pulls.OpenPulls(ctx, maxOpenPulls+1)
	if len(open) > maxOpenPulls {
		open, more = open[:maxOpenPulls], true
	}
	for _, p := range open {
		if link := pullLinkOf(p.PullKey, "", ""); link != nil {
			out = append(out, waitingPull{PullRecord: p, Page: link.Page, At: p.OpenedAt})
		}
	}
	return out, more, err
}

func (h *overview) refusals(ctx context.Context) (out []gateBar, err error) {
	since := h.env.Now().UTC().AddDate(0, 0, -chartDays)
	counts, err := h.records.Summary.RefusalsByGate(ctx, since)
	for _, g := range counts {
		q := url.Values{"gate": {string(g.Gate)}, "outcome": {"refused"}, "since": {since.Format(time.DateOnly)}}
		out = append(out, gateBar{g, counts[0].Count, "/proposals?" + q.Encode()})
	}
	return out, err
}

// needs is what waits for a person, the most urgent first.
func (h *overview) needs(req *handler.Request) (out []need, err error) {
	switch v := h.health.LastVerification(); {
	case v.Failure != "":
		out = append(out, need{What: "The audit could not be verified", Why: v.Failure, Link: "/audit"})
	case v.Known && !v.Report.OK():
		out = append(out, need{What: "The audit is not whole", Why: v.Report.Problem, Link: "/audit", At: v.At})
	}
	if h.settings.ReadOnly != "" {
		out = append(out, need{What: "No proposals are taken", Why: h.settings.ReadOnly, Link: "/doctor"})
	}
	disabled, err := h.disabledNeeds(req.Context())
	if err != nil {
		return nil, err
	}
	out = append(out, disabled...)
	unfinished, err := h.records.Summary.Unfinished(req.Context())
	if err != nil {
		return nil, err
	}
	for _, p := range unfinished {
		if p.Abandoned || p.State == record.StateUnsettled {
			out = append(out, needOf(p, "unfinished: a process ended or gave up before it was done; the next proposal settles it"))
		}
	}
	notices, err := h.undelivered(req.Context())
	if err != nil {
		return nil, err
	}
	out = append(out, notices...)
	deployments, err := h.toolsets.need()
	if err != nil {
		return nil, err
	}
	out = append(out, deployments...)
	sessions, err := h.sessions.needs(req)
	if err != nil {
		return nil, err
	}
	out = append(out, sessions...)
	waiting, err := h.records.Summary.WaitingDryRuns(req.Context(), h.env.Now().AddDate(0, 0, -dryRunDays))
	for _, p := range waiting {
		out = append(out, needOf(p, "a dry run, which you may open"))
	}
	if len(out) > maxNeeds {
		rest := need{What: fmt.Sprintf("%d more", len(out)-maxNeeds), Why: "not shown here"}
		out = append(out[:maxNeeds:maxNeeds], rest)
	}
	return out, err
}

// disabledNeeds are the providers that are disabled although there are repositories at them. One that nobody uses needs
// nobody, unless there is no other.
func (h *overview) disabledNeeds(ctx context.Context) (out []need, err error) {
	enabled := false
	for _, p := range h.registry.Entries() {
		if p.Provider != nil {
			enabled = true
			continue
		}
		used, err := h.records.Summary.Proposed(ctx, p.Name)
		if err != nil {
			return nil, err
		}
		if used {
			out = append(out, need{What: "The provider " + p.Name + " is disabled", Why: p.Disabled, Link: "/doctor"})
		}
	}
	if !enabled {
		out = append(out, need{What: "No provider is enabled", Why: "each says below what it lacks", Link: "/doctor"})
	}
	return out, nil
}

// undelivered are notices that nobody has got.
func (h *overview) undelivered(ctx context.Context) ([]need, error) {
	counts, err := h.records.Notices.NoticeCounts(ctx)
	if err != nil || counts.GivenUp == 0 && (counts.Pending == 0 || counts.LastError == "") {
		return nil, err
	}
	what := fmt.Sprintf("Notices not delivered: %d given up, %d waiting", counts.GivenUp, counts.Pending)
	return []need{{What: what, Why: counts.LastError, Link: "/doctor"}}, nil
}

func needOf(p record.Proposal, why string) need {
	repo := gitprovider.RepoRef{Owner: p.Owner, Name: p.Repo}
	return need{
		What: p.Title, Why: repo.String() + ": " + why, Link: proposalPath(p.ID),
		At: p.CreatedAt,
	}
}
