package dashboard

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/records"
	"github.com/claudeops/claudeops/internal/web/words"
)

// sessionPages show the sessions of agents, and start and stop them.
type sessionPages struct {
	*renderer
	agents   Sessions
	starts   operation.Operation
	stops    operation.Operation
	records  records.Sessions
	attempts records.Attempts
	pulls    records.Pulls
}

type sessionPageParams struct {
	State  string `json:"state,omitempty" enum:"running,succeeded,failed,timeout,limit,cancelled,interrupted,skipped"`
	Before string `json:"before,omitempty"`
}

// sessionsPage is the listing of sessions.
type sessionsPage struct {
	pages.Page
	Rows         []sessionRow
	States       []option
	Filtered     bool
	Older, First string // queries of the next page and the newest one; "" for none
	Start        *startForm
	WhyNot       string // why there is no form
	Plan         session.Plan
	Usage        *usageTable // nil for none
	Every        string      // "" where nothing is scheduled
	Journal      []sessions.JournalEntry
}

// journalShown is how many entries of the journal the listing shows.
const journalShown = 30

// startForm starts a session.
type startForm struct {
	Tiers  []option
	Note   string // as it was sent, if the form comes back
	Failed string // why it comes back; "" for a form that nobody has sent
}

func (h *sessionPages) list(req *handler.Request) (handler.Response, error) {
	var q sessionPageParams
	if err := handler.DecodeQuery(req, &q); err != nil {
		return handler.Response{}, err
	}
	view, err := h.view(req, q)
	if err != nil {
		return handler.Response{}, err
	}
	return h.html("sessions", view)
}

func (h *sessionPages) view(req *handler.Request, q sessionPageParams) (sessionsPage, error) {
	rows, err := h.records.Sessions(req.Context(), sessions.Query{Before: q.Before, State: sessions.State(q.State), Limit: pageSize + 1})
	if err != nil {
		return sessionsPage{}, err
	}
	journal, err := h.records.Journal(req.Context(), sessions.JournalQuery{Limit: journalShown})
	if err != nil {
		return sessionsPage{}, err
	}
	plan := h.agents.Plan()
	view := sessionsPage{
		Page: h.frame(req, "Sessions", "/sessions"), Filtered: q.State != "", Plan: plan, States: options(q.State, sessions.States()),
		Journal: journal,
	}
	if plan.Every > 0 {
		view.Every = lengthOf(plan.Every)
	}
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
		view.Rows = append(view.Rows, h.row(req, r))
	}
	if q == (sessionPageParams{}) {
		if view.Usage, err = h.usage(req); err != nil {
			return sessionsPage{}, err
		}
	}
	if !req.Principal.Scopes.Has(access.Operate) {
		view.WhyNot = "Starting and stopping sessions needs the scope operate."
		return view, nil
	}
	view.Start = &startForm{}
	for tier := gitprovider.TierObserve; tier <= min(plan.MaxTier, req.Principal.Ceiling, gitprovider.TierRemediate); tier++ {
		view.Start.Tiers = append(view.Start.Tiers, tierOption(tier, gitprovider.TierObserve))
	}
	return view, nil
}

func sessionPath(id string) string { return "/sessions/" + url.PathEscape(id) }

// sessionRow is a session as pages show it.
type sessionRow struct {
	sessions.Record
	now time.Time
}

// row is a session with what was proposed in it so far.
func (h *sessionPages) row(req *handler.Request, r sessions.Record) sessionRow {
	return sessionRow{records.CountNow(req.Context(), h.records, r), h.env.Now()}
}

// Link is the address of the session, without the base.
func (s sessionRow) Link() string { return sessionPath(s.ID) }

// Running reports whether it runs.
func (s sessionRow) Running() bool { return s.State == sessions.StateRunning }

// Took is how long it took so far.
func (s sessionRow) Took() string {
	ended := s.EndedAt
	if ended.IsZero() {
		ended = s.now
	}
	return lengthOf(ended.Sub(s.StartedAt))
}

// Proposals is what was proposed in it, in words.
func (s sessionRow) Proposals() string {
	n := s.Counts
	words := inWords([]counted{
		{n.Opened, "opened"}, {n.Revised, "revised"}, {n.Reused, "reused"}, {n.DryRun, "in dry run"}, {n.Refused, "refused"}, {n.Failed, "failed"},
	})
	if words == "" {
		return "no proposals"
	}
	return "proposals: " + words
}

