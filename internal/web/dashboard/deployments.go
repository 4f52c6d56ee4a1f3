package dashboard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/procedures/packages"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/system/fileset"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/views"
)

// Deployments serves the page of deployments. Errors are faults.
type Deployments interface {
	// Look says what would change, what has drifted, and how.
	Look(ctx context.Context) (deploy.Overview, error)
	// Concerns reports whether what is deployed comes from a repository.
	Concerns(ctx context.Context, provider, owner, name string) (bool, error)
	// Preview says what a deployment would change with a commit that is not in place yet.
	Preview(ctx context.Context, c deploy.Candidate) (deploy.Preview, error)
	// WhereIs says what targets have of proposed files.
	WhereIs(ctx context.Context, provider, owner, name string, hashes map[string]string) ([]deploy.Whereabouts, error)
	// Waiting is the merge that waits for a person before it is deployed; nil if there is none.
	Waiting() (*deploy.DueMerge, error)
	// Snapshots are the newest ones.
	Snapshots(most int) ([]*fileset.Snapshot, error)
	// PlanRollback says what a rollback would change.
	PlanRollback(ctx context.Context, id string) (*fileset.Plan, error)
}

// deploymentPages show what is in place on this machine.
type deploymentPages struct {
	*renderer
	deployments Deployments
	reader      Reader
	attempts    views.Attempts
	packages    Packages            // nil where that toolset is off
	back        operation.Operation // rolls back
	propose     operation.Operation // proposes drift
}

const (
	deploymentsPath = "/deployments"
	rollbackPath    = deploymentsPath + "/rollback"
	proposePath     = deploymentsPath + "/propose"
)

func (h *deploymentPages) nav() pages.NavItem {
	return pages.NavItem{Path: deploymentsPath, Text: "Deployments"}
}

func (h *deploymentPages) routes(page func(string, httpx.Func) httpx.Route) []httpx.Route {
	routes := []httpx.Route{
		page(deploymentsPath, withQuery(h.showDeployments)), page(pullDeploymentPath, withQuery(h.pull)), page(rollbackPath,
			withQuery(h.plan)),
		{
			Method: "POST", Pattern: rollbackPath, Scope: access.Operate, Page: true, Handle: h.rollback,
			Body:    &httpx.BodyLimit{Bytes: 4 << 10, Advice: "the form of the page is smaller"},
			Refused: rejected(h.back),
		},
	}
	if h.propose.Handle == nil {
		return routes
	}
	return append(routes, httpx.Route{
		Method: "POST", Pattern: proposePath, Scope: access.Operate, Page: true, Handle: h.proposeDrift,
		Body: &httpx.BodyLimit{Bytes: 256 << 10, Advice: "propose fewer files at once"},
	})
}

// maxSnapshots bounds the timeline.
const maxSnapshots = 50

// deploymentsView is the page of deployments.
type deploymentsView struct {
	pages.Page
	deploy.Overview
	Failed *fault.Error // why the desired state is not known
	// NoConfiguration says that there is none yet, which is not a failure.
	NoConfiguration bool
	Drifted         *pages.Diff
	Waiting         *deploy.DueMerge
	Snapshots       []*fileset.Snapshot
	MayRoll         bool
	// MayPropose says that the visitor may make a pull request of drift.
	MayPropose bool
	Done       string
	sortable   // of Snapshots
	newest     string
}

type deploymentParams struct {
	Done string `json:"done,omitempty" enum:"rollback,proposal"`
	Sort string `json:"sort,omitempty" enum:"kind,-kind,changes,-changes,when,-when"`
}

func snapshotColumns() []column[*fileset.Snapshot] {
	type entry = *fileset.Snapshot
	return []column[entry]{
		{name: "Snapshot", key: "kind", compare: func(a, b entry) int { return compareNames(a.Kind, b.Kind) }},
		{name: "Changes", key: "changes", class: "number", largest: true, compare: func(a, b entry) int {
			return len(a.Steps) - len(b.Steps)
		}},
		{name: "When", key: "when", class: "number", largest: true, compare: func(a, b entry) int {
			return a.CreatedAt.Compare(b.CreatedAt)
		}},
		{name: "Roll back", hidden: true},
	}
}

