package web_test

import (
	"cmp"
	"context"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/review"
	"github.com/claudeops/claudeops/internal/records/record"
)

// reviewer is the use case of reviews over the fake's pull requests. It notes what it is asked for.
type reviewer struct {
	*world
	done     []review.Request
	refused  []review.Request
	warnings []string
	problem  string // why the policy cannot be read
	diff     string // "" for a small one
	texts    map[string]string
}

// service is the use case with the settings of the world as they are now.
func (r *reviewer) service() *review.Service {
	return review.New(review.Options{
		Provider: "fake", Host: reviewHost{r}, Records: r.store.Ledger, Notifier: nobody{}, Starters: r.store.Pulls.Starters,
		Kernel: operation.NewKernel(operation.KernelOptions{
			Authority: operation.Authority{DryRun: r.flow.Authority.DryRun,
				Rules: operation.Rules{Policy: r.flow.Authority.Policy, Problem: r.problem}},
			Audit: r.store.Ledger, Redact: scanner.Redact, Log: r.flow.Log, Now: r.Now, NewID: r.flow.NewID,
		}),
	})
}

func (r *reviewer) Reviews(provider string) bool { return r.service().Reviews(provider) }

func (r *reviewer) Show(ctx context.Context, provider string, ref gitprovider.RepoRef, number int) (local.Detail,
	error) {
	return r.service().Show(ctx, provider, ref, number)
}

func (r *reviewer) Texts(ctx context.Context, provider string, ref gitprovider.RepoRef, head string, paths []string,
	maxBytes int) (map[string]string, error) {
	return r.service().Texts(ctx, provider, ref, head, paths, maxBytes)
}

func (r *reviewer) Do(ctx context.Context, request review.Request) (review.Outcome, error) {
	out, err := r.service().Do(ctx, request)
	if err != nil {
		r.refused = append(r.refused, request)
	} else {
		r.done = append(r.done, request)
	}
	return out, err
}

func (r *reviewer) Refused(ctx context.Context, request review.Request, why error) error {
	r.refused = append(r.refused, request)
	return r.service().Refused(ctx, request, why)
}

// reviewHost lets everything be done to the fake's pull requests but closing them.
type reviewHost struct{ *reviewer }

func (h reviewHost) Texts(context.Context, gitprovider.RepoRef, string, []string, int) (map[string]string, error) {
	return h.texts, nil
}

func (h reviewHost) Show(ctx context.Context, ref gitprovider.RepoRef, number int) (local.Detail, error) {
	status, err := h.fake.Status(ctx, ref, number)
	return local.Detail{Status: status, Diff: cmp.Or(h.diff, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new <i>\n")}, err
}

func (h reviewHost) List(ctx context.Context, ref gitprovider.RepoRef, _ gitprovider.State) ([]gitprovider.PullRequest,
	error) {
	return h.fake.ListOpen(ctx, ref, gitprovider.LabelOurs)
}

func (reviewHost) Approve(context.Context, gitprovider.RepoRef, int, local.Note) error { return nil }
func (reviewHost) RequestChanges(context.Context, gitprovider.RepoRef, int, local.Note) error {
	return nil
}
func (reviewHost) Comment(context.Context, gitprovider.RepoRef, int, local.Note) error { return nil }

func (reviewHost) Close(context.Context, gitprovider.RepoRef, int, local.Note) error {
	return fault.New(fault.Conflict, "pull request #1 is closed already")
}

func (h reviewHost) Merge(context.Context, gitprovider.RepoRef, int, local.MergeNote) (local.Merged, error) {
	return local.Merged{Warnings: h.warnings}, nil
}

// nobody sends no notifications.
type nobody struct{}

// Notices implements record.Notifier.
func (nobody) Notices(record.Event, record.Attempt) []record.Notice { return nil }

// Kick implements record.Notifier.
func (nobody) Kick(context.Context) {}
