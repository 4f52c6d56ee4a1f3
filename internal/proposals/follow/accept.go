package follow

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/webhook"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Accept queues our pull requests that a delivery is about for a look. taken is false if there are none: then no
// provider is asked, and the delivery is not remembered. Errors: conflict if the delivery was taken before,
// provider_disabled if its provider is not configured.
func (f *Follower) Accept(ctx context.Context, provider string, d webhook.Delivery) (taken bool, err error) {
	q := f.queues[provider]
	if q == nil {
		return false, fault.New(fault.ProviderDisabled,
			"the provider %s is not configured, so that nobody could look at its pull "+
				"requests; `claudeops doctor` says what is missing", provider)
	}
	ours, err := f.ourPulls(ctx, provider, d)
	if err != nil {
		return false, err
	}
	if len(ours) == 0 {
		return false, nil
	}
	fresh, err := f.Shared.TakeDelivery(ctx, provider, d.ID, ours...)
	if err != nil {
		return false, err
	}
	if !fresh {
		return false, fault.New(fault.Conflict, "this delivery was taken before; what it is about was looked at then")
	}
	for _, key := range ours {
		if !q.add(key) {
			f.Log.Warn("too many pull requests wait for a look; the poll will see this one", "provider", provider,
				"repo", key.Owner+"/"+key.Repo, "number", key.Number)
		}
	}
	return true, nil
}

// resume lets those pull requests wait again for which a delivery was taken by a process that ended before it looked.
func (f *Follower) resume(ctx context.Context, q *queue) {
	never := time.UnixMicro(0)
	due, err := f.Records.DuePulls(ctx, q.provider, never, never, maxWaiting)
	if err != nil {
		f.Log.Warn("what webhooks have asked for was not looked up", "provider", q.provider, "error",
			f.Redact(fault.From(err).Message))
	}
	for _, r := range due {
		_ = q.add(r.PullKey) // there is room for as many
	}
}

// ourPulls returns the pull requests that a delivery is about and that we opened.
func (f *Follower) ourPulls(ctx context.Context, provider string, d webhook.Delivery) ([]record.PullKey, error) {
	if d.Branch != "" {
		return f.Records.OpenPullsOf(ctx, provider, d.Owner, d.Repo, d.Branch)
	}
	var out []record.PullKey
	for _, number := range d.Numbers {
		record, found, err := f.Records.FindPull(ctx, record.PullKey{Provider: provider, Owner: d.Owner, Repo: d.Repo,
			Number: number})
		if err != nil {
			return nil, err
		}
		if found {
			out = append(out, record.PullKey)
		}
	}
	return out, nil
}
