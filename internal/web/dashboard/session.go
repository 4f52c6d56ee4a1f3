package dashboard

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/session"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// Bounds of the page of a session.
const (
	eventsShown = 50
	eventRunes  = 4000
	longest     = 3 // sessions of a chain: each has a higher tier than the one before
)

type oneSessionParams struct {
	From int `query:"from"` // number of the first event; 0: the last ones
}

func (h *sessionPages) show(req *handler.Request) (handler.Response, error) {
	var q oneSessionParams
	if err := handler.DecodeQuery(req, &q); err != nil {
		return handler.Response{}, err
	}
	r, err := h.records.Session(req.Context(), req.PathValue("id"))
	if err != nil {
		return handler.Response{}, err
	}
	view := h.sessionView(req, r)
	if view.Chain, err = h.chain(req, r); err != nil {
		return handler.Response{}, err
	}
	if err := h.addEvents(req, &view, r.ID, q.From); err != nil {
		return handler.Response{}, err
	}
	rows, err := h.attempts.Attempts(req.Context(), record.AttemptQuery{Session: r.ID, Limit: pageSize + 1})
	if err != nil {
		return handler.Response{}, err
	}
	if len(rows) > pageSize {
		rows, view.More = rows[:pageSize], "/proposals?"+url.Values{"session": {r.ID}}.Encode()
	}
	if view.Attempts, err = h.rows.of(req.Context(), rows); err != nil {
		return handler.Response{}, err
	}
	return h.html("session", view)
}

func (h *sessionPages) sessionView(req *handler.Request, r session.Record) pages.SessionPage {
	text := func(t string) string { return h.env.Text(t, handler.MaxAgentText) }
	running := r.State == session.StateRunning
	view := pages.SessionPage{
		Page: h.frame(req, "Session of tier "+r.Tier.String(), "/sessions"), SessionRow: h.sessionRow(req, r), Running: running,
		CanStop: running && req.Principal.Scopes.Has(access.Operate), Ended: pages.WhenOf(r.EndedAt, h.env.Now()), Model: h.env.Line(r.Model),
		Claude: h.env.Line(r.Claude), DryRun: r.DryRun, ToolCalls: r.ToolCalls, Denied: r.Denied, Denials: pages.ListOf(r.Denials, h.env.Line),
		LeftOut: pages.ListOf(r.LeftOut, h.env.Line),
		Note:    text(r.Note), Report: text(r.Report), Stderr: text(r.Stderr), Escalation: h.env.Line(r.Escalation),
		Received: h.handoffView(r.Received), Left: h.handoffView(r.Handoff), Problem: h.env.Message(r.HandoffProblem),
	}
	view.Reason = h.env.Message(r.Reason)
	var odd []string
	for _, part := range []struct {
		count int
		word  string
	}{
		{r.CutLines, "lines beyond the bound"}, {r.BadLines, "lines that were no event"}, {r.Unstored, "events beyond what is kept"},
	} {
		if part.count > 0 {
			odd = append(odd, fmt.Sprint(part.count, " ", part.word))
		}
	}
	view.Odd = strings.Join(odd, ", ")
	return view
}

func (h *sessionPages) handoffView(given *session.Handoff) *pages.Handoff {
	if given == nil {
		return nil
	}
	text := func(t string) string { return h.env.Text(t, handler.MaxAgentText) }
	view := &pages.Handoff{
		Tier: given.RecommendedTier, Services: pages.ListOf(given.Services, h.env.Line), File: h.env.Line(given.WantedChange.File),
		Evidence: text(given.WantedChange.Evidence), Text: text(given.WantedChange.Text),
	}
	for _, finding := range given.Findings {
		view.Findings = append(view.Findings, text(finding))
	}
	return view
}

// chain lists the sessions that handed over to each other up to and after this one; none if it stands alone.
func (h *sessionPages) chain(req *handler.Request, r session.Record) ([]pages.Link, error) {
	all := []session.Record{r}
	follow := func(id func(session.Record) string, add func(session.Record)) error {
		at := r
		for id(at) != "" && len(all) < longest {
			var err error
			if at, err = h.records.Session(req.Context(), id(at)); fault.CodeOf(err) == fault.NotFound {
				return nil // it has not begun yet
			} else if err != nil {
				return err
			}
			add(at)
		}
		return nil
	}
	err := follow(func(r session.Record) string { return r.Parent }, func(r session.Record) { all = slices.Insert(all, 0, r) })
	if err == nil {
		err = follow(func(r session.Record) string { return r.Next }, func(r session.Record) { all = append(all, r) })
	}
	if err != nil || len(all) == 1 {
		return nil, err
	}
	var out []pages.Link
	for _, one := range all {
		out = append(out, pages.Link{Link: sessionPath(one.ID), Tier: one.Tier.String(), State: string(one.State), Here: one.ID == r.ID})
	}
	return out, nil
}

// addEvents adds a part of what the agent said and did: the last events, or those that begin with a number.
func (h *sessionPages) addEvents(req *handler.Request, view *pages.SessionPage, id string, from int) error {
	last, err := h.records.LastSessionEvent(req.Context(), id)
	if err != nil {
		return err
	}
	first := max(1, last-eventsShown+1)
	if from > 0 {
		first = min(from, first)
		view.Newest = h.base + sessionPath(id) + "#output"
	}
	events, err := h.records.SessionEvents(req.Context(), id, first-1)
	if err != nil {
		return err
	}
	at := func(from int) string { return "?from=" + strconv.Itoa(from) + "#output" }
	if first > 1 {
		view.Older = at(max(1, first-eventsShown))
	}
	if next := first + eventsShown; next <= last {
		view.Newer = at(next)
	}
	view.Last = last
	for _, e := range events[:min(len(events), eventsShown)] {
		text := h.env.Text(e.Text, eventRunes)
		view.Events = append(view.Events, pages.Event{
			Seq: e.Seq, At: pages.WhenOf(e.Time, h.env.Now()), Kind: h.env.Line(e.Kind), Tool: h.env.Line(e.Tool), Text: text,
			Cut: len([]rune(e.Text)) > eventRunes,
		})
	}
	return nil
}
