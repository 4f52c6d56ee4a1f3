package dashboard

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/views"
)

// pageSize is the number of rows of a listing. Each costs some 30 microseconds after a record.
const pageSize = 30

// proposalPages show attempts at proposals, and let people open what a dry run has shown.
type proposalPages struct {
	*renderer
	settings httpx.Settings
	promotes operation.Operation
	attempts views.Attempts
	pulls    views.Pulls
	reader   Reader
	policy   func() (policy.Policy, error)
}

// dayOf reads a day, 00:00 UTC; the zero time for "".
func dayOf(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return t, httpx.Invalid([]fault.Violation{httpx.BadParameter(name, "is not a date such as 2006-01-02")})
	}
	return t, nil
}

// options returns the values of a filter, and "any" before them.
func options[T ~string](chosen string, values []T) []option {
	out := []option{{Text: "any"}}
	for _, v := range values {
		out = append(out, option{string(v), strings.ReplaceAll(string(v), "_", " "), string(v) == chosen})
	}
	return out
}

// pager has the queries of the pages beside one of a listing; "" for none.
type pager struct {
	Newer, Older, First string
	Plain               bool // the list is not by time
}

// beside returns a query with one parameter set, or without it for "". Parameters that are empty or to be dropped go.
func beside(query url.Values, name, value string, drop ...string) string {
	q := url.Values{}
	for k, v := range query {
		if v[0] != "" && k != name && !slices.Contains(drop, k) {
			q[k] = v
		}
	}
	if value != "" {
		q.Set(name, value)
	}
	return "?" + q.Encode()
}

// place is the part of a list by time that a page shows: rows older or newer than one, 0 for no bound, and whether the
// oldest comes first.
type place struct {
	before, after int64 // after is -1 for the oldest rows
	oldest        bool
}

// placeOf returns the place that a page's parameters say.
func placeOf(before, after int, sort string) place {
	p := place{int64(before), int64(after), sort == "oldest"}
	if p.oldest && before == 0 && after == 0 {
		p.after = -1
	}
	return p
}

// order is the order of a list by time, and the query that turns it round.
type order struct {
	Oldest bool
	Turn   string
}

// rows cuts off the row beyond the page, and returns the rest in the page's order, and links to the rows beside it.
func (p place) rows(query url.Values, rows []record.RecordedAttempt) ([]record.RecordedAttempt, pager, order) {
	kept, beyond := neighbours(query, p.before, p.after, rows)
	if !p.oldest {
		return kept, beyond, order{false, beside(query, "sort", "oldest", "before", "after")}
	}
	kept = slices.Clone(kept)
	slices.Reverse(kept)
	beyond.Newer, beyond.Older, beyond.Plain = beyond.Older, beyond.Newer, true
	return kept, beyond, order{true, beside(query, "sort", "", "before", "after")}
}

// neighbours cuts off the row beyond the page, newest first, and returns links to newer and older rows. after and
// before are numbers of rows, 0 if absent; after is -1 for the oldest rows.
func neighbours(query url.Values, before, after int64, rows []record.RecordedAttempt) (kept []record.RecordedAttempt,
	p pager) {
	more := len(rows) > pageSize
	kept = rows
	if more && after != 0 { // read upwards: the one too many is the newest
		kept = rows[len(rows)-pageSize:]
	} else if more {
		kept = rows[:pageSize]
	}
	at := func(name string, row int64) string {
		return beside(query, name, strconv.FormatInt(row, 10), "before", "after")
	}
	if before != 0 || after > 0 {
		p.First = beside(query, "before", "", "after")
	}
	if len(kept) == 0 {
		return kept, p
	}
	if before != 0 || after != 0 && more {
		p.Newer = at("after", kept[0].Seq)
	}
	if after > 0 || after == 0 && more {
		p.Older = at("before", kept[len(kept)-1].Seq)
	}
	return kept, p
}

// stretch is the part of a longer list that a page shows.
type stretch struct {
	From, To int
	pager
}

