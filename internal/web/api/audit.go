package api

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/health"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/views"
)

// AuditList is a page of the audit, newest first.
type AuditList struct {
	Entries    []record.AuditEntry `json:"entries"`
	NextCursor string              `json:"next_cursor,omitempty" doc:"Absent on the last page"`
	Untrusted  string              `json:"untrusted"`
}

// AuditReport is the result of a verification.
type AuditReport struct {
	OK bool `json:"ok"`
	record.AuditReport
}

type auditParams struct {
	Repo      string    `json:"repo,omitempty" maxLength:"201" doc:"owner/name"`
	Outcome   string    `json:"outcome,omitempty" enum:"opened,revised,reused,dry_run,refused,failed,done"`
	Code      string    `json:"code,omitempty" pattern:"^[a-z_]{1,40}$" doc:"Code of a refusal or failure"`
	Caller    string    `json:"caller,omitempty" maxLength:"200" doc:"The whole name"`
	RequestID string    `json:"request_id,omitempty" maxLength:"64"`
	Pull      string    `json:"pull,omitempty" enum:"open,merged,closed,gone" doc:"State of the pull request that the attempt opened, as last seen"`
	Since     time.Time `json:"since,omitempty" doc:"At this time or later"`
	Until     time.Time `json:"until,omitempty" doc:"Before this time"`
	Cursor    string    `json:"cursor,omitempty" maxLength:"200" doc:"next_cursor of the page before, with the same filters"`
	Limit     int       `json:"limit,omitempty" minimum:"1" doc:"Default 50, at most 200"`
}

// audit answers what is asked of the audit.
type audit struct {
	kernel   func() *operation.Kernel
	records  views.Audit
	pulls    views.Pulls
	sessions views.Sessions
	health   *health.Checker
}

func (h *audit) operations() []operation.Operation {
	return []operation.Operation{
		defineRead(h.kernel, reads("list_audit", "Read the audit, newest first", operation.Route{Path: "/audit",
			ID: "listAudit"}),
			h.list),
		defineRead(h.kernel, reads("verify_audit", "Recompute the hash chain of the audit", operation.Route{
			Path: "/audit/verify", ID: "verifyAudit",
		}), h.verifyAudit),
	}
}

const listAudit = "audit"

func (h *audit) list(ctx context.Context, _ operation.Call, q auditParams) (AuditList, error) {
	p, err := pageOf(listAudit, q.Cursor, q.Limit)
	if err != nil {
		return AuditList{}, err
	}
	rows, err := h.records.Page(ctx, record.AuditQuery{
		Before: p.before, Limit: p.limit + 1, Repo: q.Repo, Outcome: record.Outcome(q.Outcome), Code: fault.Code(q.Code),
		Caller:    q.Caller,
		RequestID: q.RequestID, Pull: record.PullState(q.Pull), Since: q.Since, Until: q.Until,
	})
	if err != nil {
		return AuditList{}, err
	}
	list := AuditList{Entries: []record.AuditEntry{}, Untrusted: untrusted}
	rows, list.NextCursor = cutPage(listAudit, p, rows, func(r record.RecordedAttempt) int64 { return r.Seq })
	about, err := views.AboutOf(ctx, h.pulls, h.sessions, rows)
	if err != nil {
		return AuditList{}, err
	}
	for _, r := range rows {
		list.Entries = append(list.Entries, about.Entry(r, httpx.CleanLine))
	}
	return list, nil
}

type verifyParams struct {
	ExpectHead string `json:"expect_head,omitempty" maxLength:"64" doc:"A head that an earlier verification gave; it must still be in the chain"`
	Pulls      bool   `json:"pulls,omitempty" doc:"Also compare with the marks of pull requests, which costs requests to the providers"`
}

// verifyAudit reads the whole record, one request at a time.
func (h *audit) verifyAudit(ctx context.Context, _ operation.Call, q verifyParams) (AuditReport, error) {
	report, err := h.health.VerifyAudit(ctx, q.ExpectHead, q.Pulls)
	return AuditReport{err == nil && report.OK(), report}, err
}
