package dashboard

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/views"
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
	counts   map[string]int
	Show     string // what of the timeline is shown; "" for all
	Talk     []moment
	Chain    []chained // sessions that handed over to each other, this one included
	Attempts []attempt
	More     string // query of all proposals of the session, where some are left out
	Said     transcriptPart
	Journal  []sessions.JournalEntry // what it noted for later sessions, newest first
}

// chained is a session of a chain.
type chained struct {
	sessionRow
	Here bool
}

// transcriptPart is a part of what the agent said and did.
type transcriptPart struct {
	Events               []sessions.Event
	Last                 int
	Older, Newer, Newest string // queries; "" for none
}

func (h *sessionPages) showSession(req *httpx.Request, q oneSessionParams) (httpx.Response, error) {
	r, err := h.records.Session(req.Context(), req.PathValue("id"))
	if err != nil {
		return httpx.Response{}, err
	}
	view := sessionPage{Page: h.frame(req, "Session of tier "+r.Tier.String(), sessionsPath),
		sessionRow: h.sessionRowOf(req, r),
		Show:       q.Show}
	if view.CanStop = view.Running() && req.Principal.Scopes.Has(access.Operate); !view.Running() {
		view.Start = h.restartForm(req, r)
	}
	if view.Chain, err = h.chain(req, r); err != nil {
		return httpx.Response{}, err
	}
	if view.Said, err = h.readTranscript(req, r.ID, q.From); err != nil {
		return httpx.Response{}, err
	}
	if view.Journal, err = h.records.Journal(req.Context(), sessions.JournalQuery{Session: r.ID}); err != nil {
		return httpx.Response{}, err
	}
	rows, err := h.attempts.Attempts(req.Context(), record.AttemptQuery{Session: r.ID, Limit: pageSize + 1})
	if err != nil {
		return httpx.Response{}, err
	}
	if len(rows) > pageSize {
		rows, view.More = rows[:pageSize], "/proposals?"+url.Values{"session": {r.ID}}.Encode()
	}
	if view.Attempts, err = attemptsOf(req.Context(), h.pulls, nil, rows); err != nil {
		return httpx.Response{}, err
	}
	view.talk(q.Show)
	return h.html("session", view)
}

