package web

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/record"
)

// AuditEntry is one row of the audit, as it is recorded.
type AuditEntry struct {
	Seq        int64            `json:"seq"`
	Time       time.Time        `json:"time"`
	RequestID  string           `json:"request_id"`
	Door       string           `json:"door"`
	Caller     string           `json:"caller"`
	Tier       int              `json:"tier"`
	Action     string           `json:"action"`
	Provider   string           `json:"provider"`
	Repo       string           `json:"repo"`
	Base       string           `json:"base"`
	Branch     string           `json:"branch"`
	Title      string           `json:"title"`
	Paths      []string         `json:"paths"`
	Outcome    string           `json:"outcome"`
	Code       fault.Code       `json:"code"`
	Message    string           `json:"message"`
	PRNumber   int              `json:"pr_number,omitempty"`
	PRURL      string           `json:"pr_url,omitempty"`
	DurationMS float64          `json:"duration_ms"`
	PullState  string           `json:"pull_state,omitempty" doc:"Of that pull request as last seen, if it is ours; not part of the recorded row"`
	Verdicts   []record.Verdict `json:"verdicts"`
	Digest     string           `json:"digest"`
	PrevHash   string           `json:"prev_hash"`
	Hash       string           `json:"hash"`
}

// AuditList is a page of the audit, newest first.
type AuditList struct {
	Entries    []AuditEntry `json:"entries"`
	NextCursor string       `json:"next_cursor,omitempty" doc:"Absent on the last page"`
	Untrusted  string       `json:"untrusted"`
}

// AuditReport is what a verification found.
type AuditReport struct {
	OK       bool   `json:"ok"`
	Rows     int64  `json:"rows" doc:"Sound rows up to the first bad one"`
	Head     string `json:"head" doc:"Hash of the last of them; keep it elsewhere and give it as expect_head"`
	HeadSeq  int64  `json:"head_seq"`
	FirstBad int64  `json:"first_bad,omitempty"`
	Problem  string `json:"problem,omitempty"`
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

const listAudit = "audit"

func (s *Server) audit(c *call) (answer, error) {
	var q auditParams
	if err := decodeQuery(c, &q); err != nil {
		return answer{}, err
	}
	p, err := pageOf(listAudit, q.Cursor, q.Limit)
	if err != nil {
		return answer{}, err
	}
	rows, err := s.Audit.Page(c.Context(), AuditQuery{
		Before: p.before, Limit: p.limit + 1, Repo: q.Repo, Outcome: q.Outcome, Code: q.Code, Caller: q.Caller,
		RequestID: q.RequestID, Pull: q.Pull, Since: q.Since, Until: q.Until,
	})
	if err != nil {
		return answer{}, err
	}
	list := AuditList{Entries: []AuditEntry{}, Untrusted: untrusted}
	rows, list.NextCursor = cut(listAudit, p, rows, func(r record.RecordedAttempt) int64 { return r.Seq })
	seen, err := s.pullsSeen(c.Context(), rows)
	if err != nil {
		return answer{}, err
	}
	for _, r := range rows {
		entry := EntryOf(r)
		entry.PullState = string(seen[pullKey(r)].State)
		list.Entries = append(list.Entries, entry)
	}
	return answer{value: list}, nil
}

// EntryOf renders a row of the audit. Lists are never null.
func EntryOf(r record.RecordedAttempt) AuditEntry {
	return AuditEntry{
		Seq: r.Seq, Time: r.Time.UTC(), RequestID: r.RequestID, Door: string(r.Door), Caller: r.Caller, Tier: int(r.Tier),
		Action: r.Action, Provider: r.Provider, Repo: r.Owner + "/" + r.Repo, Base: r.Base, Branch: r.Branch, Title: r.Title,
		Paths: append([]string{}, r.Paths...), Outcome: string(r.Outcome), Code: r.Code, Message: r.Message,
		PRNumber: r.PRNumber, PRURL: r.PRURL, DurationMS: float64(r.Duration.Microseconds()) / 1000,
		Verdicts: append([]record.Verdict{}, r.Verdicts...), Digest: r.Digest, PrevHash: r.PrevHash, Hash: r.Hash,
	}
}

type verifyParams struct {
	ExpectHead string `query:"expect_head" doc:"A head that an earlier verification gave; it must still be in the chain"`
}

// verifyAudit reads the whole record, one request at a time.
func (s *Server) verifyAudit(c *call) (answer, error) {
	var q verifyParams
	if err := decodeQuery(c, &q); err != nil {
		return answer{}, err
	}
	done, err := enter(c.Context(), s.heavy)
	if err != nil {
		return answer{}, err
	}
	defer done()
	report, err := s.Audit.Verify(c.Context(), q.ExpectHead)
	if err == nil && !report.OK && q.ExpectHead == "" {
		s.checked.keep(report, nil, true, s.Now()) // bad news is for the pages, too
	}
	return answer{value: report}, err
}

// enter waits for a place among those that the channel has room for.
func enter(ctx context.Context, places chan struct{}) (done func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, fault.From(ctx.Err())
	}
}
