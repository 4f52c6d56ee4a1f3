package local

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/system/files"
)

// StatesFile is the file in a root that lists the records which its pull requests are in, with the time of the last
// start: those who keep records of their own do not see each other's pull requests, and share branches.
const StatesFile = ".claudeops-states"

const (
	maxStatesFile = 16 << 10           // bytes
	stateForgets  = 7 * 24 * time.Hour // after which records that nobody starts with are not listed
	stateNoted    = time.Hour          // how old a note gets before it is written anew
)

// OtherRecords lists the records beside ours that were noted in the root within a week, such as another state folder,
// sorted: pull requests of the root may be there. It writes nothing.
func OtherRecords(root, ours string, now time.Time) []string {
	noted := notedRecords(root, now)
	delete(noted, ours)
	return slices.Sorted(maps.Keys(noted))
}

// NoteRecords notes in the root that ours are in use, as far as the root can be written, and at most once an hour.
func NoteRecords(root, ours string, now time.Time) {
	noted := notedRecords(root, now)
	if now.Sub(noted[ours]) <= stateNoted {
		return
	}
	noted[ours] = now.UTC().Truncate(time.Second)
	if text, err := json.MarshalIndent(noted, "", "  "); err == nil && len(text) < maxStatesFile {
		const everybodyReads = 0o644
		_ = files.Replace(filepath.Join(root, StatesFile), append(text, '\n'), everybodyReads) // it only serves a warning
	}
}

// notedRecords returns the records that were noted within a week, with the time of the note; none if they cannot be
// read.
func notedRecords(root string, now time.Time) map[string]time.Time {
	noted := map[string]time.Time{}
	text, _, err := files.ReadUnlinked(filepath.Join(root, StatesFile), maxStatesFile)
	if err != nil || json.Unmarshal(text, &noted) != nil {
		return map[string]time.Time{}
	}
	maps.DeleteFunc(noted, func(_ string, at time.Time) bool { return now.Sub(at) > stateForgets })
	return noted
}