// restartForm returns the form that starts a session as another one was; nil if that cannot be.
func (h *sessionPages) restartForm(req *httpx.Request, r sessions.Record) *startForm {
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
func (h *sessionPages) chain(req *httpx.Request, r sessions.Record) ([]chained, error) {
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

// readTranscript reads a part of what the agent said and did: the last events, or those that begin with a number.
func (h *sessionPages) readTranscript(req *httpx.Request, id string, from int) (out transcriptPart, err error) {
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

// moment is one thing of a session's timeline: something that the agent said or did, or an attempt at a proposal.
type moment struct {
	Base, ID   string
	At         time.Time
	Tone, Icon string
	Did        string          // "" where the text says it
	What       string          // that a call was about, as code: a command, a file; untrusted
	Folded     bool            // its text is shown on demand
	Event      sessions.Event  // of a call, the call
	Answer     *sessions.Event // of a call; nil while there is none
	Attempt    *proposedMoment
}

// proposedMoment is an attempt at a proposal on the timeline.
type proposedMoment struct{ attempt }

// Verb describes the result.
func (p proposedMoment) Verb() string {
	switch p.Outcome {
	case record.OutcomeRefused:
		return "Proposal refused:"
	case record.OutcomeFailed:
		return "Proposal failed:"
	case record.OutcomeDryRun:
		return "Dry run:"
	case record.OutcomeRevised:
		return "Revised"
	case record.OutcomeReused:
		return "Proposed again"
	}
	return "Proposed"
}

// MaxRunes limits the characters of an event that are shown.
func (moment) MaxRunes() int { return eventRunes }

// Longer reports whether its event is longer than that.
func (m moment) Longer() bool {
	return len([]rune(m.Event.Text)) > eventRunes || m.Answer != nil && len([]rune(m.Answer.Text)) > eventRunes
}

// Took returns the time until the answer to a call; "" where there is none.
func (m moment) Took() string {
	if m.Answer == nil {
		return ""
	}
	return views.Length(m.Answer.Time.Sub(m.Event.Time))
}

// failedAnswer begins the text of an answer that is an error.
const failedAnswer = "error:"

// Failed reports whether the answer to a call is an error.
func (m moment) Failed() bool {
	return m.Answer != nil && strings.HasPrefix(m.Answer.Text, failedAnswer)
}

// callMoment returns a call on the timeline.
func callMoment(e sessions.Event) moment {
	m := moment{At: e.Time, Event: e, Tone: string(views.Mute), Icon: "terminal-2", Folded: true}
	m.Did, m.What = views.ToolCall(e)
	return m
}

// eventMoment returns an event on the timeline.
func eventMoment(e sessions.Event) moment {
	m := moment{At: e.Time, Event: e, Tone: "mute", Icon: "info-circle", Did: strings.ReplaceAll(e.Kind, "_", " ")}
	switch e.Kind {
	case "text":
		m.Tone, m.Icon, m.Did = "done", "robot", ""
	case "tool_use":
		return callMoment(e)
	case "tool_result":
		m.Icon, m.Did, m.Folded, m.Answer = "arrow-right", "Got an answer", true, &e
	case "denied":
		m.Tone, m.Icon, m.Did = "bad", "ban", "Was refused the tool"
	case "init":
		m.Icon, m.Did = "player-play", "Began"
	case "result":
		m.Icon, m.Did = "player-stop", "Ended"
		m.Event.Text = endedWords(e.Text)
	}
	return m
}

// endedWords says in words how the CLI names the end of a session.
func endedWords(text string) string {
	words := map[string]string{
		"success": "its work is done", "error_max_turns": "all turns are used", "error_max_budget_usd": "its money is spent",
		"error_during_execution": "an error ended it",
	}
	return cmp.Or(words[text], text)
}

// eventMoments returns events on the timeline, each answer in the row of its call: answers come in the order of calls.
func eventMoments(events []sessions.Event) (out []moment) {
	var open []int // calls without an answer, by their places
	for i, e := range events {
		if e.Kind == "tool_result" && len(open) > 0 {
			call := &out[open[0]]
			call.Answer, open = &events[i], open[1:]
			if call.Failed() {
				call.Tone = string(views.Bad)
			}
			continue
		}
		if e.Kind == "tool_use" {
			open = append(open, len(out))
		}
		out = append(out, eventMoment(e))
	}
	return out
}

// is reports whether the moment is of a kind that the timeline can be narrowed to.
func (m moment) is(kind string) bool {
	switch kind {
	case "tools":
		return m.Folded
	case "proposals":
		return m.Attempt != nil
	case "errors":
		return m.Tone == string(views.Bad)
	}
	return true
}

// talk fills in the timeline of the shown events and of the proposals meanwhile, and counts its kinds; kind narrows it.
func (v *sessionPage) talk(kind string) {
	s := v.Said
	all := eventMoments(s.Events)
	for i := range v.Attempts {
		a := proposedMoment{v.Attempts[i]}
		early := s.Older != "" && a.Time.Before(s.Events[0].Time)
		late := s.Newer != "" && a.Time.After(s.Events[len(s.Events)-1].Time)
		if early || late {
			continue
		}
		w := views.Outcome(a.Outcome)
		m := moment{At: a.Time, Tone: string(w.Tone), Icon: w.Icon, Attempt: &a}
		if w.Tone == views.Good {
			m.Icon = "git-pull-request"
		}
		all = append(all, m)
	}
	slices.SortStableFunc(all, func(a, b moment) int { return a.At.Compare(b.At) })
	v.counts = map[string]int{}
	for _, m := range all {
		m.Base, m.ID = v.Base, v.ID
		for _, k := range talkKinds() {
			if m.is(k[0]) {
				v.counts[k[0]]++
			}
		}
		if m.is(kind) {
			v.Talk = append(v.Talk, m)
		}
	}
}

// link is a choice that is a link.
type link struct {
	To, Text string
	Chosen   bool
}

// talkKinds are the kinds that the timeline can be narrowed to, and their names.
func talkKinds() [][2]string {
	return [][2]string{{"", "All"}, {"tools", "Tools"}, {"proposals", "Proposals"}, {"errors", "Errors"}}
}

// Kinds returns the ways to narrow the timeline.
func (v sessionPage) Kinds() (out []link) {
	for _, k := range talkKinds() {
		to := v.Base + v.Link()
		if k[0] != "" {
			to += "?show=" + k[0]
		}
		out = append(out, link{to, k[1] + " " + views.Count(v.counts[k[0]]), v.Show == k[0]})
	}
	return out
}

// Ended says how it ended, as the beginning of a sentence.
func (v sessionPage) Ended() string { return views.Session(v.State).Text }

// Remedy says what to do about the way it ended, as rich text; "" for nothing.
func (v sessionPage) Remedy() string {
	switch v.State {
	case sessions.StateLimit:
		return "Raise the limit, or split the task: start a session for a part of it."
	case sessions.StateTimeout:
		return "Give it more time, or start a session for a part of the task."
	case sessions.StateFailed:
		return "See what it said last, and whether [Health](/doctor) names what agents lack."
	case sessions.StateInterrupted:
		return "What it has proposed stays. Start it again if its task is not done."
	case sessions.StateSkipped:
		return "Sessions by the schedule do not start while another one runs."
	}
	return ""
}

// startForm starts a session.
type startForm struct {
	FormBase string
	Tiers    []option
	Note     string // as it was sent, if the form comes back
	Failed   string // why it comes back; "" for a form that was not sent
}

// startForm returns the form for a new session, or why there is none.
func (h *sessionPages) startForm(req *httpx.Request) (*startForm, string) {
	plan := h.agents.Plan()
	switch {
	case !req.Principal.Scopes.Has(access.Operate):
		return nil, "You may look. Starting and stopping sessions needs the scope operate."
	case !req.Principal.Scopes.Has(access.Read):
		return nil, "Starting a session needs the scope read, too."
	case plan.Missing != "":
		return nil, "No session can start here: " + plan.Missing + "."
	}
	form := &startForm{FormBase: h.base}
	for tier := gitprovider.TierObserve; tier <= min(plan.MaxTier,
		req.Principal.Scopes.HighestAgent(req.Principal.Ceiling)); tier++ {
		form.Tiers = append(form.Tiers, tierOption(tier, gitprovider.TierObserve))
	}
	return form, ""
}

// startSession starts a session for a person, who is led to it. A form that is refused comes back with what was
// written.
func (h *sessionPages) startSession(req *httpx.Request) (httpx.Response, error) {
	form, err := httpx.ReadForm(req)
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

func (h *sessionPages) sendBack(req *httpx.Request, form url.Values, tier gitprovider.Tier,
	why error) (httpx.Response, error) {
	view, err := h.loadPage(req, sessionPageParams{})
	if err != nil || view.Start == nil || !httpx.PrefersHTML(req.Request) {
		return httpx.Response{}, why
	}
	e := fault.From(why)
	view.Position = "" // nothing but the form is of interest
	view.Numbers = nil
	view.Start.Note, view.Start.Failed = form.Get("note"), h.env.Message(e.Message)
	for i := range view.Start.Tiers {
		view.Start.Tiers[i].Chosen = view.Start.Tiers[i].Value == tier.String()
	}
	return h.htmlAgain(e, "sessions", view)
}

// tierOf returns the tier that a form asks for. It never is a guess.
func tierOf(form url.Values) (gitprovider.Tier, error) {
	tier, ok := gitprovider.ParseTier(form.Get("tier"))
	if !ok || form.Get("tier") == "" || len(form["tier"]) != 1 || len(form["note"]) > 1 {
		return 0, fault.New(fault.InvalidArgument,
			"the form must have the field tier, once: 1, 2 or 3; and note at most once")
	}
	return tier, nil
}

// stopSession stops a session for a person, who is led back to it.
func (h *sessionPages) stopSession(req *httpx.Request) (httpx.Response, error) {
	if err := actOn(req, h.stops); err != nil {
		return httpx.Response{}, err
	}
	return h.goTo(sessionPath(req.PathValue("id"))), nil
}
