package dashboard

import (
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/records"
)

// auditPages show the audit and what doctor says.
type auditPages struct {
	*renderer
	records records.Audit
	pulls   records.Pulls
	health  *health.Checker
}

type auditPageParams struct {
	Before int `query:"before"`
	After  int `query:"after"`
}

func (h *auditPages) audit(req *handler.Request) (handler.Response, error) {
	var q auditPageParams
	if err := handler.DecodeQuery(req, &q); err != nil {
		return handler.Response{}, err
	}
	rows, err := h.records.Page(req.Context(), record.AuditQuery{
		Before: int64(q.Before), After: int64(q.After), Ascending: q.After != 0, Limit: pageSize + 1,
	})
	if err != nil {
		return handler.Response{}, err
	}
	if q.After != 0 {
		slices.Reverse(rows)
	}
	view := pages.Audit{Page: h.frame(req, "Audit", "/audit"), Verified: h.verification(h.health.LastVerification())}
	n := neighbours(req.URL.Query(), q.Before, q.After, rows, func(r record.RecordedAttempt) int64 { return r.Seq })
	view.Newer, view.Older, view.First = n.newer, n.older, n.first
	seen, err := records.PullsOf(req.Context(), h.pulls, n.rows)
	if err != nil {
		return handler.Response{}, err
	}
	for _, r := range n.rows {
		row := h.row(r)
		if row.Pull != nil {
			row.Pull.State = string(seen[r.PullKey()].State)
		}
		view.Rows = append(view.Rows, row)
	}
	return h.html("audit", view)
}

func (h *auditPages) row(r record.RecordedAttempt) pages.AuditRow {
	row := pages.AuditRow{
		Seq: r.Seq, At: pages.WhenOf(r.Time, h.env.Now()), Action: h.env.Line(r.Action), Repo: h.env.Line(r.Owner + "/" + r.Repo),
		Outcome: string(r.Outcome), Code: string(r.Code), Caller: h.env.Line(r.Caller), Door: string(r.Door),
		Message: h.env.Line(r.Message), Hash: short(r.Hash), Pull: pullOf(r.Provider, r.Owner, r.Repo, r.PRNumber, r.PRURL),
	}
	if slices.Contains(record.ProposalActions(), r.Action) {
		row.Link = "/proposals/" + url.PathEscape(r.RequestID)
	}
	if row.Repo == "/" {
		row.Repo = ""
	}
	return row
}

// linesAtOnce is how many rows are read at a time.
const linesAtOnce = 500

// auditLines gives the whole audit out, oldest first, one JSON object a line, up to the row that was last when it began.
func (h *auditPages) lines(req *handler.Request) (handler.Response, error) {
	head, _, err := h.records.Head(req.Context())
	if err != nil {
		return handler.Response{}, err
	}
	return handler.Response{
		ContentType: "application/jsonl; charset=utf-8",
		Header:      http.Header{"Content-Disposition": {`attachment; filename="claudeops-audit.jsonl"`}},
		Stream:      func(w io.Writer) error { return h.writeAudit(req, w, head) },
	}, nil
}

func (h *auditPages) writeAudit(req *handler.Request, w io.Writer, head int64) error {
	for after := int64(0); after < head; {
		rows, err := h.records.Page(req.Context(), record.AuditQuery{After: after, Ascending: true, Limit: linesAtOnce})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fault.New(fault.Internal, "the audit ends before row %d; run `claudeops audit verify`", head)
		}
		for _, r := range rows {
			if after = r.Seq; after > head {
				return nil
			}
			if _, err := w.Write(append(handler.EncodeJSON(r.Entry()), '\n')); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *auditPages) doctor(req *handler.Request) (handler.Response, error) {
	diagnosis, err := h.health.Diagnose(req.Context())
	if err != nil {
		return handler.Response{}, err
	}
	view := pages.Doctor{Page: h.frame(req, "Doctor", "/doctor"), CanOpen: diagnosis.CanOpen(), At: pages.WhenOf(diagnosis.At, h.env.Now())}
	for _, f := range diagnosis.Findings {
		view.Findings = append(view.Findings, pages.Finding{
			Name: f.Name, Status: f.Status, Detail: h.env.Message(f.Detail), Blocks: f.Blocks,
		})
	}
	return h.html("doctor", view)
}
