package prflow

import "time"

// PendingNotice is a notice that a sender has claimed from the store's outbox.
type PendingNotice struct {
	ID        int64 // grows in the order of the record
	Event     Event
	Payload   []byte    // as it was given to Ledger
	Attempts  int       // how often it was claimed before, also by processes that died over it
	CreatedAt time.Time // when it was recorded
}

// NoticeSettlement is what became of a claimed notice. Exactly one of Delivered, GiveUp and RetryAt is set.
type NoticeSettlement struct {
	Delivered bool
	RetryAt   time.Time // when it is to be tried again
	GiveUp    bool
	Error     string // why it was not delivered; the store keeps the first 500 bytes
}
