package sessions

import (
	"fmt"
	"strings"
)

// Why says in one line why a session ended as it did: what was recorded, or else what the state and the exit code tell.
// It is "" of a session that runs, and of one that came to a good end.
func (e Ending) Why() string {
	if text := strings.Join(strings.Fields(e.Reason), " "); text != "" {
		return text
	}
	switch e.State {
	case StateFailed:
		if e.ExitCode > 0 {
			return fmt.Sprintf("claude exited with code %d; nothing more is recorded", e.ExitCode)
		}
		return "it failed; why is not recorded"
	case StateTimeout:
		return "it reached its limit of time"
	case StateLimit:
		return "it reached its limit of turns or of cost"
	case StateCancelled:
		return "a person or a signal ended it"
	case StateInterrupted:
		return "the process that ran it was killed, or the machine stopped"
	case StateSkipped:
		return "another session was running when it was due"
	}
	return ""
}
