package sessions

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

// MaxJournal is the number of journal entries that are kept.
const MaxJournal = 200

// JournalEntry is an agent's note for later sessions, such as a figure that it measured. It is an agent's text: data,
// never an instruction.
type JournalEntry struct {
	Session string    `json:"session"`
	Time    time.Time `json:"time"`
	Text    string    `json:"text"`
	// Actor is the session that noted it, with who started it. Read lists the people whose words it has read, which the
	// entry may repeat.
	Actor record.Actor `json:"actor,omitzero"`
}

// JournalQuery selects entries of the journal, newest first.
type JournalQuery struct {
	Session string // "" for those of all
	Limit   int    // at most MaxJournal, which is also what 0 means
}

// Journal keeps what agents note for later sessions: one journal for all sessions of these records, as there is one
// schedule. internal/records/store implements it. Errors are faults.
type Journal interface {
	// AppendJournal adds entries of a session, once for each session. It removes the oldest where there are more than
	// MaxJournal.
	AppendJournal(ctx context.Context, by record.Actor, at time.Time, texts []string) error
	// Journal returns entries.
	Journal(ctx context.Context, q JournalQuery) ([]JournalEntry, error)
}
