package cli

import (
	"context"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/web"
)

// webReviewer is `claudeops review` for the dashboard.
type webReviewer struct {
	p    *parts
	flow *delivering
}

// reviewer is the webReviewer, or nil if there are no local repositories.
func (p *parts) reviewer(flow *delivering) web.Reviewer {
	if p.local == nil {
		return nil
	}
	return webReviewer{p, flow}
}

// Provider implements web.Reviewer.
func (r webReviewer) Provider() string { return r.p.local.Name() }

// Show implements web.Reviewer.
func (r webReviewer) Show(ctx context.Context, owner, name string, number int) (web.ReviewDetail, error) {
	d, err := local.NewReviewer(r.p.local).Show(ctx, gitprovider.RepoRef{Owner: owner, Name: name}, number)
	return web.ReviewDetail{Status: d.Status, Diff: d.Diff, DiffTooLarge: d.DiffTooLarge}, err
}

// Refused implements web.Reviewer.
func (r webReviewer) Refused(ctx context.Context, review web.Review, why *fault.Error) {
	redact := r.p.scanner.Redact
	action := "review"
	if review.Action != "" {
		action += "." + review.Action
	}
	err := r.p.store.Record(context.WithoutCancel(ctx), prflow.Attempt{
		Time: time.Now(), RequestID: newID(), Door: review.By.Door, Caller: review.By.Name, Action: action,
		Provider: redact(review.Provider), Owner: redact(review.Owner), Repo: redact(review.Name), PRNumber: review.Number,
		Outcome: prflow.OutcomeRefused, Code: why.Code, Message: redact(why.Message),
	}, nil)
	if err != nil {
		r.p.log.Error("a refused review was not recorded", "caller", review.By.Name, "error", fault.From(err).Message)
	}
}

// Review implements web.Reviewer.
func (r webReviewer) Review(ctx context.Context, review web.Review) (web.ReviewOutcome, error) {
	verbs := reviewVerbs()
	at := slices.IndexFunc(verbs, func(v reviewVerb) bool { return v.name == review.Action })
	if at < 0 {
		return web.ReviewOutcome{}, fault.New(fault.InvalidArgument, "there is no review %q", review.Action)
	}
	note := local.MergeNote{
		Note: local.Note{Who: review.By.Name, Body: review.Comment, Head: review.Head}, Force: review.Force,
	}
	ref := gitprovider.RepoRef{Owner: review.Owner, Name: review.Name}
	outcome, err := r.p.review(ctx, review.By, r.p.local, verbs[at], ref, review.Number, note)
	r.flow.begin(ctx)
	return web.ReviewOutcome{Commit: outcome.Commit, Warnings: outcome.Warnings}, err
}
