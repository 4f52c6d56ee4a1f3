package dashboard

import (
	"context"
	"maps"
	"slices"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/procedures/packages"
	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// pullDeploymentPath is the pattern of the page that says what a pull request would change on this machine.
const pullDeploymentPath = pullPath + "/deployment"

// pullDeployment says what a deployment would change once a pull request is merged. The page of the pull request takes
// it in after it is shown: the commit may have to be fetched, and every file of the targets is looked at.
type pullDeployment struct {
	pages.Page
	Target target
	Status gitprovider.Status
	deploy.Preview
	Failed *fault.Error // why nothing can be said
	Diff   *pages.Diff

	// Of one that is merged: where its files are now.
	Where    []deploy.Whereabouts
	Packages []packages.Holder
	Partly   bool // some packages were not looked at
}

// IsPending reports whether a change would come without the pull request, too.
func (v pullDeployment) IsPending(c change.Change) bool {
	return v.Pending[change.FileKey{Target: c.Target, Path: c.Path}]
}

// Merged reports whether it is too late for a forecast.
func (v pullDeployment) Merged() bool { return v.Status.State == gitprovider.StateMerged }

// concerns reports whether the page of a pull request has to say what it would change on this machine.
func (t Toolsets) concerns(ctx context.Context, at target) bool {
	if t.Deployments == nil {
		return false
	}
	concerned, err := t.Deployments.Concerns(ctx, at.provider, at.owner, at.name)
	return err == nil && concerned
}

func (h *deploymentPages) pull(req *handler.Request, _ struct{}) (handler.Response, error) {
	t, err := targetOf(req)
	if err != nil {
		return handler.Response{}, err
	}
	ctx, cancel := context.WithTimeout(req.Context(), statusTimeout)
	defer cancel()
	view := pullDeployment{Page: h.frame(req, "What a pull request would change on this machine", changesPath), Target: t}
	if view.Status, err = h.reader.StatusAt(ctx, t.provider, t.owner, t.name, t.number); err != nil {
		return handler.Response{}, err
	}
	if view.Merged() {
		if err := h.whereIs(ctx, t, &view); err != nil {
			view.Failed = fault.From(err)
		}
		return h.html("pull_deployment", view)
	}
	candidate := deploy.Candidate{Provider: t.provider, Owner: t.owner, Name: t.name, Commit: view.Status.HeadCommit}
	if view.Preview, err = h.deployments.Preview(ctx, candidate); err != nil {
		view.Failed = fault.From(err)
		return h.html("pull_deployment", view)
	}
	view.Diff = h.diffOf(view.Files)
	return h.html("pull_deployment", view)
}

// whereIs looks for the files of a merged pull request, as they were proposed last: in targets, and in packages.
func (h *deploymentPages) whereIs(ctx context.Context, t target, view *pullDeployment) error {
	made, err := h.attempts.MadeOf(ctx, t.provider, t.owner, t.name, t.number)
	if err != nil {
		return err
	}
	hashes := map[string]string{}
	for _, p := range made {
		for _, f := range p.Files {
			delete(hashes, f.Path)
			if f.Action != gitprovider.ActionDelete && p.PrunedAt.IsZero() {
				hashes[f.Path] = change.Hash([]byte(f.Content))
			}
		}
	}
	if len(hashes) == 0 {
		return nil
	}
	if view.Where, err = h.deployments.WhereIs(ctx, t.provider, t.owner, t.name, hashes); err != nil {
		return err
	}
	if h.packages == nil {
		return nil
	}
	var complete bool
	view.Packages, complete, err = h.packages.Holding(ctx, slices.Collect(maps.Values(hashes)))
	view.Partly = !complete
	return err
}
