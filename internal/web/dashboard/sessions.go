package dashboard

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/views"
)

// sessionsPath is the address of the list of sessions.
const sessionsPath = "/sessions"

// scheduledShown is the number of scheduled sessions that its page shows.
const scheduledShown = 20

// sessionPages show the sessions of agents, and start and stop them.
type sessionPages struct {
	*renderer
	agents   Sessions
	starts   operation.Operation
	stops    operation.Operation
	records  views.Sessions
	attempts views.Attempts
	pulls    views.Pulls
}

type sessionPageParams struct {
	State  string `json:"state,omitempty" enum:"running,succeeded,failed,timeout,limit,cancelled,interrupted,skipped,bad"`
	Tier   int    `json:"tier,omitempty" minimum:"1" maximum:"3"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	Sort   string `json:"sort,omitempty" enum:"oldest"`
	Q      string `json:"q,omitempty" maxLength:"200"`
}

// sessionsPage is the listing of sessions.
type sessionsPage struct {
	pages.Page
	Rows       []sessionRow
	Choices    []choice
	Search     string
	Filtered   bool
	Neighbours pager
	Order      order
	Start      *startForm
	WhyNot     string // why there is no form
	Numbers    *sessionNumbers
	Usage      *usageTable // nil for none
	Journal    []sessions.JournalEntry
}

// sessionNumbers are the figures on the first page of all sessions.
type sessionNumbers struct {
	session.Plan
	Running  []sessionRow
	Bad, All int // of the last days
	Costs    spending
	Each     string // what one of them cost; "" if nothing was spent
}

// journalShown is the number of journal entries that the listing shows.
const journalShown = 30

func (h *sessionPages) showSessions(req *httpx.Request, q sessionPageParams) (httpx.Response, error) {
	view, err := h.loadPage(req, q)
	return h.htmlOr(err, "sessions", view)
}

func (h *sessionPages) loadPage(req *httpx.Request, q sessionPageParams) (view sessionsPage, err error) {
	query := sessions.Query{Before: q.Before, After: q.After, Oldest: q.Sort != "",
		State: sessions.State(q.State), Tier: gitprovider.Tier(q.Tier),
		Search: strings.TrimSpace(q.Q), Limit: pageSize + 1}
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
		Page: h.frame(req, "Agents", sessionsPath), Search: q.Q,
		Filtered: q.State+tier+q.Q != "",
		Choices: []choice{
			{"state", "State", chosen("State", q.State, stateChoices())},
			{"tier", "Tier", chosen("Tier", tier, [][2]string{{"1", "Tier 1"}, {"2", "Tier 2"}, {"3", "Tier 3"}})},
		},
	}
	view.linkNeighbours(req.URL.Query(), rows, pageSize)
	for _, r := range rows[:min(len(rows), pageSize)] {
		view.Rows = append(view.Rows, h.sessionRowOf(req, r))
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

// linkNeighbours says where newer and older rows are.
func (v *sessionsPage) linkNeighbours(query url.Values, rows []sessions.Record, size int) {
	from := "before"
	v.Order = order{Turn: beside(query, "sort", "oldest", "before")}
	if query.Get("sort") != "" {
		from = "after"
		v.Order, v.Neighbours.Plain = order{true, beside(query, "sort", "", "after")}, true
	}
	if query.Has(from) {
		v.Neighbours.First = beside(query, from, "")
	}
	if len(rows) > size {
		v.Neighbours.Older = beside(query, from, rows[size-1].ID)
	}
}

func stateChoices() [][2]string {
	out := [][2]string{{"bad", "Ended badly"}}
	for _, s := range sessions.States() {
		out = append(out, [2]string{string(s), views.Session(s).Text})
	}
	return out
}

// numbers returns the figures about the sessions of the last days.
func (h *sessionPages) numbers(req *httpx.Request, used *usageTable) (*sessionNumbers, error) {
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
	if err != nil {
		return nil, err
	}
	if used != nil && used.Total.CostUSD > 0 {
		n.Each = views.Money(used.Total.CostUSD / float64(used.Total.Sessions))
	}
	n.Costs, err = costs(req.Context(), h.records, h.env.Now())
	return n, err
}

// schedulePage is the page about scheduled sessions.
type schedulePage struct {
	pages.Page
	Plan   session.Plan
	Coming []comingRun // as the line of time shows them
	Listed []comingRun // the first of them
	More   int         // that are not listed
	Rows   []sessionRow
	Order  order
}

// Bounds of the line of time: the next day, the runs that it shows, and those that are listed below it.
const (
	comingHours  = 24
	maxComing    = 48
	comingListed = 6
)

// comingRun is a run that is due, at its place on the line of time.
type comingRun struct {
	At time.Time
	X  int // of 1000, the end of the line
}

// comingRuns returns the runs that are due in the next day, at most most, and how many more there are. A run that is
// overdue is due now.
func comingRuns(now, next time.Time, after func(time.Time) time.Time, most int) (out []comingRun, more int) {
	const line = comingHours * time.Hour
	if after == nil || next.IsZero() {
		return nil, 0
	}
	if next.Before(now) {
		next = now
	}
	for at := next; at.Sub(now) <= line; at = after(at) {
		if len(out) == most {
			more++
			continue
		}
		out = append(out, comingRun{at, int(1000 * at.Sub(now) / line)})
	}
	return out, more
}

func (h *sessionPages) schedule(req *httpx.Request, _ struct{}) (httpx.Response, error) {
	rows, err := h.records.Sessions(req.Context(), sessions.Query{Trigger: sessions.TriggerSchedule,
		Limit: scheduledShown})
	if err != nil {
		return httpx.Response{}, err
	}
	view := schedulePage{Page: h.frame(req, "Agents", sessionsPath+"/schedule"), Plan: h.agents.Plan()}
	view.Coming, view.More = comingRuns(h.env.Now(), view.Plan.Next, view.Plan.After, maxComing)
	view.Listed = view.Coming[:min(len(view.Coming), comingListed)]
	view.More += len(view.Coming) - len(view.Listed)
	for _, r := range rows {
		view.Rows = append(view.Rows, h.sessionRowOf(req, r))
	}
	return h.html("schedule", view)
}

// Bounds of the overview of sessions that went wrong.
const (
	sessionDays     = 7
	maxSessionNeeds = 5
)

// needs returns the sessions of the last days that did not come to a good end, as long as none of their tier has since.
func (h *sessionPages) needs(ctx context.Context) (out []waitItem, err error) {
	rows, err := h.records.Sessions(ctx, sessions.Query{Limit: pageSize})
	if err != nil {
		return nil, err
	}
	if behind, is, err := h.scheduleBehind(ctx); err != nil {
		return nil, err
	} else if is {
		out = append(out, behind)
	}
	good := map[gitprovider.Tier]bool{}
	for _, r := range rows {
		good[r.Tier] = good[r.Tier] || r.State == sessions.StateSucceeded
		if good[r.Tier] || !r.State.Bad() || h.env.Now().Sub(r.StartedAt) > sessionDays*24*time.Hour ||
			len(out) == maxSessionNeeds {
			continue
		}
		out = append(out, waitItem{
			Group: waitsBroken, Word: views.Session(r.State),
			Title: "Session of tier " + r.Tier.String() + ": " + views.Lowered(views.Session(r.State).Text),
			More:  sessionRow{Record: r}.Why(), Link: sessionPath(r.ID), Act: "Open", At: r.StartedAt,
		})
	}
	return out, nil
}

// scheduleBehind says that the schedule does not do what it is for, if so.
func (h *sessionPages) scheduleBehind(ctx context.Context) (item waitItem, is bool, err error) {
	plan := h.agents.Plan()
	if plan.Every == 0 {
		return waitItem{}, false, nil
	}
	s, err := h.records.ScheduledSessions(ctx)
	if err != nil || !s.Behind(plan.Every, h.env.Now()) {
		return waitItem{}, false, err
	}
	item = waitItem{Group: waitsBroken, Word: views.Session(s.Last), Title: "The schedule starts no session",
		More: plan.Missing, Link: sessionsPath + "/schedule", Act: "Open", At: s.LastAt}
	if s.Last != sessions.StateSkipped || s.Cause != sessions.CauseRefused {
		item.Title = "No session of the schedule has succeeded for long"
	}
	if n := s.Skipped[sessions.CauseRefused]; item.More == "" && n > 0 {
		item.More = fault.Count(int(n), "session was", "sessions were") + " due and refused so far; the newest says why"
	}
	return item, true, nil
}

// running are those that run now.
func (h *sessionPages) running(req *httpx.Request) (out []sessionRow, err error) {
	rows, err := h.records.Sessions(req.Context(), sessions.Query{State: sessions.StateRunning, Limit: maxSessionNeeds})
	for _, r := range rows {
		out = append(out, h.sessionRowOf(req, r))
	}
	return out, err
}

func sessionPath(id string) string { return sessionsPath + "/" + url.PathEscape(id) }

// sessionRow is a session as pages show it.
type sessionRow struct {
	sessions.Record
	now time.Time
}

// sessionRowOf returns a session with what was proposed in it so far.
func (h *sessionPages) sessionRowOf(req *httpx.Request, r sessions.Record) sessionRow {
	return sessionRow{views.CountNow(req.Context(), h.records, r), h.env.Now()}
}

// Link returns the address of the session, without the base.
func (s sessionRow) Link() string { return sessionPath(s.ID) }

// Running reports whether it runs.
func (s sessionRow) Running() bool { return s.State == sessions.StateRunning }

// Began reports whether it ever ran.
func (s sessionRow) Began() bool { return s.State != sessions.StateSkipped }

// Name says what it was started for: the first line of its note, or else the task of its tier.
func (s sessionRow) Name() string {
	if line, _, _ := strings.Cut(strings.TrimSpace(s.Note), "\n"); line != "" {
		return line
	}
	return map[gitprovider.Tier]string{
		gitprovider.TierObserve: "Round of checks", gitprovider.TierInvestigate: "Look into findings",
		gitprovider.TierRemediate: "Repair",
	}[s.Tier]
}

// StartedBy says what started it.
func (s sessionRow) StartedBy() string {
	if who := s.IssuePerson(); who != "" {
		return "by " + record.PersonName(who) + " at an issue"
	}
	from := 0
	if s.Tier == gitprovider.TierInvestigate {
		from = int(gitprovider.TierObserve) // only that tier hands over to it
	}
	return views.Trigger(s.Trigger, s.Starter(), from)
}

// Took returns its duration so far.
func (s sessionRow) Took() string {
	ended := s.EndedAt
	if ended.IsZero() {
		ended = s.now
	}
	if took := ended.Sub(s.StartedAt); took >= time.Second {
		return views.Length(took)
	}
	return "under 1 s"
}

// Proposals describes its proposals.
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

// Why says in words why it ended so; see Settings.
func (s sessionRow) Why() string {
	text, _ := views.Variables(views.Plain(s.Record.Why()))
	return text
}

// Settings names the settings that have to do with the way it ended.
func (s sessionRow) Settings() []string {
	_, names := views.Variables(s.Record.Why())
	switch {
	case len(names) > 0:
	case s.State == sessions.StateLimit:
		names = []string{"CLAUDEOPS_MAX_TURNS", "CLAUDEOPS_MAX_COST_USD"}
	case s.State == sessions.StateTimeout:
		names = []string{"CLAUDEOPS_SESSION_TIMEOUT"}
	}
	return names
}

// NotKept describes the parts of its output that were not kept.
func (s sessionRow) NotKept() string {
	return inWords([]counted{
		{s.CutLines, "lines beyond the bound"}, {s.BadLines, "lines that were not events"},
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

// usageDays is the number of days in the table of costs, today included.
const usageDays = 7

// usageTable holds the usage of the sessions of the last days, by day and tier.
type usageTable struct {
	Days  int
	Rows  []usageRow
	Total usageRow
}

// usageRow is a line of the table.
type usageRow struct {
	Day      string
	Tier     int
	Sessions int
	sessions.Usage
}

// usage returns nil if no session began in the last days, and on other pages than the first of all sessions.
func (h *sessionPages) usage(req *httpx.Request) (*usageTable, error) {
	groups, err := h.records.UsageByDay(req.Context(), h.env.Now().AddDate(0, 0, 1-usageDays))
	if err != nil || len(groups) == 0 {
		return nil, err
	}
	report := sessions.NewUsageReport(groups)
	t := &usageTable{Days: usageDays, Total: usageRow{Sessions: report.Total.Sessions, Usage: report.Total.Usage}}
	for _, d := range report.Days {
		t.Rows = append(t.Rows, usageRow{d.Day, d.Tier, d.Sessions, d.Usage})
	}
	if len(t.Rows) > 1 {
		all := t.Total
		all.Day = "All"
		t.Rows = append(t.Rows, all)
	}
	return t, nil
}

// Certainty says what kind of figure the cost is; "" if it is the client's own.
func (s sessionRow) Certainty() string {
	switch s.CostSource {
	case sessions.CostEstimate:
		return "an estimate by list prices: Claude Code has not said its own figure"
	case sessions.CostClientGuess:
		return "Claude Code's guess: it does not know the price of the model"
	case sessions.CostUnknown:
		return "the price of a model is not known"
	}
	return ""
}
