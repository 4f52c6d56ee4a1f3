package dashboard

import (
	"context"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// pullDeploymentPath is the pattern of the page that says what a pull request would change on this machine.
const pullDeploymentPath = pullPath + "/deployment"

// pullDeployment says what a deployment would change once a pull request is merged. The page of the pull request takes it in after it
// is shown: the commit may have to be fetched, and every file of the targets is looked at.
type pullDeployment struct {
	pages.Page
	Target target
	Status gitprovider.Status
	deploy.Preview
	Failed *fault.Error // why nothing can be said
	Diff   *pages.Diff
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

func (h *deploymentPages) pull(req *handler.Request) (handler.Response, error) {
	if err := handler.DecodeQuery(req, &struct{}{}); err != nil {
		return handler.Response{}, err
	}
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
