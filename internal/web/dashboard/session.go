package dashboard

import (
	"net/url"
	"slices"
	"strconv"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
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
	From int    `json:"from,omitempty" minimum:"1"` // number of the first event; 0: the last ones
	Show string `json:"show,omitempty" enum:"tools,proposals,errors"`
}

// sessionPage is one session.
type sessionPage struct {
	pages.Page
	sessionRow
	CanStop  bool
	Start    *startForm // to run it again; nil where that cannot be
	Show     string     // what of the timeline is shown; "" for all
	Talk     []moment
	Chain    []chained // sessions that handed over to each other, this one included
	Attempts []attempt
	More     string // query of all proposals of the session, where some are left out
	Said     said
	Journal  []sessions.JournalEntry // what it noted for later sessions, newest first
}

// chained is a session of a chain.
type chained struct {
	sessionRow
	Here bool
}

// said is a part of what the agent said and did.
type said struct {
	Events               []sessions.Event
	Last                 int
	Older, Newer, Newest string // queries; "" for none
}

func (h *sessionPages) show(req *handler.Request, q oneSessionParams) (handler.Response, error) {
	r, err := h.records.Session(req.Context(), req.PathValue("id"))
	if err != nil {
		return handler.Response{}, err
	}
	view := sessionPage{Page: h.frame(req, "Session of tier "+r.Tier.String(), sessionsPath), sessionRow: h.row(req, r),
		Show: q.Show}
	if view.CanStop = view.Running() && req.Principal.Scopes.Has(access.Operate); !view.Running() {
		view.Start = h.again(req, r)
	}
	if view.Chain, err = h.chain(req, r); err != nil {
		return handler.Response{}, err
	}
	if view.Said, err = h.said(req, r.ID, q.From); err != nil {
		return handler.Response{}, err
	}
	if view.Journal, err = h.records.Journal(req.Context(), sessions.JournalQuery{Session: r.ID}); err != nil {
		return handler.Response{}, err
	}
	rows, err := h.attempts.Attempts(req.Context(), record.AttemptQuery{Session: r.ID, Limit: pageSize + 1})
	if err != nil {
		return handler.Response{}, err
	}
	if len(rows) > pageSize {
		rows, view.More = rows[:pageSize], "/proposals?"+url.Values{"session": {r.ID}}.Encode()
	}
	if view.Attempts, err = attemptsOf(req.Context(), h.pulls, nil, rows); err != nil {
		return handler.Response{}, err
	}
	view.talk(q.Show)
	return h.html("session", view)
}

// again returns the form that starts a session as another one was; nil if that cannot be.
func (h *sessionPages) again(req *handler.Request, r sessions.Record) *startForm {
	form, _ := h.startForm(req)
	if form == nil {
		return nil
	}
	form.Note = r.Note
	for i := range form.Tiers {
		form.Tiers[i].Chosen = form.Tiers[i].Value == r.Tier.String()
	}
	return form
}

// chain lists the sessions that handed over to each other up to and after this one; none if it stands alone.
func (h *sessionPages) chain(req *handler.Request, r sessions.Record) ([]chained, error) {
	all := []sessions.Record{r}
	follow := func(id func(sessions.Record) string, add func(sessions.Record)) error {
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
	err := follow(func(r sessions.Record) string { return r.Parent },
		func(r sessions.Record) { all = slices.Insert(all, 0, r) })
	if err == nil {
		err = follow(func(r sessions.Record) string { return r.Next }, func(r sessions.Record) { all = append(all, r) })
	}
	if err != nil || len(all) == 1 {
		return nil, err
	}
	var out []chained
	for _, one := range all {
		out = append(out, chained{sessionRow{Record: one}, one.ID == r.ID})
	}
	return out, nil
}

// said reads a part of what the agent said and did: the last events, or those that begin with a number.
func (h *sessionPages) said(req *handler.Request, id string, from int) (out said, err error) {
	if out.Last, err = h.records.LastSessionEvent(req.Context(), id); err != nil {
		return out, err
	}
	first := max(1, out.Last-eventsShown+1)
	if from > 0 {
		first = min(from, first)
		out.Newest = h.base + sessionPath(id) + "#output"
	}
	at := func(from int) string { return "?from=" + strconv.Itoa(from) + "#output" }
	if first > 1 {
		out.Older = at(max(1, first-eventsShown))
	}
	if next := first + eventsShown; next <= out.Last {
		out.Newer = at(next)
	}
	out.Events, err = h.records.SessionEvents(req.Context(), id, first-1)
	out.Events = out.Events[:min(len(out.Events), eventsShown)]
	return out, err
}
