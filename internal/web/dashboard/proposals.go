package dashboard

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/records"
)

// pageSize is how many rows a listing shows.
const pageSize = 50

// proposalPages show attempts at proposals, and let people open what a dry run has shown.
type proposalPages struct {
	*renderer
	settings handler.Settings
	flowAt   func(ceiling gitprovider.Tier) Flow
	attempts records.Attempts
	pulls    records.Pulls
	rows     *attemptRows
	reader   Reader
}

// filterParams are the fields of the form above the listing of proposals.
type filterParams struct {
	Repo    string `query:"repo"`
	Outcome string `query:"outcome" enum:"opened,reused,dry_run,refused,failed"`
	Gate    string `query:"gate" enum:"arguments,tier,scope,base_tree,content,repository,duplicate,cooldown,caps"`
	Caller  string `query:"caller"`
	Since   string `query:"since"` // a day
	Until   string `query:"until"` // a day, inclusive
	Q       string `query:"q"`
	Session string `query:"session"`
	Pull    string `query:"pull" enum:"open,merged,closed,gone"`
	Before  int    `query:"before"`
	After   int    `query:"after"`
}

func (h *proposalPages) list(req *handler.Request) (handler.Response, error) {
	var q filterParams
	if err := handler.DecodeQuery(req, &q); err != nil {
		return handler.Response{}, err
	}
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
		Repo: q.Repo, Outcome: record.Outcome(q.Outcome), Gate: record.Gate(q.Gate), Caller: q.Caller, Since: since, Until: until,
		Search: q.Q, Session: q.Session, Pull: record.PullState(q.Pull), Before: int64(q.Before), After: int64(q.After), Limit: pageSize + 1,
	})
	if err != nil {
		return handler.Response{}, err
	}
	view := pages.Proposals{Page: h.frame(req, "Proposals", "/proposals"), Filter: q.view()}
	n := neighbours(req.URL.Query(), q.Before, q.After, rows, func(r record.RecordedAttempt) int64 { return r.Seq })
	view.Newer, view.Older, view.First = n.newer, n.older, n.first
	if view.Attempts, err = h.rows.of(req.Context(), n.rows); err != nil {
		return handler.Response{}, err
	}
	return h.html("proposals", view)
}

// dayOf reads a day, 00:00 UTC; the zero time for "".
func dayOf(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		v := handler.BadParameter(name, "is no day as in 2006-01-02")
		return t, &fault.Error{Code: fault.InvalidArgument, Message: v.Message, Violations: []fault.Violation{v}}
	}
	return t, nil
}

func (q filterParams) view() pages.Filter {
	f := pages.Filter{
		Repo: q.Repo, Caller: q.Caller, Search: q.Q, Since: q.Since, Until: q.Until,
		Outcome: options(q.Outcome, []string{"opened", "reused", "dry_run", "refused", "failed"}),
	}
	var gates []string
	for _, g := range prflow.Gates() {
		gates = append(gates, string(g))
	}
	f.Gate = options(q.Gate, gates)
	var states []string
	for _, state := range record.PullStates() {
		states = append(states, string(state))
	}
	f.Pull = options(q.Pull, states)
	f.Any = q.Repo+q.Caller+q.Q+q.Since+q.Until+q.Outcome+q.Gate+q.Session+q.Pull != ""
	return f
}

// options are the values of a filter, and "any" before them.
func options(chosen string, values []string) []pages.Option {
	out := []pages.Option{{Text: "any"}}
	for _, v := range values {
		out = append(out, pages.Option{Value: v, Text: strings.ReplaceAll(v, "_", " "), Chosen: v == chosen})
	}
	return out
}

// neighbourhood is a page of a listing and the queries of the pages beside it.
type neighbourhood[T any] struct {
	rows                []T
	newer, older, first string // "" for none
}

// neighbours cuts the row beyond the page off, newest first, and says where newer and older rows are. after and before
// are what the page was asked for by, 0 for not at all.
func neighbours[T any](query url.Values, before, after int, rows []T, seq func(T) int64) (n neighbourhood[T]) {
	more := len(rows) > pageSize
	n.rows = rows
	if more && after != 0 { // read upwards: the one too many is the newest
		n.rows = rows[len(rows)-pageSize:]
	} else if more {
		n.rows = rows[:pageSize]
	}
	at := func(name string, row int64) string {
		q := url.Values{}
		for k, v := range query {
			if k != "before" && k != "after" && v[0] != "" {
				q[k] = v
			}
		}
		if name != "" {
			q.Set(name, strconv.Itoa(int(row)))
		}
		return "?" + q.Encode()
	}
	if before != 0 || after != 0 {
		n.first = at("", 0)
	}
	if len(n.rows) == 0 {
		return n
	}
	if before != 0 || after != 0 && more {
		n.newer = at("after", seq(n.rows[0]))
	}
	if after != 0 || more {
		n.older = at("before", seq(n.rows[len(n.rows)-1]))
	}
	return n
}
