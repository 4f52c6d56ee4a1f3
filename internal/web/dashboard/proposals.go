package dashboard

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
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
	promotes operation.Operation
	attempts records.Attempts
	pulls    records.Pulls
	reader   Reader
}

// filterParams are the fields of the form above the listing of proposals.
type filterParams struct {
	Repo    string `json:"repo,omitempty"`
	Outcome string `json:"outcome,omitempty" enum:"opened,revised,reused,dry_run,refused,failed"`
	Gate    string `json:"gate,omitempty" enum:"arguments,tier,scope,base_tree,content,repository,revision,duplicate,cooldown,audit,caps"`
	Caller  string `json:"caller,omitempty"`
	Since   string `json:"since,omitempty"` // a day
	Until   string `json:"until,omitempty"` // a day, inclusive
	Q       string `json:"q,omitempty"`
	Session string `json:"session,omitempty"`
	Pull    string `json:"pull,omitempty" enum:"open,merged,closed,gone"`
	Before  int    `json:"before,omitempty" minimum:"1"`
	After   int    `json:"after,omitempty" minimum:"1"`
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
	view := proposalsPage{Page: h.frame(req, "Proposals", "/proposals"), Filter: q.view()}
	rows, view.Neighbours = neighbours(req.URL.Query(), q.Before, q.After, rows)
	if view.Attempts, err = attemptsOf(req.Context(), h.pulls, rows); err != nil {
		return handler.Response{}, err
	}
	return h.html("proposals", view)
}

// proposalsPage is the listing of attempts.
type proposalsPage struct {
	pages.Page
	Filter     filter
	Attempts   []attempt
	Neighbours pager
}

// filter is what the listing was narrowed by.
type filter struct {
	Repo, Caller, Search, Since, Until string
	Outcome, Gate, Pull                []option
	Any                                bool
	asked                              filterParams // what all the others are made of
}

// Key implements pages.Part.
func (f filter) Key() any { return f.asked }

// Moment implements pages.Part.
func (filter) Moment() time.Time { return time.Time{} }

// option is an option of a choice.
type option struct {
	Value, Text string
	Chosen      bool
}

// dayOf reads a day, 00:00 UTC; the zero time for "".
func dayOf(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return t, handler.Invalid([]fault.Violation{handler.BadParameter(name, "is no day as in 2006-01-02")})
	}
	return t, nil
}

func (q filterParams) view() filter {
	return filter{
		Repo: q.Repo, Caller: q.Caller, Search: q.Q, Since: q.Since, Until: q.Until,
		Outcome: options(q.Outcome, []string{"opened", "revised", "reused", "dry_run", "refused", "failed"}),
		Gate:    options(q.Gate, prflow.Gates()), Pull: options(q.Pull, record.PullStates()),
		Any:   q.Repo+q.Caller+q.Q+q.Since+q.Until+q.Outcome+q.Gate+q.Session+q.Pull != "",
		asked: q,
	}
}

// options are the values of a filter, and "any" before them.
func options[T ~string](chosen string, values []T) []option {
	out := []option{{Text: "any"}}
	for _, v := range values {
		out = append(out, option{string(v), strings.ReplaceAll(string(v), "_", " "), string(v) == chosen})
	}
	return out
}

// pager has the queries of the pages beside one of a listing; "" for none.
type pager struct{ Newer, Older, First string }

// neighbours cuts the row beyond the page off, newest first, and says where newer and older rows are. after and before
// are what the page was asked for by, 0 for not at all.
func neighbours(query url.Values, before, after int, rows []record.RecordedAttempt) (kept []record.RecordedAttempt, p pager) {
	more := len(rows) > pageSize
	kept = rows
	if more && after != 0 { // read upwards: the one too many is the newest
		kept = rows[len(rows)-pageSize:]
	} else if more {
		kept = rows[:pageSize]
	}
	at := func(name string, row int64) string {
		q := url.Values{}
		for k, v := range query {
			if k != "before" && k != "after" && v[0] != "" {
				q[k] = v
			}
		}
		if name != "" {
			q.Set(name, strconv.FormatInt(row, 10))
		}
		return "?" + q.Encode()
	}
	if before != 0 || after != 0 {
		p.First = at("", 0)
	}
	if len(kept) == 0 {
		return kept, p
	}
	if before != 0 || after != 0 && more {
		p.Newer = at("after", kept[0].Seq)
	}
	if after != 0 || more {
		p.Older = at("before", kept[len(kept)-1].Seq)
	}
	return kept, p
}