// WaitingPath returns the page of the pull request that waits.
func (v deploymentsView) WaitingPath() string {
	return pullAddress{v.Waiting.Provider, v.Waiting.Owner, v.Waiting.Name, v.Waiting.Number}.Path()
}

// need returns the overview's item for a merge that waits for a person.
func (t Toolsets) need() (out []waitItem, err error) {
	if t.Deployments == nil {
		return nil, nil
	}
	due, err := t.Deployments.Waiting()
	if err == nil && due != nil {
		out = append(out, brokenWait(fmt.Sprintf("#%d of %s/%s is merged and not deployed", due.Number, due.Owner, due.Name),
			due.Why, deploymentsPath, due.Seen))
	}
	return out, err
}

// Newest reports whether a snapshot is the newest.
func (v deploymentsView) Newest(s *fileset.Snapshot) bool {
	return s.ID == v.newest
}

// Targets returns a snapshot's targets in words.
func (deploymentsView) Targets(s *fileset.Snapshot) string {
	return strings.Trim(fmt.Sprint(s.Targets), "[]")
}

func (h *deploymentPages) showDeployments(req *httpx.Request, q deploymentParams) (httpx.Response, error) {
	view := deploymentsView{Page: h.frame(req, "Deployments", deploymentsPath),
		MayRoll: req.Principal.Scopes.Has(access.Operate), Done: q.Done}
	view.MayPropose = h.propose.Handle != nil && view.MayRoll && req.Principal.Scopes.Has(access.Propose)
	var err error
	if view.Overview, err = h.deployments.Look(req.Context()); err != nil {
		view.Failed = fault.From(err)
		if view.NoConfiguration = view.Failed.Code == fault.NotFound; view.NoConfiguration {
			view.Failed = nil
		}
	}
	var text strings.Builder
	for _, f := range view.Drift {
		if f.Unified != nil {
			text.WriteString(*f.Unified)
		}
	}
	if text.Len() > 0 {
		diff := pages.ParseDiff(h.env.Redact(text.String()), false, 1)
		view.Drifted = &diff
	}
	if view.Waiting, err = h.deployments.Waiting(); err != nil {
		return httpx.Response{}, err
	}
	if view.Snapshots, err = h.deployments.Snapshots(maxSnapshots); err != nil {
		return httpx.Response{}, err
	}
	if len(view.Snapshots) > 0 {
		view.newest = view.Snapshots[0].ID
	}
	view.sortable, err = sortRows(req.URL.Query(), "-when", snapshotColumns(), view.Snapshots)
	return h.htmlOr(err, "deployments", view)
}

// rollbackView is the page of a rollback before it is done.
type rollbackView struct {
	pages.Page
	Plan    *fileset.Plan
	To      string
	MayRoll bool
	Diff    *pages.Diff
	Notes   []string
}

type rollbackParams struct {
	To string `json:"to" required:"true"`
}

// plan shows what a rollback would change, with the form that does it.
func (h *deploymentPages) plan(req *httpx.Request, q rollbackParams) (httpx.Response, error) {
	view := rollbackView{Page: h.frame(req, "Roll back", deploymentsPath), To: q.To,
		MayRoll: req.Principal.Scopes.Has(access.Operate)}
	var err error
	if view.Plan, err = h.deployments.PlanRollback(req.Context(), q.To); err != nil {
		return httpx.Response{}, err
	}
	files, warnings, err := deploy.Diff(view.Plan)
	if err != nil {
		return httpx.Response{}, deploy.Failure(err)
	}
	view.Notes = slices.Concat(view.Plan.Warnings, warnings)
	view.Diff = h.diffOf(files)
	return h.html("rollback", view)
}

// diffOf shows the lines of files; nil if there are none.
func (h *deploymentPages) diffOf(files []deploy.FileDiff) *pages.Diff {
	var text strings.Builder
	for _, f := range files {
		if f.Unified != nil {
			text.WriteString(*f.Unified)
		}
	}
	if text.Len() == 0 {
		return nil
	}
	diff := pages.ParseDiff(h.env.Redact(text.String()), false, 1)
	return &diff
}

