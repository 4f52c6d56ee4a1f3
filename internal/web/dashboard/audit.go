package dashboard

import (
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
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

// auditPage is a page of the audit.
type auditPage struct {
	pages.Page
	Rows       []attempt
	Neighbours pager
	Verified   health.Verification
}

type auditPageParams struct {
	Before int `json:"before,omitempty" minimum:"1"`
	After  int `json:"after,omitempty" minimum:"1"`
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
	view := auditPage{Page: h.frame(req, "Audit", "/audit"), Verified: h.health.LastVerification()}
	rows, view.Neighbours = neighbours(req.URL.Query(), q.Before, q.After, rows)
	if view.Rows, err = attemptsOf(req.Context(), h.pulls, rows); err != nil {
		return handler.Response{}, err
	}
	return h.html("audit", view)
}

// auditRowPath is the address of a row of the audit, without the base.
func auditRowPath(seq int64) string {
	if seq < 1 {
		return "/audit"
	}
	return fmt.Sprintf("/audit?before=%d#row-%d", seq+1, seq)
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
	return h.html("doctor", struct {
		pages.Page
		Diagnosis health.Diagnosis
	}{h.frame(req, "Doctor", "/doctor"), diagnosis})
}
