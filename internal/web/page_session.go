package web

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/session"
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

func (s *Server) sessionPage(c *call) (answer, error) {
	var q oneSessionParams
	if err := decodeQuery(c, &q); err != nil {
		return answer{}, err
	}
	r, err := s.SessionRecords.Session(c.Context(), c.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	view := s.sessionView(c, r)
	if view.Chain, err = s.chain(c, r); err != nil {
		return answer{}, err
	}
	if err := s.addEvents(c, &view, r.ID, q.From); err != nil {
		return answer{}, err
	}
	rows, err := s.Records.Attempts(c.Context(), record.AttemptQuery{Session: r.ID, Limit: pageSize + 1})
	if err != nil {
		return answer{}, err
	}
	if len(rows) > pageSize {
		rows, view.More = rows[:pageSize], "/proposals?"+url.Values{"session": {r.ID}}.Encode()
	}
	if view.Attempts, err = s.attemptRows(c.Context(), rows); err != nil {
		return answer{}, err
	}
	return s.html("session", view)
}

func (s *Server) sessionView(c *call, r session.Record) pages.SessionPage {
	text := func(t string) string { return s.text(t, maxAgentText) }
	running := r.State == session.StateRunning
	view := pages.SessionPage{
		Page: s.frame(c, "Session of tier "+r.Tier.String(), "/sessions"), SessionRow: s.sessionRow(c, r), Running: running,
		CanStop: running && c.who.Scopes.Has(access.Operate), Ended: pages.WhenOf(r.EndedAt, s.Now()), Model: s.words(r.Model),
		Claude: s.words(r.Claude), DryRun: r.DryRun, ToolCalls: r.ToolCalls, Denied: r.Denied, Denials: pages.ListOf(r.Denials, s.words),
		LeftOut: pages.ListOf(r.LeftOut, s.words),
		Note:    text(r.Note), Report: text(r.Report), Stderr: text(r.Stderr), Escalation: s.words(r.Escalation),
		Received: s.handoffView(r.Received), Left: s.handoffView(r.Handoff), Problem: s.text(r.HandoffProblem, maxMessage),
	}
	view.Reason = s.text(r.Reason, maxMessage)
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

func (s *Server) handoffView(h *session.Handoff) *pages.Handoff {
	h = s.handoff(h)
	if h == nil {
		return nil
	}
	return &pages.Handoff{
		Tier: h.RecommendedTier, Services: pages.ListOf(h.Services, s.words), Findings: h.Findings, File: s.words(h.WantedChange.File),
		Evidence: h.WantedChange.Evidence, Text: h.WantedChange.Text,
	}
}

// chain lists the sessions that handed over to each other up to and after this one; none if it stands alone.
func (s *Server) chain(c *call, r session.Record) ([]pages.Link, error) {
	all := []session.Record{r}
	follow := func(id func(session.Record) string, add func(session.Record)) error {
		at := r
		for id(at) != "" && len(all) < longest {
			var err error
			if at, err = s.SessionRecords.Session(c.Context(), id(at)); fault.CodeOf(err) == fault.NotFound {
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
func (s *Server) addEvents(c *call, view *pages.SessionPage, id string, from int) error {
	last, err := s.SessionRecords.LastSessionEvent(c.Context(), id)
	if err != nil {
		return err
	}
	first := max(1, last-eventsShown+1)
	if from > 0 {
		first = min(from, first)
		view.Newest = s.Network.BasePath + sessionPath(id) + "#output"
	}
	events, err := s.SessionRecords.SessionEvents(c.Context(), id, first-1)
	if err != nil {
		return err
	}
	at := func(from int) string { return "?from=" + itoa(from) + "#output" }
	if first > 1 {
		view.Older = at(max(1, first-eventsShown))
	}
	if next := first + eventsShown; next <= last {
		view.Newer = at(next)
	}
	view.Last = last
	for _, e := range events[:min(len(events), eventsShown)] {
		text := s.text(e.Text, eventRunes)
		view.Events = append(view.Events, pages.Event{
			Seq: e.Seq, At: pages.WhenOf(e.Time, s.Now()), Kind: s.words(e.Kind), Tool: s.words(e.Tool), Text: text,
			Cut: len([]rune(e.Text)) > eventRunes,
		})
	}
	return nil
}
