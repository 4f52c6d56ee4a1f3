package record

import (
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// AuditEntry is one row of the audit as it is given out: over REST, on the command line, and as a line of a file.
type AuditEntry struct {
	Seq        int64      `json:"seq"`
	Time       time.Time  `json:"time"`
	RequestID  string     `json:"request_id"`
	Door       string     `json:"door"`
	Caller     string     `json:"caller" doc:"The actor's name, to read; nothing is decided by it"`
	Actor      Actor      `json:"actor,omitzero" doc:"Who acted, and who stands behind them; see docs/explain/people.md"`
	Tier       int        `json:"tier"`
	Action     string     `json:"action"`
	Act        string     `json:"act" doc:"Who did what to which change where, as a sentence; made of the row, and not part of what is hashed"`
	Provider   string     `json:"provider"`
	Repo       string     `json:"repo"`
	Base       string     `json:"base"`
	Branch     string     `json:"branch"`
	Title      string     `json:"title"`
	Paths      []string   `json:"paths"`
	Outcome    string     `json:"outcome"`
	Code       fault.Code `json:"code"`
	Message    string     `json:"message"`
	PRNumber   int        `json:"pr_number,omitempty"`
	PRURL      string     `json:"pr_url,omitempty"`
	DurationMS float64    `json:"duration_ms"`
	PullState  string     `json:"pull_state,omitempty" doc:"Of that pull request as last seen, if it is ours; not part of the recorded row"`
	Verdicts   []Verdict  `json:"verdicts"`
	Digest     string     `json:"digest"`
	Policy     string     `json:"policy,omitempty" doc:"Hash of the policy that judged it"`
	PrevHash   string     `json:"prev_hash"`
	Hash       string     `json:"hash"`
}

// Entry returns the row as it is given out, without Act and PullState, which need more than the row. Lists are never
// null.
func (r RecordedAttempt) Entry() AuditEntry {
	return AuditEntry{
		Seq: r.Seq, Time: r.Time.UTC(), RequestID: r.RequestID, Door: string(r.Door), Caller: r.Caller,
		Actor: r.Actor, Tier: int(r.Tier),
		Action: r.Action, Provider: r.Provider, Repo: r.Repository(), Base: r.Base, Branch: r.Branch, Title: r.Title,
		Paths: append([]string{}, r.Paths...), Outcome: string(r.Outcome), Code: r.Code, Message: r.Message,
		PRNumber: r.PRNumber, PRURL: r.PRURL, DurationMS: float64(r.Duration.Microseconds()) / 1000,
		Verdicts: append([]Verdict{}, r.Verdicts...), Digest: r.Digest, Policy: r.Policy, PrevHash: r.PrevHash, Hash: r.Hash,
	}
}
