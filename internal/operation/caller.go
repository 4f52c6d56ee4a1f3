package operation

import "github.com/claudeops/claudeops/internal/record"

// Caller says who calls, and through which door.
type Caller struct {
	Door record.Door
	Name string // as the client names itself: untrusted
	// Progress, if not nil, is told of each phase of a creation as it begins, and while a write takes long. It is never
	// called by two at once.
	Progress func(phase string)
}