// stretchOf returns the part of a list from offset on. size is the number of entries of a page.
func stretchOf(query url.Values, offset, size, shown, total int) stretch {
	out := stretch{offset + 1, offset + shown, pager{Plain: true}}
	if offset > 0 {
		before := ""
		if offset > size {
			before = strconv.Itoa(offset - size)
		}
		out.Newer = beside(query, "offset", before)
	}
	if out.To < total {
		out.Older = beside(query, "offset", strconv.Itoa(offset+size))
	}
	return out
}

// changesParams are the tab, the fields of the form above the list of changes, and the place in the list.
type changesParams struct {
	Tab     string `json:"tab,omitempty" enum:"waiting,agent,refused,merged,closed"`
	Q       string `json:"q,omitempty"`
	Repo    string `json:"repo,omitempty"`
	Caller  string `json:"caller,omitempty"`
	Code    string `json:"code,omitempty" maxLength:"40"`
	Gate    string `json:"gate,omitempty" pattern:"^[a-z_]{1,40}$"`
	Since   string `json:"since,omitempty"` // a day
	Until   string `json:"until,omitempty"` // a day, inclusive
	Session string `json:"session,omitempty"`
	Before  int    `json:"before,omitempty" minimum:"1"`
	After   int    `json:"after,omitempty" minimum:"1"`
	Sort    string `json:"sort,omitempty" enum:"oldest"`
}

// changesPage is the list of changes.
type changesPage struct {
	pages.Page
	Tabs       []changeTab
	Filter     filter
	Changes    []attempt
	Neighbours pager
	Order      order
	Total      int // of the tab; 0 where a filter narrows it
	// Repos and Agents are those of the rows, for the filters to offer.
	Repos, Agents []string
}

// offer fills in what the filters offer.
func (v *changesPage) offer() {
	for _, c := range v.Changes {
		if repo := c.Repository(); repo != "" && !slices.Contains(v.Repos, repo) {
			v.Repos = append(v.Repos, repo)
		}
		if c.Caller != "" && !slices.Contains(v.Agents, c.Caller) {
			v.Agents = append(v.Agents, c.Caller)
		}
	}
	slices.Sort(v.Repos)
	slices.Sort(v.Agents)
	if !v.Filter.Any {
		v.Total = int(v.Counts.Tabs[record.Tab(v.Filter.Tab)])
	}
}

// changeTab is a link to the changes that stand in a way.
type changeTab struct {
	Text, Query string
	Count       int64
	Shown       bool
}

// filter holds the filters of the list.
type filter struct {
	changesParams
	Codes, Days []option
	Any         bool
	today       time.Time
}

// Key implements pages.Part.
func (f filter) Key() any { return [2]any{f.changesParams, f.today} }

// Moment implements pages.Part.
func (filter) Moment() time.Time { return time.Time{} }

// option is an option of a choice.
type option struct {
	Value, Text string
	Chosen      bool
}

// showChangeList shows changes, one row each: proposals and their results.
func (h *proposalPages) showChangeList(req *httpx.Request, q changesParams) (httpx.Response, error) {
	since, err := dayOf("since", q.Since)
	if err != nil {
		return httpx.Response{}, err
	}
	until, err := dayOf("until", q.Until)
	if err != nil {
		return httpx.Response{}, err
	}
	if !until.IsZero() {
		until = until.AddDate(0, 0, 1)
	}
	gate, err := record.ParseGate(q.Gate)
	if err != nil {
		return httpx.Response{}, err
	}
	shown := h.filter(q)
	if !shown.Any {
		req = req.WithShortReads()
	}
	at := placeOf(q.Before, q.After, q.Sort)
	rows, err := h.attempts.Attempts(req.Context(), record.AttemptQuery{
		Tab: record.Tab(q.Tab), Changes: true, Search: q.Q, Repo: q.Repo, Caller: q.Caller, Code: fault.Code(q.Code),
		Gate: gate, Since: since, Until: until, Session: q.Session, Before: at.before, After: at.after, Limit: pageSize + 1,
	})
	if err != nil {
		return httpx.Response{}, err
	}
	view := changesPage{Page: h.frame(req, "Changes", changesPath), Filter: shown}
	view.Tabs = tabsOf(view.Page, q.Tab)
	rows, view.Neighbours, view.Order = at.rows(req.URL.Query(), rows)
	view.Changes, err = attemptsOf(req.Context(), h.pulls, nil, rows)
	view.offer()
	return h.htmlOr(err, "changes", view)
}

