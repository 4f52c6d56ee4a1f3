package record

import (
	"context"
	"time"
)

// Event is the kind of a Notice.
type Event string

// The events.
const (
	EventOpened  Event = "opened"
	EventRevised Event = "revised"
	EventRefused Event = "refused" // only if the operator asks for it
	EventMerged  Event = "merged"
	EventClosed  Event = "closed"
	// EventDeployed is a merge that was put in place on this machine; EventDeployWaits is one that waits for a person
	// before.
	EventDeployed    Event = "deployed"
	EventDeployWaits Event = "deploy_waits"
	// Ends of sessions of agents that a person should look at.
	EventSessionFailed  Event = "session_failed" // or it was too long, or its process was killed
	EventSessionSkipped Event = "session_skipped"
	EventSessionLimit   Event = "session_limit" // of turns or of cost
	EventSessionLogin   Event = "session_login" // Claude Code has to be signed in
)

// Notice is an event to notify people of. It waits in the store's outbox until a sender of internal/ops/notify has
// delivered it.
type Notice struct {
	Event   Event
	Payload []byte // a JSON object; see internal/ops/notify
}

// Notifier tells people of events. internal/ops/notify implements it.
type Notifier interface {
	// Notices returns the notices of an event, one for each target. They are to be put into the outbox in the transaction
	// that records the event.
	Notices(event Event, a Attempt) []Notice
	// Kick has what waits in the outbox delivered, and does not wait for that.
	Kick(ctx context.Context)
}

// PendingNotice is a notice that a sender has claimed from the store's outbox.
type PendingNotice struct {
	ID        int64 // grows in the order of the record
	Event     Event
	Payload   []byte    // as it was given to Ledger
	Attempts  int       // how often it was claimed before, also by processes that died over it
	CreatedAt time.Time // when it was recorded
}

// NoticeSettlement records how the delivery of a claimed notice ended. Exactly one of Delivered, GiveUp and RetryAt is
// set.
type NoticeSettlement struct {
	Delivered bool
	RetryAt   time.Time // when it is to be tried again
	GiveUp    bool
	Error     string // why it was not delivered; the store keeps the first 500 bytes
}

// NoticeCounts is the state of the outbox.
type NoticeCounts struct {
	Pending   int    // waiting, or being delivered now
	GivenUp   int    // not delivered, of the last 30 days
	LastError string // why the newest of those that failed was not delivered yet; "" if none is waiting or given up
}
