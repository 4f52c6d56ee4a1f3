package operationtest

import (
	"context"
	"log/slog"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Plain completes an operation under a kernel that lets everything pass and records nothing, for tests of doors. Its
// handler reads the arguments itself if raw says so.
func Plain[In, Out any](o operation.Operation, raw bool, handle operation.Handle[In, Out]) operation.Operation {
	kernel := operation.NewKernel(operation.KernelOptions{
		Authority: operation.Authority{Tier: gitprovider.TierRemediate, AllowWrite: true},
		Audit:     nobody{},
		Redact:    func(text string) string { return text }, Log: slog.New(slog.DiscardHandler),
		Now: time.Now, NewID: func() string { return "plain" },
	})
	way := operation.Way[In]{}
	if raw {
		way.Decode, o.Needs.Gated = operation.Unread[In], true
	}
	return operation.Define(func() *operation.Kernel { return kernel }, "", o, way, handle)
}

// nobody is an audit that discards everything.
type nobody struct{}

func (nobody) Record(context.Context, record.Attempt, *record.Proposal, ...record.Notice) error {
	return nil
}
