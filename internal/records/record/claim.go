package record

import "time"

// Position is a point in the order of the record: whatever is recorded later has a greater one, on all machines that
// share the store.
type Position int64

// Claim is a reservation's view of the open pull requests of its repository, and the caps to keep.
type Claim struct {
	Seen Position   // where the record stood before the provider was asked for Open
	Open []OpenPull // the open pull requests of ours, as the provider listed them after Seen
	// Within is the period of the cap on creations: it ends now, by the clock of the records.
	Within time.Duration
	// Admit decides whether one more may be opened at this usage; an error denies. nil: there is no cap. It is called
	// within the transaction that reserves.
	Admit func(Usage) error
}

// OpenPull tells an open pull request apart from others.
type OpenPull struct {
	Number  int
	Head    string // commit
	Request string // the request id that its mark names; "" if it has none that is true
}

// Usage counts the pull requests of a repository that the ledger and the provider together know. No pull request counts
// twice: neither as listed and recorded, nor as listed and being made.
type Usage struct {
	Open int // those that are open, and the pending ones
	// proposals that hold a reservation: each may become a pull request, or has and that is not recorded yet
	Pending int
	Made    []time.Time // when pull requests were recorded as opened within Claim.Within, oldest first
}
