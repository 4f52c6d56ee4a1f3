package web

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// What the overview looks back on.
const (
	chartDays    = 14
	lastAttempts = 10
	dryRunDays   = 30
	maxNeeds     = 30
)

func (s *Server) overviewPage(c *call) (answer, error) {
	if err := decodeQuery(c, &struct{}{}); err != nil {
		return answer{}, err
	}
	view := pages.Overview{
		Page: s.frame(c, "Overview", "/"), Tier: s.Tier.String(), TierMeans: s.tierMeans(), DryRun: s.DryRun,
		ReadOnly: s.words(s.ReadOnly), Days: chartDays,
	}
	for _, p := range s.listProviders() {
		view.Providers = append(view.Providers, pages.Provider{
			Name: p.Name, Enabled: p.Enabled, Hosts: strings.Join(p.Hosts, ", "), Disabled: s.words(p.Disabled),
		})
	}
	rows, err := s.Records.Attempts(c.Context(), record.AttemptQuery{Limit: lastAttempts})
	if err != nil {
		return answer{}, err
	}
	if view.Attempts, err = s.attemptRows(c.Context(), rows); err != nil {
		return answer{}, err
	}
	if view.Counts, err = s.counts(c.Context()); err != nil {
		return answer{}, err
	}
	if view.Refusals, err = s.refusals(c.Context()); err != nil {
		return answer{}, err
	}
	if last, _ := s.pulls.seen(); last.number > 0 {
		view.Open = &pages.Open{Count: last.open, Failed: last.failed, At: pages.WhenOf(last.at, s.Now())}
	}
	if view.Needs, err = s.needs(c); err != nil {
		return answer{}, err
	}
	if view.Running, err = s.runningSessions(c); err != nil {
		return answer{}, err
	}
	return s.html("overview", view)
}

func (s *Server) tierMeans() string {
	rules, err := s.Policy()
	if err != nil {
		return "the policy cannot be read"
	}
	n := rules.Tiers.MaxFiles(s.Tier)
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

func (s *Server) counts(ctx context.Context) (out []pages.Count, err error) {
	counts, err := s.Summary.ProposalCounts(ctx)
	for _, state := range stateMeans() {
		if n := counts[record.ProposalState(state[0])]; n > 0 {
			out = append(out, pages.Count{Text: strings.ReplaceAll(state[0], "_", " "), Means: state[1], Count: n})
		}
	}
	return out, err
}

func (s *Server) refusals(ctx context.Context) (out []pages.Bar, err error) {
	since := s.Now().UTC().AddDate(0, 0, -chartDays)
	counts, err := s.Summary.RefusalsByGate(ctx, since)
	for _, g := range counts {
		q := url.Values{"gate": {string(g.Gate)}, "outcome": {"refused"}, "since": {since.Format(time.DateOnly)}}
		out = append(out, pages.Bar{Gate: string(g.Gate), Count: g.Count, Max: counts[0].Count, Link: "/proposals?" + q.Encode()})
	}
	return out, err
}

// needs is what waits for a person, the most urgent first.
func (s *Server) needs(c *call) (out []pages.Need, err error) {
	switch v := s.verified(); v.State {
	case "broken":
		out = append(out, pages.Need{What: "The audit is not whole", Why: v.Problem, Link: "/audit", At: v.At})
	case "failed":
		out = append(out, pages.Need{What: "The audit could not be verified", Why: v.Problem, Link: "/audit"})
	}
	if s.ReadOnly != "" {
		out = append(out, pages.Need{What: "No proposals are taken", Why: s.words(s.ReadOnly), Link: "/doctor"})
	}
	disabled, err := s.disabledNeeds(c.Context())
	if err != nil {
		return nil, err
	}
	out = append(out, disabled...)
	unfinished, err := s.Summary.Unfinished(c.Context())
	if err != nil {
		return nil, err
	}
	for _, p := range unfinished {
		if p.Abandoned || p.State == record.StateUnsettled {
			out = append(out, s.needOf(p, "unfinished: a process ended or gave up before it was done; the next proposal settles it"))
		}
	}
	sessions, err := s.sessionNeeds(c)
	if err != nil {
		return nil, err
	}
	out = append(out, sessions...)
	waiting, err := s.Summary.WaitingDryRuns(c.Context(), s.Now().AddDate(0, 0, -dryRunDays))
	for _, p := range waiting {
		out = append(out, s.needOf(p, "a dry run, which you may open"))
	}
	if len(out) > maxNeeds {
		rest := pages.Need{What: fmt.Sprintf("%d more", len(out)-maxNeeds), Why: "not shown here"}
		out = append(out[:maxNeeds:maxNeeds], rest)
	}
	return out, err
}

// disabledNeeds are the providers that are disabled although there are repositories at them. One that nobody uses needs
// nobody, unless there is no other.
func (s *Server) disabledNeeds(ctx context.Context) (out []pages.Need, err error) {
	repos, err := s.Summary.Repositories(ctx)
	enabled := false
	for _, p := range s.listProviders() {
		enabled = enabled || p.Enabled
		used := slices.ContainsFunc(repos, func(r record.RepoName) bool { return r.Provider == p.Name })
		if !p.Enabled && used {
			out = append(out, pages.Need{What: "The provider " + p.Name + " is disabled", Why: s.words(p.Disabled), Link: "/doctor"})
		}
	}
	if !enabled {
		out = append(out, pages.Need{What: "No provider is enabled", Why: "each says above what it lacks", Link: "/doctor"})
	}
	return out, err
}

func (s *Server) needOf(p record.Proposal, why string) pages.Need {
	repo := gitprovider.RepoRef{Owner: p.Owner, Name: p.Repo}
	return pages.Need{
		What: s.words(p.Title), Why: s.words(repo.String()) + ": " + why, Link: "/proposals/" + url.PathEscape(p.ID),
		At: pages.WhenOf(p.CreatedAt, s.Now()),
	}
}
