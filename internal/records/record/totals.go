package record

// OutcomeTotal counts all recorded attempts at proposals with an outcome.
type OutcomeTotal struct {
	Outcome Outcome
	Count   int64
}

// GateTotal counts all recorded attempts that a gate has refused.
type GateTotal struct {
	Gate  Gate
	Count int64
}

// OpenPulls counts our open pull requests in a repository, by age.
type OpenPulls struct {
	RepoName
	Day, Week, Month, Older int64 // opened in the last 24 hours, 7 days, 30 days but not in the shorter time, and before
}

// All returns the sum of all ages.
func (o OpenPulls) All() int64 { return o.Day + o.Week + o.Month + o.Older }