// tabsOf returns the links to changes by how they stand.
func tabsOf(page pages.Page, shown string) (out []changeTab) {
	texts := []string{"All", "Waiting for " + page.WaitsFor(), "With the agent", "Refused", "Merged", "Closed"}
	for i, tab := range append([]record.Tab{""}, record.Tabs()...) {
		one := changeTab{Text: texts[i], Count: page.Counts.Tabs[tab], Shown: string(tab) == shown}
		if tab != "" {
			one.Query = "?tab=" + string(tab)
		}
		out = append(out, one)
	}
	return out
}

func (h *proposalPages) filter(q changesParams) filter {
	today := h.env.Now().UTC().Truncate(24 * time.Hour)
	q.Before, q.After = 0, 0 // the form begins a list anew
	f := filter{
		changesParams: q, today: today, Codes: []option{{Text: "Any reason"}}, Days: []option{{Text: "Any time"}},
		Any: q.Q+q.Repo+q.Caller+q.Code+q.Gate+q.Since+q.Until+q.Session != "",
	}
	for _, c := range []fault.Code{
		fault.DuplicatePR, fault.ScopeDenied, fault.CooldownActive, fault.ContentDenied, fault.TierDenied, fault.LimitReached,
		fault.Conflict, fault.NoChange,
		fault.RepoNotAllowed, fault.InvalidArgument, fault.UpstreamError,
	} {
		f.Codes = append(f.Codes, option{string(c), record.CodeText(c), string(c) == q.Code})
	}
	for _, d := range []struct {
		days int
		text string
	}{{1, "Since yesterday"}, {7, "7 days"}, {30, "30 days"}} {
		day := today.AddDate(0, 0, -d.days).Format(time.DateOnly)
		f.Days = append(f.Days, option{day, d.text, day == q.Since})
	}
	if !slices.ContainsFunc(f.Days, func(o option) bool { return o.Value == q.Since }) {
		f.Days = append(f.Days, option{q.Since, "Since " + q.Since, true})
	}
	return f
}

// moved leads an address that the list had before to the one that it has now.
func (h *proposalPages) moved(req *httpx.Request) (httpx.Response, error) {
	q := req.URL.Query()
	tab := map[string]string{"refused": "refused", "open": "waiting", "merged": "merged", "closed": "closed",
		"gone": "closed"}
	for _, old := range []string{"outcome", "pull"} {
		if to := tab[q.Get(old)]; to != "" {
			q.Set("tab", to)
		}
		q.Del(old)
	}
	if len(q) == 0 {
		return h.goTo(changesPath), nil
	}
	return h.goTo(changesPath + "?" + q.Encode()), nil
}

// Word describes the state of the change.
func (a attempt) Word() views.Word {
	switch {
	case a.Outcome == record.OutcomeOpened && a.Seen.State != "":
		return views.Pull(a.Seen)
	case a.Outcome == record.OutcomeOpened || a.Outcome == record.OutcomeDryRun || a.Outcome == record.OutcomeRefused ||
		a.State == "":
		return views.Outcome(a.Outcome)
	}
	return views.Proposal(a.State, false)
}

// Because says in short why it stands so.
func (a attempt) Because() string {
	switch {
	case a.Outcome == record.OutcomeRefused || a.Outcome == record.OutcomeFailed:
		return a.Refusal()
	case a.Outcome == record.OutcomeDryRun:
		return "nothing written"
	case !a.Seen.Open():
		return ""
	case a.Seen.ChangesRequested > 0:
		return "changes requested by " + strconv.Itoa(a.Seen.ChangesRequested)
	case a.Seen.Approvals > 0:
		return "approved by " + strconv.Itoa(a.Seen.Approvals)
	}
	return "no review yet"
}

// Who proposed it.
func (a attempt) Who() string { return a.Did().Who }

