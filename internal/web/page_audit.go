package web

import (
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/web/pages"
)

type auditPageParams struct {
	Before int `query:"before"`
	After  int `query:"after"`
}

func (s *Server) auditPage(c *call) (answer, error) {
	var q auditPageParams
	if err := decodeQuery(c, &q); err != nil {
		return answer{}, err
	}
	rows, err := s.Audit.Page(c.Context(), AuditQuery{
		Before: int64(q.Before), After: int64(q.After), Ascending: q.After != 0, Limit: pageSize + 1,
	})
	if err != nil {
		return answer{}, err
	}
	if q.After != 0 {
		slices.Reverse(rows)
	}
	view := pages.Audit{Page: s.frame(c, "Audit", "/audit"), Verified: s.verified()}
	n := neighbours(c.URL.Query(), q.Before, q.After, rows, func(r record.RecordedAttempt) int64 { return r.Seq })
	view.Newer, view.Older, view.First = n.newer, n.older, n.first
	seen, err := s.pullsSeen(c.Context(), n.rows)
	if err != nil {
		return answer{}, err
	}
	for _, r := range n.rows {
		row := s.auditRow(r)
		if row.Pull != nil {
			row.Pull.State = string(seen[pullKey(r)].State)
		}
		view.Rows = append(view.Rows, row)
	}
	return s.html("audit", view)
}

func (s *Server) auditRow(r record.RecordedAttempt) pages.AuditRow {
	row := pages.AuditRow{
		Seq: r.Seq, At: pages.WhenOf(r.Time, s.Now()), Action: s.words(r.Action), Repo: s.words(r.Owner + "/" + r.Repo),
		Outcome: string(r.Outcome), Code: string(r.Code), Caller: s.words(r.Caller), Door: string(r.Door),
		Message: s.words(r.Message), Hash: short(r.Hash), Pull: pullOf(r.Provider, r.Owner, r.Repo, r.PRNumber, r.PRURL),
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
func (s *Server) auditLines(c *call) (answer, error) {
	head, err := s.Audit.Head(c.Context())
	if err != nil {
		return answer{}, err
	}
	return answer{
		contentType: "application/jsonl; charset=utf-8",
		header:      http.Header{"Content-Disposition": {`attachment; filename="claudeops-audit.jsonl"`}},
		stream:      func(w io.Writer) error { return s.writeAudit(c, w, head) },
	}, nil
}

func (s *Server) writeAudit(c *call, w io.Writer, head int64) error {
	for after := int64(0); after < head; {
		rows, err := s.Audit.Page(c.Context(), AuditQuery{After: after, Ascending: true, Limit: linesAtOnce})
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
			if _, err := w.Write(append(encode(EntryOf(r)), '\n')); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Server) doctorPage(c *call) (answer, error) {
	health, err := s.currentHealth(c)
	if err != nil {
		return answer{}, err
	}
	view := pages.Doctor{Page: s.frame(c, "Doctor", "/doctor"), CanOpen: health.CanOpen, At: pages.WhenOf(health.At, s.Now())}
	for _, f := range health.Findings {
		view.Findings = append(view.Findings, pages.Finding{
			Name: f.Name, Status: f.Status, Detail: s.text(f.Detail, maxMessage), Blocks: f.Blocks,
		})
	}
	return s.html("doctor", view)
}
