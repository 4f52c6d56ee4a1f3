package local

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
)

const (
	turnPatience = 20 * time.Second // how long a writer waits for its turn; a turn takes milliseconds
	turnPause    = 5 * time.Millisecond
)

// takeTurn waits until no claudeops process on this machine writes references of the repository, and keeps others from
// it until the turn ends. A git command that was started under the turn inherits it, so the turn lasts until that command
// has ended, whatever becomes of this process. Other programs know nothing of turns: git's own locks keep them apart.
func takeTurn(ctx context.Context, repo *repository) (*turn, error) {
	bounded, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	for {
		mine, err := tryTurn(repo.gitDir)
		switch {
		case err != nil:
			return nil, fault.Wrap(err, fault.UpstreamError,
				"the repository %s cannot be locked for writing; ask the operator to check its permissions", repo.ref)
		case mine != nil:
			return mine, nil
		case ctx.Err() != nil:
			return nil, fault.From(ctx.Err())
		case bounded.Err() != nil:
			return nil, fault.New(fault.Timeout, "other claudeops processes have been writing to the repository %s for %s; try again",
				repo.ref, turnPatience)
		}
		pause(bounded, turnPause)
	}
}
