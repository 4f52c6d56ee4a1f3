package api

import (
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/records"
)

// AuditList is a page of the audit, newest first.
type AuditList struct {
	Entries    []record.AuditEntry `json:"entries"`
	NextCursor string              `json:"next_cursor,omitempty" doc:"Absent on the last page"`
	Untrusted  string              `json:"untrusted"`
}

// AuditReport is what a verification found.
type AuditReport struct {
	OK bool `json:"ok"`
	record.AuditReport
}

type auditParams struct {
	Repo      string    `query:"repo" doc:"owner/name"`
	Outcome   string    `query:"outcome" enum:"opened,reused,dry_run,refused,failed,done"`
	Code      string    `query:"code"`
	Caller    string    `query:"caller"`
	RequestID string    `query:"request_id"`
	Pull      string    `query:"pull" enum:"open,merged,closed,gone" doc:"State of the pull request that the attempt opened, as last seen"`
	Since     time.Time `query:"since" doc:"At this time or later"`
	Until     time.Time `query:"until" doc:"Before this time"`
	Cursor    string    `query:"cursor" doc:"next_cursor of the page before, with the same filters"`
	Limit     int       `query:"limit" doc:"Default 50, at most 200"`
}

// audit answers what is asked of the audit.
type audit struct {
	records records.Audit
	pulls   records.Pulls
	health  *health.Checker
}

func (h *audit) routes() []handler.Route {
	return []handler.Route{
		read(prefix+"/audit", h.list, handler.Doc{
			ID: "listAudit", Summary: "Read the audit, newest first", Params: auditParams{}, Answers: handler.OK(AuditList{}),
		}),
		read(prefix+"/audit/verify", h.verify, handler.Doc{
			ID: "verifyAudit", Summary: "Recompute the hash chain of the audit", Params: verifyParams{}, Answers: handler.OK(AuditReport{}),
		}),
	}
}

const listAudit = "audit"

func (h *audit) list(req *handler.Request) (handler.Response, error) {
	var q auditParams
	if err := handler.DecodeQuery(req, &q); err != nil {
		return handler.Response{}, err
	}
	p, err := pageOf(listAudit, q.Cursor, q.Limit)
	if err != nil {
		return handler.Response{}, err
	}
	rows, err := h.records.Page(req.Context(), record.AuditQuery{
		Before: p.before, Limit: p.limit + 1, Repo: q.Repo, Outcome: record.Outcome(q.Outcome), Code: fault.Code(q.Code), Caller: q.Caller,
		RequestID: q.RequestID, Pull: record.PullState(q.Pull), Since: q.Since, Until: q.Until,
	})
	if err != nil {
		return handler.Response{}, err
	}
	list := AuditList{Entries: []record.AuditEntry{}, Untrusted: untrusted}
	rows, list.NextCursor = cut(listAudit, p, rows, func(r record.RecordedAttempt) int64 { return r.Seq })
	seen, err := records.PullsOf(req.Context(), h.pulls, rows)
	if err != nil {
		return handler.Response{}, err
	}
	for _, r := range rows {
		entry := r.Entry()
		entry.PullState = string(seen[r.PullKey()].State)
		list.Entries = append(list.Entries, entry)
	}
	return handler.Response{Value: list}, nil
}

type verifyParams struct {
	ExpectHead string `query:"expect_head" doc:"A head that an earlier verification gave; it must still be in the chain"`
}

// verify reads the whole record, one request at a time.
func (h *audit) verify(req *handler.Request) (handler.Response, error) {
	var q verifyParams
	if err := handler.DecodeQuery(req, &q); err != nil {
		return handler.Response{}, err
	}
	report, err := h.health.VerifyAudit(req.Context(), q.ExpectHead)
	return handler.Response{Value: AuditReport{err == nil && report.OK(), report}}, err
}