// attempt is a row of the audit as pages show it.
type attempt struct {
	record.RecordedAttempt
	Seen  record.PullRecord // what was last seen of the pull request that it is about; zero if that is not known
	about views.About
}

// attemptsOf adds to attempts the facts beside them.
func attemptsOf(ctx context.Context, pulls views.Pulls, sessions views.Sessions,
	rows []record.RecordedAttempt) (out []attempt, err error) {
	about, err := views.AboutOf(ctx, pulls, sessions, rows)
	for _, r := range rows {
		out = append(out, attempt{r, about.Pull(r), about})
	}
	return out, err
}

// Key implements pages.Part. The hash of a row is one of all that the audit has of it.
func (a attempt) Key() any {
	if a.Hash == "" {
		return nil
	}
	return [7]string{a.Hash, a.Word().Text, a.Because(), a.Seen.Title, string(a.Ran()), a.Session, a.Seen.Tags}
}

// Ran returns the state of the session that it started; "" for none.
func (a attempt) Ran() sessions.State { return a.about.Session(a.RecordedAttempt) }

// Did returns the row as a sentence, with its link.
func (a attempt) Did() did {
	return did{Act: a.about.Act(a.RecordedAttempt), Link: a.Leads()}
}

// did is an act with the page of what it is about, without the base.
type did struct {
	record.Act
	Link string
}

// Key implements pages.Part: it is the whole.
func (d did) Key() any { return d }

// Moment returns no time.
func (did) Moment() time.Time { return time.Time{} }

// Leads returns the address of what it is about, without the base: the change, the session or, where there is nothing
// else, the row itself.
func (a attempt) Leads() string {
	link := a.Pull()
	switch {
	case a.Started() != "":
		return sessionPath(a.Started())
	case link != nil && link.Page != "" && (!a.IsProposal() || a.Opens()):
		return link.Page
	case a.IsProposal():
		return a.Link()
	}
	return auditRowPath(a.Seq)
}

// Opens reports whether it opened its pull request, or added to it.
func (a attempt) Opens() bool {
	return a.Outcome == record.OutcomeOpened || a.Outcome == record.OutcomeRevised
}

// Moment implements pages.Part.
func (a attempt) Moment() time.Time { return a.Time }

// Link returns the address of the proposal, without the base.
func (a attempt) Link() string { return proposalPath(a.RequestID) }

// SessionLink returns the address of the agent's session that it was made in, without the base.
func (a attempt) SessionLink() string { return sessionPath(a.Session) }

// IsProposal reports whether there is a proposal to look at.
func (a attempt) IsProposal() bool { return slices.Contains(record.ProposalActions(), a.Action) }

// Took returns its duration.
func (a attempt) Took() time.Duration { return a.Duration.Round(time.Millisecond) }

// Pull points to the pull request; nil for none.
func (a attempt) Pull() *pullLink {
	return pullLinkOf(a.PullKey(), a.PRURL, a.Seen.State)
}

// Warnings returns what the gates let pass and a person should know before merging.
func (a attempt) Warnings() (out []string) {
	for _, v := range a.Verdicts {
		out = append(out, v.Warnings...)
	}
	return out
}

// pullLink points to a pull request.
type pullLink struct {
	Number int
	Page   string // address of our page, without the base; "" if there is none
	URL    string // http(s) address at the provider, or ""
	State  record.PullState
}

// pullLinkOf points to a pull request; nil for none. A repository's name that no provider can have leads nowhere.
func pullLinkOf(key record.PullKey, address string, state record.PullState) *pullLink {
	if key.Number < 1 {
		return nil
	}
	p := &pullLink{Number: key.Number, URL: pages.WebAddress(address), State: state}
	parts := []string{key.Provider, key.Owner, key.Repo}
	if !slices.ContainsFunc(parts, func(part string) bool { return gitprovider.CheckRepoPart(part) != nil }) {
		p.Page = "/pulls/" + strings.Join(append(parts, strconv.Itoa(key.Number)), "/")
	}
	return p
}

func proposalPath(id string) string { return "/proposals/" + url.PathEscape(id) }
