package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/views"
)

// auditPath is the address of the records.
const auditPath = "/audit"

// auditPages show the audit.
type auditPages struct {
	*renderer
	records  views.Audit
	attempts views.Attempts
	pulls    views.Pulls
	sessions views.Sessions
}

// auditPage is a page of the audit.
type auditPage struct {
	pages.Page
	Rows       []attempt
	Neighbours pager
	Order      order
	Verified   health.Verification
	Search     string
	Choices    []choice
	Filtered   bool
}

// choice is a filter of which one is chosen.
type choice struct {
	Name, Label string
	Options     []option
}

type auditPageParams struct {
	Before int    `json:"before,omitempty" minimum:"1"`
	After  int    `json:"after,omitempty" minimum:"1"`
	Sort   string `json:"sort,omitempty" enum:"oldest"`
	Q      string `json:"q,omitempty" maxLength:"200"`
	Who    string `json:"who,omitempty"`
	What   string `json:"what,omitempty" enum:"proposals,reviews,seen,sessions,agents,tokens,deployments"`
	Result string `json:"result,omitempty" enum:"opened,revised,reused,dry_run,refused,failed,done"`
	How    string `json:"how,omitempty" enum:"mcp,rest,cli,web,webhook,poll"`
	Days   int    `json:"days,omitempty" minimum:"1" maximum:"3650"`
}

// maxCallers limits the names that the filter of callers offers.
const maxCallers = 50

func (h *auditPages) audit(req *httpx.Request, q auditPageParams) (httpx.Response, error) {
	at := placeOf(q.Before, q.After, q.Sort)
	rows, err := h.readRows(req.Context(), q, at)
	if err != nil {
		return httpx.Response{}, err
	}
	if at.after != 0 {
		slices.SortFunc(rows, func(a, b record.RecordedAttempt) int { return int(b.Seq - a.Seq) })
	}
	view := auditPage{
		Page: h.frame(req, "Records", auditPath), Verified: h.health.LastVerification(), Search: q.Q,
		Filtered: q.Q+q.Who+q.What+q.Result+q.How != "" || q.Days != 0,
	}
	rows, view.Neighbours, view.Order = at.rows(req.URL.Query(), rows)
	if view.Rows, err = attemptsOf(req.Context(), h.pulls, h.sessions, rows); err != nil {
		return httpx.Response{}, err
	}
	view.Choices, err = h.choices(req.Context(), q)
	return h.htmlOr(err, "audit", view)
}

// readRows reads a page of the audit. Titles and files are found among the attempts at proposals, which have an index
// of them.
func (h *auditPages) readRows(ctx context.Context, q auditPageParams, at place) ([]record.RecordedAttempt, error) {
	since := time.Time{}
	if q.Days > 0 {
		since = h.env.Now().AddDate(0, 0, -q.Days)
	}
	number, err := strconv.ParseInt(strings.TrimPrefix(strings.TrimSpace(q.Q), "#"), 10, 64)
	if q.Q == "" || err == nil && number > 0 {
		return h.records.Page(ctx, record.AuditQuery{
			Before: at.before, After: at.after, Ascending: at.after != 0, Limit: pageSize + 1, Number: number,
			Caller: q.Who, Action: actionsOf(q.What), Outcome: record.Outcome(q.Result), Door: record.Door(q.How), Since: since,
		})
	}
	if q.What != "" && q.What != "proposals" {
		return nil, nil
	}
	return h.attempts.Attempts(ctx, record.AttemptQuery{
		Before: at.before, After: at.after, Limit: pageSize + 1, Search: strings.TrimSpace(q.Q),
		Caller: q.Who, Outcome: record.Outcome(q.Result), Door: record.Door(q.How), Since: since,
	})
}

// actionsOf returns the prefix of a kind's actions.
func actionsOf(what string) string {
	return map[string]string{
		"proposals": record.ActionCreate, "reviews": "review.", "seen": "pull.", "sessions": "session.", "agents": "connect",
		"tokens":      "token.",
		"deployments": "deploy.",
	}[what]
}

