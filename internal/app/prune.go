package app

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// pruneInterval is the interval at which a server removes records older than the retention.
const pruneInterval = 24 * time.Hour

// keepPruned removes what is older than the retention, now and then daily, until ctx ends.
func keepPruned(ctx context.Context, p *Parts) {
	if p.Cfg.Records.Retention == 0 && p.Cfg.Records.SessionRetention == 0 {
		return
	}
	prune := newRetention(func() *Parts { return p }).Operation()
	for ctx.Err() == nil {
		removed, err := prune.Handle(ctx, operation.Call{Caller: operation.Caller{Actor: record.Actor{Door: record.DoorWeb,
			System: record.SystemRetention}},
			Arguments: []byte("{}")})
		if err != nil && ctx.Err() == nil {
			p.Log.Warn("not everything that is old was removed", "error", fault.From(err).Message)
		}
		p.Log.Info("retention", "removed", removed)
		transport.Sleep(ctx, pruneInterval)
	}
}
