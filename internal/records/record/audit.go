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
	// GenesisHash if there is none
	Head    string `json:"head" doc:"Hash of the last of them; keep it elsewhere and give it as expect_head"`
	HeadSeq int64  `json:"head_seq"`

	// number of the first row that is missing, altered or out of place; 0 if there is none
	FirstBad int64  `json:"first_bad,omitempty"`
	Problem  string `json:"problem,omitempty"` // what is wrong, in a sentence; "" if nothing is

	// Checks says with whose heads it was compared, and with whose it could not be.
	Checks []HeadCheck `json:"checks,omitempty"`

	// number of the row with the expected head; 0 for GenesisHash, and when none was found or asked for
	ExpectedSeq int64 `json:"-"`
}

// OK reports whether the chain is whole, contains the expected head, and agrees with every head that it was compared
// with.
func (r AuditReport) OK() bool { return r.Problem == "" }