func (h *auditPages) choices(ctx context.Context, q auditPageParams) ([]choice, error) {
	callers, err := h.records.Callers(ctx, maxCallers)
	if err != nil {
		return nil, err
	}
	who := []option{{Text: "Who"}}
	for _, c := range callers {
		who = append(who, option{c, record.ReadableCaller(c), c == record.RecordedCaller(q.Who)})
	}
	what := chosen("What", q.What, [][2]string{
		{"proposals", "Proposals"}, {"reviews", "Reviews"}, {"seen", "Seen at the forge"}, {"sessions", "Sessions"},
		{"agents", "Connected agents"}, {"tokens", "Tokens"}, {"deployments", "Deployments"},
	})
	var results, ways [][2]string
	for _, o := range []record.Outcome{
		record.OutcomeOpened, record.OutcomeRevised, record.OutcomeReused, record.OutcomeDone, record.OutcomeDryRun,
		record.OutcomeRefused, record.OutcomeFailed,
	} {
		results = append(results, [2]string{string(o), views.Outcome(o).Text})
	}
	for _, d := range []record.Door{record.DoorMCP, record.DoorREST, record.DoorCLI, record.DoorWeb, record.DoorWebhook,
		record.DoorPoll} {
		ways = append(ways, [2]string{string(d), views.Door(d)})
	}
	days := ""
	if q.Days > 0 {
		days = strconv.Itoa(q.Days)
	}
	return []choice{
		{"who", "Who", who}, {"what", "What", what}, {"result", "Result", chosen("Result", q.Result, results)},
		{"how", "How", chosen("How", q.How, ways)},
		{"days", "When", chosen("Any time", days, [][2]string{{"1", "Last 24 hours"}, {"7", "Last 7 days"},
			{"30", "Last 30 days"}})},
	}, nil
}

// chosen returns the options of a choice, with what stands for none before them.
func chosen(none, value string, all [][2]string) []option {
	out := []option{{Text: none}}
	for _, o := range all {
		out = append(out, option{o[0], o[1], o[0] == value})
	}
	return out
}

// Reason says more: why it was refused, or what was done.
func (a attempt) Reason() string {
	if a.Started() != "" {
		return ""
	}
	return cmp.Or(a.Message, record.CodeText(a.Code))
}

// auditRowPath returns the address of a row of the audit, without the base.
func auditRowPath(seq int64) string {
	if seq < 1 {
		return auditPath
	}
	return fmt.Sprintf("%s/%d", auditPath, seq)
}

// auditRowPage is one row.
type auditRowPage struct {
	pages.Page
	Row    attempt
	Beside pager // addresses, without the base
}

func (h *auditPages) showRow(req *httpx.Request, _ struct{}) (httpx.Response, error) {
	row, err := h.records.Entry(req.Context(), req.PathValue("row"))
	if err != nil {
		return httpx.Response{}, err
	}
	rows, err := attemptsOf(req.Context(), h.pulls, h.sessions, []record.RecordedAttempt{row})
	if err != nil {
		return httpx.Response{}, err
	}
	head, _, err := h.records.Head(req.Context())
	if err != nil {
		return httpx.Response{}, err
	}
	view := auditRowPage{Page: h.frame(req, "Row "+strconv.FormatInt(row.Seq, 10), auditPath), Row: rows[0]}
	if row.Seq < head {
		view.Beside.Newer = auditRowPath(row.Seq + 1)
	}
	if row.Seq > 1 {
		view.Beside.Older = auditRowPath(row.Seq - 1)
	}
	return h.html("auditrow", view)
}

// whole leaves a text as it is: programs read the lines, not people.
func whole(text string) string { return text }

// linesAtOnce is the number of rows that are read at a time.
const linesAtOnce = 500

// lines gives the whole audit out, oldest first, one JSON object a line, up to the row that was last when it
// began.
func (h *auditPages) lines(req *httpx.Request) (httpx.Response, error) {
	head, _, err := h.records.Head(req.Context())
	if err != nil {
		return httpx.Response{}, err
	}
	return httpx.Response{
		ContentType: "application/jsonl; charset=utf-8",
		Header:      http.Header{"Content-Disposition": {`attachment; filename="claudeops-audit.jsonl"`}},
		Stream:      func(w io.Writer) error { return h.writeAudit(req, w, head) },
	}, nil
}

func (h *auditPages) writeAudit(req *httpx.Request, w io.Writer, head int64) error {
	for after := int64(0); after < head; {
		rows, err := h.records.Page(req.Context(), record.AuditQuery{After: after, Ascending: true, Limit: linesAtOnce})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fault.New(fault.Internal, "the audit ends before row %d; run `claudeops audit verify`", head)
		}
		about, err := views.AboutOf(req.Context(), h.pulls, h.sessions, rows)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if after = r.Seq; after > head {
				return nil
			}
			if _, err := w.Write(append(httpx.EncodeJSON(about.Entry(r, whole)), '\n')); err != nil {
				return err
			}
		}
	}
	return nil
}
