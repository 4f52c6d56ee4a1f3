package record

// OutcomeTotal is how many attempts at proposals have ended in an outcome, of all that are recorded.
type OutcomeTotal struct {
	Outcome Outcome
	Count   int64
}

// GateTotal is how many attempts a gate has refused, of all that are recorded.
type GateTotal struct {
	Gate  Gate
	Count int64
}

// OpenPulls is how many of our pull requests in a repository are open, by age.
type OpenPulls struct {
	RepoName
	Day, Week, Month, Older int64 // opened in the last 24 hours, 7 days, 30 days but not in the shorter time, and before
}

// All is the sum of all ages.
func (o OpenPulls) All() int64 { return o.Day + o.Week + o.Month + o.Older }
