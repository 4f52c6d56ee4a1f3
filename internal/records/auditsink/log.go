package auditsink

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

// logEvery is the interval at which a Log checks for rows that other processes have added.
const logEvery = 2 * time.Second

// Log gives the head of each row of the audit to a function, whichever process has added it, from the head that the
// audit has when it begins. It is for the log of a server.
type Log struct {
	Audit Audit
	Tell  func(h record.Head)

	seen  int64
	begun bool
}

// Keep logs rows until ctx ends.
func (l *Log) Keep(ctx context.Context) {
	ticker := time.NewTicker(logEvery)
	defer ticker.Stop()
	for {
		l.Catch(ctx)
		select {
		case <-ctx.Done():
			bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBound)
			l.Catch(bound) // those of what was answered last
			cancel()
			return
		case <-ticker.C:
		}
	}
}

// Catch logs the rows that were added since the last call. The first call logs only the last row. What cannot be read
// is logged later.
func (l *Log) Catch(ctx context.Context) {
	if !l.begun {
		seq, _, err := l.Audit.Head(ctx)
		if err != nil {
			return
		}
		l.seen, l.begun = max(seq-1, 0), true
	}
	for {
		heads, err := l.Audit.HeadsAfter(ctx, l.seen, atOnce)
		if err != nil || len(heads) == 0 {
			return
		}
		for _, h := range heads {
			l.Tell(h)
			l.seen = h.Seq
		}
	}
}
