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

// OtherRecords lists the records beside ours in which pull requests of the root may be, such as another state folder,
// sorted. ours is noted in the root, as far as that can be written.
func OtherRecords(root, ours string, now time.Time) []string {
	name, noted := filepath.Join(root, StatesFile), map[string]time.Time{}
	if text, _, err := files.ReadUnlinked(name, maxStatesFile); err == nil && json.Unmarshal(text, &noted) != nil {
		noted = map[string]time.Time{}
	}
	maps.DeleteFunc(noted, func(_ string, at time.Time) bool { return now.Sub(at) > stateForgets })
	if now.Sub(noted[ours]) > stateNoted {
		noted[ours] = now.UTC().Truncate(time.Second)
		if text, err := json.MarshalIndent(noted, "", "  "); err == nil && len(text) < maxStatesFile {
			const everybodyReads = 0o644
			_ = files.Replace(name, append(text, '\n'), everybodyReads) // it only serves a warning
		}
	}
	delete(noted, ours)
	return slices.Sorted(maps.Keys(noted))
}
