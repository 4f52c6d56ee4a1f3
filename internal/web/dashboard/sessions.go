package dashboard

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
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/records"
)

// sessionPages show the sessions of agents, and start and stop them.
type sessionPages struct {
	*renderer
	agents   Sessions
	records  records.Sessions
	attempts records.Attempts
	rows     *attemptRows
}

type sessionPageParams struct {
	State  string `query:"state" enum:"running,succeeded,failed,timeout,limit,cancelled,interrupted,skipped"`
	Before string `query:"before"`
}

func (h *sessionPages) list(req *handler.Request) (handler.Response, error) {
	var q sessionPageParams
	if err := handler.DecodeQuery(req, &q); err != nil {
		return handler.Response{}, err
	}
	rows, err := h.records.Sessions(req.Context(), session.Query{Before: q.Before, State: session.State(q.State), Limit: pageSize + 1})
	if err != nil {
		return handler.Response{}, err
	}
	plan := h.agents.Plan()
	view := pages.Sessions{Page: h.frame(req, "Sessions", "/sessions"), Filtered: q.State != "", Next: pages.WhenOf(plan.Next, h.env.Now())}
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
		view.Rows = append(view.Rows, h.sessionRow(req, r))
	}
	if !req.Principal.Scopes.Has(access.Operate) {
		view.WhyNot = "Starting and stopping sessions needs the scope operate."
		return h.html("sessions", view)
	}
	view.Start = &pages.StartForm{}
	for tier := gitprovider.TierObserve; tier <= min(plan.MaxTier, req.Principal.Ceiling, gitprovider.TierRemediate); tier++ {
		view.Start.Tiers = append(view.Start.Tiers, pages.Option{Value: tier.String(), Text: "Tier " + tier.String(), Chosen: tier == gitprovider.TierObserve})
	}
	return h.html("sessions", view)
}

func sessionPath(id string) string { return "/sessions/" + url.PathEscape(id) }

// sessionRow is a session as listings show it.
func (h *sessionPages) sessionRow(req *handler.Request, r session.Record) pages.SessionRow {
	r = records.CountNow(req.Context(), h.records, r)
	row := pages.SessionRow{
		Link: sessionPath(r.ID), ID: h.env.Line(r.ID), State: string(r.State), Tier: r.Tier.String(), Trigger: h.env.Line(string(r.Trigger)),
		Reason: h.env.Line(r.Reason), At: pages.WhenOf(r.StartedAt, h.env.Now()), Turns: r.Turns, Cost: "cost not known",
		Proposals: proposalsInWords(r.Counts),
	}
	ended := r.EndedAt
	if ended.IsZero() {
		ended = h.env.Now()
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
func (h *sessionPages) start(req *handler.Request) (handler.Response, error) {
	form, err := handler.ReadForm(req)
	tier := gitprovider.Tier(0)
	if err == nil {
		tier, err = tierOf(form)
	}
	if err != nil {
		return handler.Response{}, h.agents.Refused(req.Context(), operator(req), people.StartSession, err)
	}
	id, err := h.agents.Start(req.Context(), operator(req), session.Spec{
		Tier: tier, Note: strings.ReplaceAll(form.Get("note"), "\r\n", "\n"), Trigger: session.TriggerDashboard, Ceiling: req.Principal.Ceiling,
	})
	if err != nil {
		return handler.Response{}, err
	}
	return h.goTo(sessionPath(id)), nil
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
func (h *sessionPages) stop(req *handler.Request) (handler.Response, error) {
	id := req.PathValue("id")
	if err := h.agents.Stop(req.Context(), operator(req), id); err != nil {
		return handler.Response{}, err
	}
	return h.goTo(sessionPath(id)), nil
}

// What the overview tells of sessions that went wrong.
const (
	sessionDays     = 7
	maxSessionNeeds = 5
)

// sessionNeeds are the sessions of the last days that did not come to a good end, as long as none of their tier has since.
func (h *sessionPages) needs(req *handler.Request) (out []pages.Need, err error) {
	rows, err := h.records.Sessions(req.Context(), session.Query{Limit: pageSize})
	if err != nil {
		return nil, err
	}
	bad := []session.State{session.StateFailed, session.StateTimeout, session.StateLimit, session.StateInterrupted}
	good := map[gitprovider.Tier]bool{}
	for _, r := range rows {
		good[r.Tier] = good[r.Tier] || r.State == session.StateSucceeded
		if good[r.Tier] || !slices.Contains(bad, r.State) || h.env.Now().Sub(r.StartedAt) > sessionDays*24*time.Hour || len(out) == maxSessionNeeds {
			continue
		}
		out = append(out, pages.Need{
			What: "A session of tier " + r.Tier.String() + " ended badly: " + string(r.State), Why: h.env.Line(r.Reason), Link: sessionPath(r.ID),
			At: pages.WhenOf(r.StartedAt, h.env.Now()),
		})
	}
	return out, nil
}

// runningSessions are those that run now.
func (h *sessionPages) running(req *handler.Request) (out []pages.SessionRow, err error) {
	rows, err := h.records.Sessions(req.Context(), session.Query{State: session.StateRunning, Limit: maxSessionNeeds})
	for _, r := range rows {
		out = append(out, h.sessionRow(req, r))
	}
	return out, err
}

// operator is who calls, for the record.
func operator(req *handler.Request) people.Operator {
	return people.Operator{By: req.Caller(), RequestID: req.ID}
}

// refused records an action on sessions that the guard has refused.
func (h *sessionPages) refused(action people.Action) func(*handler.Request, *fault.Error) error {
	return func(req *handler.Request, why *fault.Error) error {
		return h.agents.Refused(req.Context(), operator(req), action, why)
	}
}
