package web

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// pageSize is how many rows a listing shows.
const pageSize = 50

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

func (s *Server) proposalsPage(c *call) (answer, error) {
	var q filterParams
	if err := decodeQuery(c, &q); err != nil {
		return answer{}, err
	}
	since, err := dayOf("since", q.Since)
	if err != nil {
		return answer{}, err
	}
	until, err := dayOf("until", q.Until)
	if err != nil {
		return answer{}, err
	}
	if !until.IsZero() {
		until = until.AddDate(0, 0, 1)
	}
	rows, err := s.Records.Attempts(c.Context(), record.AttemptQuery{
		Repo: q.Repo, Outcome: record.Outcome(q.Outcome), Gate: record.Gate(q.Gate), Caller: q.Caller, Since: since, Until: until,
		Search: q.Q, Session: q.Session, Pull: record.PullState(q.Pull), Before: int64(q.Before), After: int64(q.After), Limit: pageSize + 1,
	})
	if err != nil {
		return answer{}, err
	}
	view := pages.Proposals{Page: s.frame(c, "Proposals", "/proposals"), Filter: q.view()}
	n := neighbours(c.URL.Query(), q.Before, q.After, rows, func(r record.RecordedAttempt) int64 { return r.Seq })
	view.Newer, view.Older, view.First = n.newer, n.older, n.first
	if view.Attempts, err = s.attemptRows(c.Context(), n.rows); err != nil {
		return answer{}, err
	}
	return s.html("proposals", view)
}

// dayOf reads a day, 00:00 UTC; the zero time for "".
func dayOf(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		v := badParameter(name, "is no day as in 2006-01-02")
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
			q.Set(name, itoa(int(row)))
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

// attemptRows are the rows of a listing, with what was last seen of the pull requests that they are about.
func (s *Server) attemptRows(ctx context.Context, attempts []record.RecordedAttempt) ([]pages.Attempt, error) {
	seen, err := s.pullsSeen(ctx, attempts)
	if err != nil {
		return nil, err
	}
	var out []pages.Attempt
	for _, r := range attempts {
		row := s.attemptRow(r)
		if row.Pull != nil {
			row.Pull.State = string(seen[pullKey(r)].State)
		}
		out = append(out, row)
	}
	return out, nil
}

// attemptRow is a row of a listing.
func (s *Server) attemptRow(r record.RecordedAttempt) pages.Attempt {
	e := s.proposalEntry(r)
	row := pages.Attempt{
		Link: "/proposals/" + url.PathEscape(e.ID), ID: e.ID, Title: s.words(e.Title), Repo: s.words(e.Repo), Outcome: e.Outcome,
		Code: string(e.Code), Caller: s.words(e.Caller), Door: string(e.Door), At: pages.WhenOf(r.Time, s.Now()),
		Paths: pages.ListOf(e.Paths, s.words), Pull: pullOf(r.Provider, r.Owner, r.Repo, r.PRNumber, r.PRURL),
	}
	if row.Title == "" {
		row.Title = "(no title)"
	}
	if row.Repo == "/" {
		row.Repo = "(no repository)"
	}
	for _, warning := range e.Warnings {
		row.Warnings = append(row.Warnings, s.text(warning, maxMessage))
	}
	for _, g := range e.DeniedBy {
		row.Gates = append(row.Gates, string(g))
	}
	return row
}

// pullOf points to a pull request; nil for none. A repository's name that no provider can have leads nowhere.
func pullOf(provider, owner, name string, number int, address string) *pages.Pull {
	if number < 1 {
		return nil
	}
	p := &pages.Pull{Number: number, URL: pages.WebAddress(address)}
	parts := []string{provider, owner, name}
	if !slices.ContainsFunc(parts, func(part string) bool { return gitprovider.CheckRepoPart(part) != nil }) {
		p.Page = "/pulls/" + strings.Join(append(parts, itoa(number)), "/")
	}
	return p
}