// rollback needs the plan that was shown, and the box that says that it is wanted, so that a button that was hit by
// mistake does nothing.
func (h *deploymentPages) rollback(req *httpx.Request) (httpx.Response, error) {
	form, err := httpx.ReadForm(req)
	if err == nil && (form.Get("yes") != "true" || form.Get("to") == "" || len(form["to"]) != 1 ||
		form.Get("plan") == "" || len(form["plan"]) != 1) {
		err = fault.New(fault.InvalidArgument,
			"the form must have the fields to and plan, each once, and the box must be ticked that says that the rollback is wanted")
	}
	if err != nil {
		return httpx.Response{}, h.back.Reject(req.Context(), req.Call(nil), err)
	}
	if _, err := callOperation(req, h.back, deploy.ShownRollback{To: form.Get("to"), Plan: form.Get("plan")}); err != nil {
		return httpx.Response{}, err
	}
	return h.goTo(deploymentsPath + "?done=rollback"), nil
}

// proposeDrift makes a pull request of the files that were ticked, and shows it.
func (h *deploymentPages) proposeDrift(req *httpx.Request) (httpx.Response, error) {
	form, err := httpx.ReadForm(req)
	if err == nil && (len(form["path"]) == 0 || len(form["title"]) != 1 || len(form["why"]) != 1) {
		err = fault.New(fault.InvalidArgument,
			"tick at least one file; the form must have the fields title and why, each once")
	}
	if err != nil {
		return httpx.Response{}, err
	}
	answer, err := callOperation(req, h.propose, deploy.ProposeRequest{Paths: form["path"], Title: form.Get("title"),
		Why: form.Get("why")})
	if err != nil {
		return httpx.Response{}, err
	}
	done := answer.(deploy.Envelope[deploy.Proposed]).Data
	owner, name, _ := strings.Cut(done.Repository, "/")
	if at := (pullAddress{done.Provider, owner, name, done.Number}); done.Number > 0 && done.Provider != "" {
		return h.goTo(at.Path()), nil
	}
	return h.goTo(deploymentsPath + "?done=proposal"), nil
}

// pullDeploymentPath is the pattern of the page that says what a pull request would change on this machine.
const pullDeploymentPath = pullPath + "/deployment"

// pullDeployment says what a deployment would change once a pull request is merged. The page of the pull request takes
// it in after it is shown: the commit may have to be fetched, and every file of the targets is looked at.
type pullDeployment struct {
	pages.Page
	Target pullAddress
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
func (v pullDeployment) IsPending(c fileset.Change) bool {
	return v.Pending[fileset.FileKey{Target: c.Target, Path: c.Path}]
}

// Merged reports whether it is too late for a forecast.
func (v pullDeployment) Merged() bool { return v.Status.State == gitprovider.StateMerged }

// concerns reports whether the page of a pull request has to say what it would change on this machine.
func (t Toolsets) concerns(ctx context.Context, at pullAddress) bool {
	if t.Deployments == nil {
		return false
	}
	concerned, err := t.Deployments.Concerns(ctx, at.provider, at.owner, at.name)
	return err == nil && concerned
}

func (h *deploymentPages) pull(req *httpx.Request, _ struct{}) (httpx.Response, error) {
	t, err := targetOf(req)
	if err != nil {
		return httpx.Response{}, err
	}
	ctx, cancel := context.WithTimeout(req.Context(), statusTimeout)
	defer cancel()
	view := pullDeployment{Page: h.frame(req, "What a pull request would change on this machine", changesPath), Target: t}
	if view.Status, err = h.reader.StatusAt(ctx, t.provider, t.owner, t.name, t.number); err != nil {
		return httpx.Response{}, err
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
func (h *deploymentPages) whereIs(ctx context.Context, t pullAddress, view *pullDeployment) error {
	made, err := h.attempts.MadeOf(ctx, t.provider, t.owner, t.name, t.number)
	if err != nil {
		return err
	}
	hashes := map[string]string{}
	for _, p := range made {
		for _, f := range p.Files {
			delete(hashes, f.Path)
			if f.Action != gitprovider.ActionDelete && p.PrunedAt.IsZero() {
				hashes[f.Path] = fileset.Hash([]byte(f.Content))
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
