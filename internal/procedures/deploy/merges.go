package deploy

import (
	"encoding/json"
	"time"

	"github.com/claudeops/claudeops/internal/system/change"
)

// Merges records the merges that this machine deploys automatically. It is stored in the state, so that a server that
// was killed continues where it was.
type Merges struct {
	// Position is the place in the audit up to which merges were read; -1 before the first look.
	Position int64 `json:"position"`
	// Due is the merge that is not in place yet; nil if there is none. What was merged before it comes into place with it.
	Due *DueMerge `json:"due,omitempty"`
	// Last is the merge that was dealt with last.
	Last *DueMerge `json:"last,omitempty"`
}

// DueMerge is a merge that is to be deployed, and why it is not yet.
type DueMerge struct {
	Provider string    `json:"provider"`
	Owner    string    `json:"owner"`
	Name     string    `json:"repo"`
	Number   int       `json:"number"`
	Title    string    `json:"title"`
	Seen     time.Time `json:"seen"`
	// Why says what a person has to do, in a sentence; "" if the deployment has not been tried yet.
	Why   string   `json:"why,omitempty"`
	Code  Code     `json:"code,omitempty"`
	Adopt []string `json:"adopt,omitempty"` // files that were not deployed, about which a person has to decide
	// Snapshot is the newest one when it was tried last: another one means that a person has deployed meanwhile.
	Snapshot string    `json:"snapshot,omitempty"`
	Tried    time.Time `json:"tried,omitzero"`
}

const mergesName = "merges.json"

// ReadMerges reads what is remembered. What cannot be read counts as nothing: the merges that are seen from now on are
// deployed.
func ReadMerges(s change.State) (Merges, error) {
	m := Merges{Position: -1}
	text, err := s.ReadFile(mergesName)
	if err != nil || text == nil {
		return m, err
	}
	if json.Unmarshal(text, &m) != nil {
		m = Merges{Position: -1}
	}
	return m, nil
}

// WriteMerges remembers, on disk.
func WriteMerges(s change.State, m Merges) error { return s.WriteJSON(mergesName, m) }

// LockMerges keeps other processes of this machine from deploying merges until unlock is called, or this process ends.
// ok is false if another has it.
func LockMerges(s change.State) (unlock func(), ok bool, err error) { return s.TryLock("merges.lock") }

// Waiting returns the merge that waits for a person; nil if there is none.
func (s *Service) Waiting() (*DueMerge, error) {
	if err := s.ready(); err != nil {
		return nil, faultOf(err)
	}
	m, err := ReadMerges(s.engine.State())
	if err != nil || m.Due == nil || m.Due.Why == "" {
		return nil, faulted(err)
	}
	return m.Due, nil
}