// NotKept is what was not kept of its output, in words.
func (s sessionRow) NotKept() string {
	return inWords([]counted{
		{s.CutLines, "lines beyond the bound"}, {s.BadLines, "lines that were no event"}, {s.Unstored, "events beyond what is kept"},
	})
}

// counted is a number of things.
type counted struct {
	count int
	word  string
}

// inWords says how many there are of each, leaving out what there is none of.
func inWords(list []counted) string {
	var words []string
	for _, c := range list {
		if c.count > 0 {
			words = append(words, strconv.Itoa(c.count)+" "+c.word)
		}
	}
	return strings.Join(words, ", ")
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

// start starts a session for a person, who is led to it. A form that is refused comes back with what was written.
func (h *sessionPages) start(req *handler.Request) (handler.Response, error) {
	form, err := handler.ReadForm(req)
	tier := gitprovider.Tier(0)
	if err == nil {
		tier, err = tierOf(form)
	}
	if err != nil {
		return h.sendBack(req, form, tier, h.starts.Reject(req.Context(), req.Call(nil), err))
	}
	call := req.Call(nil)
	call.Input = session.StartRequest{Tier: int(tier), Note: strings.ReplaceAll(form.Get("note"), "\r\n", "\n")}
	started, err := h.starts.Handle(req.Context(), call)
	if err != nil {
		return h.sendBack(req, form, tier, err)
	}
	return h.goTo(sessionPath(started.(session.SessionAccepted).ID)), nil
}

func (h *sessionPages) sendBack(req *handler.Request, form url.Values, tier gitprovider.Tier, why error) (handler.Response, error) {
	view, err := h.view(req, sessionPageParams{})
	if err != nil || view.Start == nil || !handler.PrefersHTML(req.Request) {
		return handler.Response{}, why
	}
	e := fault.From(why)
	view.Position = "" // nothing but the form is of interest
	view.Start.Note, view.Start.Failed = form.Get("note"), h.env.Message(e.Message)
	for i := range view.Start.Tiers {
		view.Start.Tiers[i].Chosen = view.Start.Tiers[i].Value == tier.String()
	}
	response, err := h.html("sessions", view)
	response.Status = e.Code.HTTPStatus()
	return response, err
}

// tierOf is the tier that a form asks for. It never is a guess.
func tierOf(form url.Values) (gitprovider.Tier, error) {
	tier, ok := gitprovider.ParseTier(form.Get("tier"))
	if !ok || form.Get("tier") == "" || len(form["tier"]) != 1 || len(form["note"]) > 1 {
		return 0, fault.New(fault.InvalidArgument, "the form must have the field tier, once: 1, 2 or 3; and note at most once")
	}
	return tier, nil
}

// stop stops a session for a person, who is led back to it.
func (h *sessionPages) stop(req *handler.Request) (handler.Response, error) {
	if err := actOn(req, h.stops); err != nil {
		return handler.Response{}, err
	}
	return h.goTo(sessionPath(req.PathValue("id"))), nil
}

// What the overview tells of sessions that went wrong.
const (
	sessionDays     = 7
	maxSessionNeeds = 5
)

// needs are the sessions of the last days that did not come to a good end, as long as none of their tier has since.
func (h *sessionPages) needs(req *handler.Request) (out []waitItem, err error) {
	rows, err := h.records.Sessions(req.Context(), sessions.Query{Limit: pageSize})
	if err != nil {
		return nil, err
	}
	bad := []sessions.State{sessions.StateFailed, sessions.StateTimeout, sessions.StateLimit, sessions.StateInterrupted}
	good := map[gitprovider.Tier]bool{}
	for _, r := range rows {
		good[r.Tier] = good[r.Tier] || r.State == sessions.StateSucceeded
		if good[r.Tier] || !slices.Contains(bad, r.State) || h.env.Now().Sub(r.StartedAt) > sessionDays*24*time.Hour || len(out) == maxSessionNeeds {
			continue
		}
		out = append(out, waitItem{
			Group: waitsBroken, Word: words.Session(r.State), Title: "Session of tier " + r.Tier.String() + ": " + lowered(words.Session(r.State).Text),
			More: r.Why(), Link: sessionPath(r.ID), Act: "Open", At: r.StartedAt,
		})
	}
	return out, nil
}

// running are those that run now.
func (h *sessionPages) running(req *handler.Request) (out []sessionRow, err error) {
	rows, err := h.records.Sessions(req.Context(), sessions.Query{State: sessions.StateRunning, Limit: maxSessionNeeds})
	for _, r := range rows {
		out = append(out, h.row(req, r))
	}
	return out, err
}
