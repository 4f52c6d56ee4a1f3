package dashboard

import (
	"slices"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/words"
)

// changesParams are the tab, the fields of the form above the list of changes, and the place in the list.
type changesParams struct {
	Tab     string `json:"tab,omitempty" enum:"waiting,agent,refused,merged,closed"`
	Q       string `json:"q,omitempty"`
	Repo    string `json:"repo,omitempty"`
	Caller  string `json:"caller,omitempty"`
	Code    string `json:"code,omitempty" maxLength:"40"`
	Gate    string `json:"gate,omitempty" enum:"arguments,tier,scope,base_tree,content,repository,revision,duplicate,cooldown,audit,caps"`
	Since   string `json:"since,omitempty"` // a day
	Until   string `json:"until,omitempty"` // a day, inclusive
	Session string `json:"session,omitempty"`
	Before  int    `json:"before,omitempty" minimum:"1"`
	After   int    `json:"after,omitempty" minimum:"1"`
}

// changesPage is the list of changes.
type changesPage struct {
	pages.Page
	Tabs       []changeTab
	Filter     filter
	Changes    []attempt
	Neighbours pager
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

// list shows changes, one row each: proposals and their results.
func (h *proposalPages) list(req *handler.Request, q changesParams) (handler.Response, error) {
	since, err := dayOf("since", q.Since)
	if err != nil {
		return handler.Response{}, err
	}
	until, err := dayOf("until", q.Until)
	if err != nil {
		return handler.Response{}, err
	}
	if !until.IsZero() {
		until = until.AddDate(0, 0, 1)
	}
	rows, err := h.attempts.Attempts(req.Context(), record.AttemptQuery{
		Tab: record.Tab(q.Tab), Changes: true, Search: q.Q, Repo: q.Repo, Caller: q.Caller, Code: fault.Code(q.Code),
		Gate:  record.Gate(q.Gate),
		Since: since, Until: until, Session: q.Session, Before: int64(q.Before), After: int64(q.After), Limit: pageSize + 1,
	})
	if err != nil {
		return handler.Response{}, err
	}
	view := changesPage{Page: h.frame(req, "Changes", changesPath), Filter: h.filter(q)}
	if view.Tabs, err = h.tabs(req, q.Tab); err != nil {
		return handler.Response{}, err
	}
	rows, view.Neighbours = neighbours(req.URL.Query(), q.Before, q.After, rows)
	view.Changes, err = attemptsOf(req.Context(), h.pulls, nil, rows)
	return h.htmlOr(err, "changes", view)
}

// tabs returns the links to changes by how they stand.
func (h *proposalPages) tabs(req *handler.Request, shown string) (out []changeTab, err error) {
	counts, err := h.summary.TabCounts(req.Context())
	texts := []string{"All", "Waiting for you", "With the agent", "Refused", "Merged", "Closed"}
	for i, tab := range append([]record.Tab{""}, record.Tabs()...) {
		one := changeTab{Text: texts[i], Count: counts[tab], Shown: string(tab) == shown}
		if tab != "" {
			one.Query = "?tab=" + string(tab)
		}
		out = append(out, one)
	}
	return out, err
}

func (h *proposalPages) filter(q changesParams) filter {
	today := h.env.Now().UTC().Truncate(24 * time.Hour)
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
func (h *proposalPages) moved(req *handler.Request) (handler.Response, error) {
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
func (a attempt) Word() words.Word {
	switch {
	case a.Outcome == record.OutcomeOpened && a.Seen.State != "":
		return words.Pull(a.Seen)
	case a.Outcome == record.OutcomeOpened || a.Outcome == record.OutcomeDryRun || a.Outcome == record.OutcomeRefused ||
		a.State == "":
		return words.Outcome(a.Outcome)
	}
	return words.Proposal(a.State, false)
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
