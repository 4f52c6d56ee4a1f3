package record

import "time"

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
			r.Problem, r.FirstBad = c.Against+": "+c.Detail, c.FirstBad
		}
	}
	return r
}
