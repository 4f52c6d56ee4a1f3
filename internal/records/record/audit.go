package record

import (
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Sizes of a page of the audit.
const (
	DefaultAuditLimit = 50
	MaxAuditLimit     = 1000
)

// AuditQuery selects rows of the audit. The zero value is the newest page; every field that is set narrows it.
type AuditQuery struct {
	After     int64 // rows with a higher number only
	Before    int64 // rows with a lower number only; 0: no bound
	Ascending bool  // oldest first instead of newest first
	Limit     int   // default DefaultAuditLimit, at most MaxAuditLimit

	Repo      string // owner/name
	Outcome   Outcome
	Code      fault.Code
	Caller    string
	RequestID string
	Door      Door
	Action    string    // that the row's begins with, such as "review."
	Number    int64     // of the row, or of the pull request that it is about; 0 for any
	Pull      PullState // of the pull request that the attempt opened, as last seen
	Since     time.Time // at this time or later
	Until     time.Time // before this time
}

// AuditReport is the result of a verification of the audit.
type AuditReport struct {
	Rows int64 `json:"rows" doc:"Sound rows up to the first bad one"`
	// 64 zeros if there is none
	Head    string `json:"head" doc:"Hash of the last of them; keep it elsewhere and give it as expect_head"`
	HeadSeq int64  `json:"head_seq"`

	// number of the first row that is missing, altered or out of place; 0 if there is none
	FirstBad int64  `json:"first_bad,omitempty"`
	Problem  string `json:"problem,omitempty"` // what is wrong, in a sentence; "" if nothing is

	// Checks says with whose heads it was compared, and with whose it could not be.
	Checks []HeadCheck `json:"checks,omitempty"`

	// number of the row with the expected head; 0 for the hash of an empty audit, and when none was found or asked for
	ExpectedSeq int64 `json:"-"`
}

// OK reports whether the chain is whole, contains the expected head, and agrees with every head that it was compared
// with.
func (r AuditReport) OK() bool { return r.Problem == "" }

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
	Policy     string     `json:"policy,omitempty" doc:"Hash of the policy that judged it; unreadable while the policy could not be read"`
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

// Head proves a row of the audit and every row before it: anyone who kept a head can verify that none of them was
// changed. It contains nothing of the row's contents.
type Head struct {
	Seq  int64     `json:"seq"`  // number of the row; 0 before the first
	Hash string    `json:"hash"` // of the row, 64 hexadecimal digits
	Time time.Time `json:"time"` // of the row; may be zero where only the hash was kept
}

// AuditExport says how far the heads of the audit were exported to a sink.
type AuditExport struct {
	Sink      string    // its name, without any secret
	Last      Head      // the last one that it has taken; Seq 0 if it has none
	At        time.Time // when; zero if it has none
	Problem   string    // why the last attempt to export failed, "" if it did not
	ProblemAt time.Time // when it failed first since it worked last
}

// HeadCheck says how the audit compares with the heads that somebody else has kept.
type HeadCheck struct {
	Against string         `json:"against" doc:"What keeps the heads: a sink, the marks of pull requests, or a file of heads"`
	Result  HeadComparison `json:"result" enum:"agrees,differs,unchecked"`
	Heads   int            `json:"heads" doc:"How many heads were compared"`
	LastSeq int64          `json:"last_seq,omitempty" doc:"The newest row that they vouch for"`
	Detail  string         `json:"detail,omitempty" doc:"What differs, or why it was not checked"`

	FirstBad int64 `json:"-"` // number of the first row that differs; 0 if none does
}

// Problem says what a comparison found, as the problem of a report.
func (c HeadCheck) Problem() string { return c.Against + ": " + c.Detail }

// HeadComparison is the result of a HeadCheck.
type HeadComparison string

// The results.
const (
	HeadsAgree     HeadComparison = "agrees"
	HeadsDiffer    HeadComparison = "differs"
	HeadsUnchecked HeadComparison = "unchecked" // it could not be read, or has no heads
)

// Against adds what comparisons with heads found. The first one that differs becomes the report's problem, if it has
// none.
func (r AuditReport) Against(checks ...HeadCheck) AuditReport {
	for _, c := range checks {
		r.Checks = append(r.Checks, c)
		if c.Result == HeadsDiffer && r.Problem == "" {
			r.Problem, r.FirstBad = c.Problem(), c.FirstBad
		}
	}
	return r
}

// Pruned says how many rows of a kind were removed because of their age, or would be.
type Pruned struct {
	Kind string `json:"kind"`
	Rows int64  `json:"rows"`
}
