package dashboard

import (
	"net/url"
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

// sessionsPath is the address of the list of sessions.
const sessionsPath = "/sessions"

// scheduledShown is how many sessions by the schedule its page shows.
const scheduledShown = 20

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
	State  string `json:"state,omitempty" enum:"running,succeeded,failed,timeout,limit,cancelled,interrupted,skipped,bad"`
	Tier   int    `json:"tier,omitempty" minimum:"1" maximum:"3"`
	Before string `json:"before,omitempty"`
}

// sessionsPage is the listing of sessions.
type sessionsPage struct {
	pages.Page
	Rows         []sessionRow
	Choices      []choice
	Filtered     bool
	Older, First string // queries of the next page and the newest one; "" for none
	Start        *startForm
	WhyNot       string // why there is no form
	Numbers      *sessionNumbers
	Usage        *usageTable // nil for none
	Journal      []sessions.JournalEntry
}

// sessionNumbers is how it goes, on the first page of all sessions.
type sessionNumbers struct {
	session.Plan
	Running  []sessionRow
	Bad, All int // of the last days
	Cost     sessions.Usage
	Each     string // what one of them cost; "" if nothing was spent
}

// journalShown is how many entries of the journal the listing shows.
const journalShown = 30

// startForm starts a session.
type startForm struct {
	FormBase string
	Tiers    []option
	Note     string // as it was sent, if the form comes back
	Failed   string // why it comes back; "" for a form that nobody has sent
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

func (h *sessionPages) view(req *handler.Request, q sessionPageParams) (view sessionsPage, err error) {
	query := sessions.Query{Before: q.Before, State: sessions.State(q.State), Tier: gitprovider.Tier(q.Tier),
		Limit: pageSize + 1}
	if q.State == "bad" {
		query.State, query.Bad = "", true
	}
	rows, err := h.records.Sessions(req.Context(), query)
	if err != nil {
		return view, err
	}
	tier := ""
	if q.Tier > 0 {
		tier = strconv.Itoa(q.Tier)
	}
	view = sessionsPage{
		Page: h.frame(req, "Agents", sessionsPath), Filtered: q.State+tier != "",
		Choices: []choice{
			{"state", "State", chosen("State", q.State, stateChoices())},
			{"tier", "Tier", chosen("Tier", tier, [][2]string{{"1", "Tier 1"}, {"2", "Tier 2"}, {"3", "Tier 3"}})},
		},
	}
	view.page(q, tier, rows, pageSize)
	for _, r := range rows[:min(len(rows), pageSize)] {
		view.Rows = append(view.Rows, h.row(req, r))
	}
	view.Start, view.WhyNot = h.startForm(req)
	if q != (sessionPageParams{}) {
		return view, nil
	}
	if view.Journal, err = h.records.Journal(req.Context(), sessions.JournalQuery{Limit: journalShown}); err != nil {
		return view, err
	}
	if view.Usage, err = h.usage(req); err != nil {
		return view, err
	}
	view.Numbers, err = h.numbers(req, view.Usage)
	return view, err
}

// page says where newer and older rows are.
func (v *sessionsPage) page(q sessionPageParams, tier string, rows []sessions.Record, size int) {
	at := url.Values{}
	for name, value := range map[string]string{"state": q.State, "tier": tier} {
		if value != "" {
			at.Set(name, value)
		}
	}
	if q.Before != "" {
		v.First = "?" + at.Encode()
	}
	if len(rows) > size {
		at.Set("before", rows[size-1].ID)
		v.Older = "?" + at.Encode()
	}
}

func stateChoices() [][2]string {
	out := [][2]string{{"bad", "Ended badly"}}
	for _, s := range sessions.States() {
		out = append(out, [2]string{string(s), words.Session(s).Text})
	}
	return out
}

// numbers is how it goes with the sessions of the last days.
func (h *sessionPages) numbers(req *handler.Request, used *usageTable) (*sessionNumbers, error) {
	n := &sessionNumbers{Plan: h.agents.Plan()}
	var err error
	if n.Running, err = h.running(req); err != nil {
		return nil, err
	}
	endings, err := h.records.Endings(req.Context(), h.env.Now().AddDate(0, 0, 1-usageDays))
	for state, count := range endings {
		n.All += count
		if state.Bad() {
			n.Bad += count
		}
	}
	if used != nil {
		n.Cost = used.Total.Usage
		if used.Total.CostUSD > 0 {
			n.Each = words.Money(used.Total.CostUSD / float64(used.Total.Sessions))
		}
	}
	return n, err
}

// startForm is the form for a new session, or why there is none.
func (h *sessionPages) startForm(req *handler.Request) (*startForm, string) {
	plan := h.agents.Plan()
	switch {
	case !req.Principal.Scopes.Has(access.Operate):
		return nil, "Starting and stopping sessions needs the scope operate."
	case plan.Missing != "":
		return nil, "No session can start here: " + plan.Missing + "."
	}
	form := &startForm{FormBase: h.base}
	for tier := gitprovider.TierObserve; tier <= min(plan.MaxTier, req.Principal.Ceiling,
		gitprovider.TierRemediate); tier++ {
		form.Tiers = append(form.Tiers, tierOption(tier, gitprovider.TierObserve))
	}
	return form, ""
}

// schedulePage is when sessions start by themselves.
type schedulePage struct {
	pages.Page
	Plan session.Plan
	Rows []sessionRow
}

func (h *sessionPages) schedule(req *handler.Request) (handler.Response, error) {
	if err := handler.DecodeQuery(req, &struct{}{}); err != nil {
		return handler.Response{}, err
	}
	rows, err := h.records.Sessions(req.Context(), sessions.Query{Trigger: sessions.TriggerSchedule,
		Limit: scheduledShown})
	if err != nil {
		return handler.Response{}, err
	}
	view := schedulePage{Page: h.frame(req, "Agents", sessionsPath+"/schedule"), Plan: h.agents.Plan()}
	for _, r := range rows {
		view.Rows = append(view.Rows, h.row(req, r))
	}
	return h.html("schedule", view)
}

func sessionPath(id string) string { return sessionsPath + "/" + url.PathEscape(id) }

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

// Began reports whether it ever ran.
func (s sessionRow) Began() bool { return s.State != sessions.StateSkipped }

// Name is what it was started for: the first line of its note, or else what its tier does.
func (s sessionRow) Name() string {
	if line, _, _ := strings.Cut(strings.TrimSpace(s.Note), "\n"); line != "" {
		return line
	}
	return map[gitprovider.Tier]string{
		gitprovider.TierObserve: "Round of checks", gitprovider.TierInvestigate: "Look into findings",
		gitprovider.TierRemediate: "Repair",
	}[s.Tier]
}

// StartedBy is what started it, in words.
func (s sessionRow) StartedBy() string {
	from := 0
	if s.Tier == gitprovider.TierInvestigate {
		from = int(gitprovider.TierObserve) // nobody else hands over to it
	}
	return words.Trigger(s.Trigger, "", from)
}

// Took is how long it took so far.
func (s sessionRow) Took() string {
	ended := s.EndedAt
	if ended.IsZero() {
		ended = s.now
	}
	if took := ended.Sub(s.StartedAt); took >= time.Second {
		return words.Length(took)
	}
	return "under 1 s"
}

// Proposals is what was proposed in it, in words.
func (s sessionRow) Proposals() string {
	n := s.Counts
	text := inWords([]counted{
		{n.Opened, "opened"}, {n.Revised, "revised"}, {n.Reused, "open already"}, {n.DryRun, "in dry run"},
		{n.Refused, "refused"}, {n.Failed, "failed"},
	})
	if text == "" {
		return "nothing proposed"
	}
	return text
}

// NotKept is what was not kept of its output, in words.
func (s sessionRow) NotKept() string {
	return inWords([]counted{
		{s.CutLines, "lines beyond the bound"}, {s.BadLines, "lines that were no event"},
		{s.Unstored, "events beyond what is kept"},
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

func (h *sessionPages) sendBack(req *handler.Request, form url.Values, tier gitprovider.Tier,
	why error) (handler.Response, error) {
	view, err := h.view(req, sessionPageParams{})
	if err != nil || view.Start == nil || !handler.PrefersHTML(req.Request) {
		return handler.Response{}, why
	}
	e := fault.From(why)
	view.Position = "" // nothing but the form is of interest
	view.Numbers = nil
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
		return 0, fault.New(fault.InvalidArgument,
			"the form must have the field tier, once: 1, 2 or 3; and note at most once")
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
	good := map[gitprovider.Tier]bool{}
	for _, r := range rows {
		good[r.Tier] = good[r.Tier] || r.State == sessions.StateSucceeded
		if good[r.Tier] || !r.State.Bad() || h.env.Now().Sub(r.StartedAt) > sessionDays*24*time.Hour ||
			len(out) == maxSessionNeeds {
			continue
		}
		out = append(out, waitItem{
			Group: waitsBroken, Word: words.Session(r.State),
			Title: "Session of tier " + r.Tier.String() + ": " + lowered(words.Session(r.State).Text),
			More:  r.Why(), Link: sessionPath(r.ID), Act: "Open", At: r.StartedAt,
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
