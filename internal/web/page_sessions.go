package web

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/people"
	"github.com/claudeops/claudeops/internal/session"
	"github.com/claudeops/claudeops/internal/web/pages"
)

type sessionPageParams struct {
	State  string `query:"state" enum:"running,succeeded,failed,timeout,limit,cancelled,interrupted,skipped"`
	Before string `query:"before"`
}

func (s *Server) sessionsPage(c *call) (answer, error) {
	var q sessionPageParams
	if err := decodeQuery(c, &q); err != nil {
		return answer{}, err
	}
	rows, err := s.SessionRecords.Sessions(c.Context(), session.Query{Before: q.Before, State: session.State(q.State), Limit: pageSize + 1})
	if err != nil {
		return answer{}, err
	}
	plan := s.Sessions.Plan()
	view := pages.Sessions{Page: s.frame(c, "Sessions", "/sessions"), Filtered: q.State != "", Next: pages.WhenOf(plan.Next, s.Now())}
	if plan.Every > 0 {
		view.Every = lengthOf(plan.Every)
	}
	var states []string
	for _, state := range session.States() {
		states = append(states, string(state))
	}
	view.States = options(q.State, states)
	at := url.Values{}
	if q.State != "" {
		at.Set("state", q.State)
	}
	if q.Before != "" {
		view.First = "?" + at.Encode()
	}
	if len(rows) > pageSize {
		rows = rows[:pageSize]
		at.Set("before", rows[pageSize-1].ID)
		view.Older = "?" + at.Encode()
	}
	for _, r := range rows {
		view.Rows = append(view.Rows, s.sessionRow(c, r))
	}
	if !c.who.Scopes.Has(access.Operate) {
		view.WhyNot = "Starting and stopping sessions needs the scope operate."
		return s.html("sessions", view)
	}
	view.Start = &pages.StartForm{}
	for tier := gitprovider.TierObserve; tier <= min(plan.MaxTier, c.who.Ceiling, gitprovider.TierRemediate); tier++ {
		view.Start.Tiers = append(view.Start.Tiers, pages.Option{Value: tier.String(), Text: "Tier " + tier.String(), Chosen: tier == gitprovider.TierObserve})
	}
	return s.html("sessions", view)
}

func sessionPath(id string) string { return "/sessions/" + url.PathEscape(id) }

// sessionRow is a session as listings show it.
func (s *Server) sessionRow(c *call, r session.Record) pages.SessionRow {
	r = s.counted(c, r)
	row := pages.SessionRow{
		Link: sessionPath(r.ID), ID: s.words(r.ID), State: string(r.State), Tier: r.Tier.String(), Trigger: s.words(string(r.Trigger)),
		Reason: s.words(r.Reason), At: pages.WhenOf(r.StartedAt, s.Now()), Turns: r.Turns, Cost: "cost not known",
		Proposals: proposalsInWords(r.Counts),
	}
	ended := r.EndedAt
	if ended.IsZero() {
		ended = s.Now()
	}
	row.Took = lengthOf(ended.Sub(r.StartedAt))
	if r.State == session.StateSucceeded || r.CostUSD > 0 { // the CLI says it with its last word
		row.Cost = fmt.Sprintf("%.4f USD", r.CostUSD)
	}
	return row
}

// lengthOf is a time as people write it, such as 1h or 2m30s.
func lengthOf(d time.Duration) string {
	text := max(d, 0).Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func proposalsInWords(n session.Counts) string {
	var words []string
	for _, part := range []struct {
		count int
		word  string
	}{
		{n.Opened, "opened"}, {n.Reused, "reused"}, {n.DryRun, "in dry run"}, {n.Refused, "refused"}, {n.Failed, "failed"},
	} {
		if part.count > 0 {
			words = append(words, strconv.Itoa(part.count)+" "+part.word)
		}
	}
	if len(words) == 0 {
		return "no proposals"
	}
	return "proposals: " + strings.Join(words, ", ")
}

// startByForm starts a session for a person, who is led to it.
func (s *Server) startByForm(c *call) (answer, error) {
	form, err := readForm(c)
	tier := gitprovider.Tier(0)
	if err == nil {
		tier, err = tierOf(form)
	}
	if err != nil {
		return answer{}, s.Sessions.Refused(c.Context(), s.operator(c), people.StartSession, err)
	}
	id, err := s.Sessions.Start(c.Context(), s.operator(c), session.Spec{
		Tier: tier, Note: strings.ReplaceAll(form.Get("note"), "\r\n", "\n"), Trigger: session.TriggerDashboard, Ceiling: c.who.Ceiling,
	})
	if err != nil {
		return answer{}, err
	}
	return s.goTo(sessionPath(id)), nil
}

// tierOf is the tier that a form asks for. It never is a guess.
func tierOf(form url.Values) (gitprovider.Tier, error) {
	tier, ok := gitprovider.ParseTier(form.Get("tier"))
	if !ok || form.Get("tier") == "" || len(form["tier"]) != 1 || len(form["note"]) > 1 {
		return 0, fault.New(fault.InvalidArgument, "the form must have the field tier, once: 1, 2 or 3; and note at most once")
	}
	return tier, nil
}

// stopByForm stops a session for a person, who is led back to it.
func (s *Server) stopByForm(c *call) (answer, error) {
	id := c.PathValue("id")
	if err := s.Sessions.Stop(c.Context(), s.operator(c), id); err != nil {
		return answer{}, err
	}
	return s.goTo(sessionPath(id)), nil
}

// What the overview tells of sessions that went wrong.
const (
	sessionDays     = 7
	maxSessionNeeds = 5
)

// sessionNeeds are the sessions of the last days that did not come to a good end, as long as none of their tier has since.
func (s *Server) sessionNeeds(c *call) (out []pages.Need, err error) {
	rows, err := s.SessionRecords.Sessions(c.Context(), session.Query{Limit: pageSize})
	if err != nil {
		return nil, err
	}
	bad := []session.State{session.StateFailed, session.StateTimeout, session.StateLimit, session.StateInterrupted}
	good := map[gitprovider.Tier]bool{}
	for _, r := range rows {
		good[r.Tier] = good[r.Tier] || r.State == session.StateSucceeded
		if good[r.Tier] || !slices.Contains(bad, r.State) || s.Now().Sub(r.StartedAt) > sessionDays*24*time.Hour || len(out) == maxSessionNeeds {
			continue
		}
		out = append(out, pages.Need{
			What: "A session of tier " + r.Tier.String() + " ended badly: " + string(r.State), Why: s.words(r.Reason), Link: sessionPath(r.ID),
			At: pages.WhenOf(r.StartedAt, s.Now()),
		})
	}
	return out, nil
}

// runningSessions are those that run now.
func (s *Server) runningSessions(c *call) (out []pages.SessionRow, err error) {
	rows, err := s.SessionRecords.Sessions(c.Context(), session.Query{State: session.StateRunning, Limit: maxSessionNeeds})
	for _, r := range rows {
		out = append(out, s.sessionRow(c, r))
	}
	return out, err
}
