package gitea

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// draftPrefix makes a pull request a draft: Gitea and Forgejo know drafts by their title alone.
const draftPrefix = "WIP: "

// opener opens pull requests. The server refuses a second one for a head and a base that have an open one, but not when
// both are sent at the same moment, and it opens one for a branch without a change. A branch that this process has just
// made can have neither trouble, so that one request does. For every other branch it is looked before (is there one, is
// there anything to propose) and after (did somebody open one at the same moment: then the older stays and ours is
// closed).
type opener struct {
	api    *api
	pulls  pulls
	labels *labelIDs
	fresh  *freshBranches
}

func (o opener) submitPull(ctx context.Context, spec gitprovider.PullRequestSpec) (*gitea.PullRequest, error) {
	fresh := o.fresh.consume(spec.Repo, spec.Head)
	if !fresh {
		if there, err := o.checkBefore(ctx, spec); err != nil || there != nil {
			return there, err
		}
	}
	made, err := o.createPull(ctx, spec)
	switch {
	case err == nil:
		return o.checkAfter(ctx, spec, made, fresh)
	case statusIs(err, http.StatusConflict) || fault.CodeOf(o.api.toFault(err, spec.Repo, "")).Ambiguous():
		if there, lookErr := o.pulls.openFor(ctx, spec.Repo, spec.Base, spec.Head); lookErr == nil && there != nil {
			return there, nil
		}
	case statusIs(err, http.StatusUnprocessableEntity):
		if ahead, lookErr := o.commitsAhead(ctx, spec); lookErr == nil && ahead == 0 {
			return nil, forge.NothingToPropose(spec)
		}
	}
	return nil, err
}

// checkBefore returns the open pull request that there is, nil if there is none, and no_change if there is nothing to
// propose.
func (o opener) checkBefore(ctx context.Context, spec gitprovider.PullRequestSpec) (*gitea.PullRequest, error) {
	var there *gitea.PullRequest
	var commits int
	err := forge.Together(
		forge.Into(&there, func() (*gitea.PullRequest,
			error) {
			return o.pulls.openFor(ctx, spec.Repo, spec.Base, spec.Head)
		}),
		forge.Into(&commits, func() (int, error) { return o.commitsAhead(ctx, spec) }),
	)
	if err == nil && there == nil && commits == 0 {
		err = forge.NothingToPropose(spec)
	}
	return there, err
}

// commitsAhead counts what the head has and the base has not; -1 where the server has no comparison.
func (o opener) commitsAhead(ctx context.Context, spec gitprovider.PullRequestSpec) (int, error) {
	compared, err := callSDK(ctx, o.api, func(c *gitea.Client) (*gitea.Compare, *gitea.Response, error) {
		return c.CompareCommits(spec.Repo.Owner, spec.Repo.Name, refsPrefix+spec.Base, refsPrefix+spec.Head)
	})
	switch {
	case lacksRoute(err):
		return -1, nil
	case err != nil:
		return 0, err
	}
	return compared.TotalCommits, nil
}

func (o opener) createPull(ctx context.Context, spec gitprovider.PullRequestSpec) (*gitea.PullRequest, error) {
	title := spec.Title
	if spec.Draft {
		title = draftPrefix + title
	}
	made, err := callSDK(ctx, o.api, func(c *gitea.Client) (*gitea.PullRequest, *gitea.Response, error) {
		return c.CreatePullRequest(spec.Repo.Owner, spec.Repo.Name, gitea.CreatePullRequestOption{
			Head: spec.Head, Base: spec.Base, Title: title, Body: spec.Body, Labels: o.labels.cachedIDs(spec.Repo, spec.Labels),
		})
	})
	if err == nil && made.Index < 1 {
		return nil, fault.New(fault.UpstreamError, "%s does not say which pull request it opened in %s", o.api.base.Host,
			spec.Repo)
	}
	return made, err
}

// checkAfter closes what was opened without need: a pull request without a commit, or a second one.
func (o opener) checkAfter(ctx context.Context, spec gitprovider.PullRequestSpec, made *gitea.PullRequest, fresh bool) (
	*gitea.PullRequest, error) {
	o.labels.learn(spec.Repo, made)
	o.pulls.files.opened(ctx, spec.Repo, made)
	closing := map[string]string{"state": string(gitea.StateClosed)}
	if made.Head != nil && made.Head.Sha != "" && made.MergeBase == made.Head.Sha {
		if _, err := o.pulls.editPull(ctx, spec.Repo, int(made.Index), closing); err != nil {
			return nil, fault.Wrap(err, fault.UpstreamError, "%s was opened in %s without a change in it, "+
				"and could not be closed again; close it", pullName(int(made.Index)), spec.Repo)
		}
		return nil, forge.NothingToPropose(spec)
	}
	if !fresh {
		older, err := o.pulls.openFor(ctx, spec.Repo, spec.Base, spec.Head)
		// Without an answer ours is as good as any.
		if err == nil && older != nil && older.Index < made.Index {
			if _, err := o.pulls.editPull(ctx, spec.Repo, int(made.Index), closing); err == nil {
				return older, nil
			}
		}
	}
	return made, nil
}

// maxFresh bounds how many branches are remembered; each is taken out again a moment later.
const maxFresh = 1024

// freshBranches remembers the branches that this process has made and not opened a pull request for. The server makes a
// branch for one creator alone, so no one else has opened a pull request for it unless they searched for the branch.
type freshBranches struct {
	names *forge.LRU[string, bool]
}

func newFreshBranches() *freshBranches {
	return &freshBranches{forge.NewLRU[string, bool](maxFresh, nil)}
}

func freshKey(repo gitprovider.RepoRef, branch string) string {
	return forge.RepoKey(repo) + ":" + branch
}

func (f *freshBranches) add(repo gitprovider.RepoRef, branch string) {
	f.names.Put(freshKey(repo, branch), true)
}

// consume reports whether the branch is fresh, to the first who asks.
func (f *freshBranches) consume(repo gitprovider.RepoRef, branch string) bool {
	fresh, _ := f.names.Take(freshKey(repo, branch))
	return fresh
}

const (
	// labelColor is the color of labels that are made, since the API demands one: a calm blue.
	labelColor = "#1d76db"
	labelAbout = "Set by Claude Ops"
)

// labels sets labels, and makes those that are missing if that is allowed.
type labels struct {
	api    *api
	ids    *labelIDs
	create func() bool
}

// set adds labels by their names. What a label that is there excludes is left out, and is a conflict.
func (l labels) set(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) error {
	excluded, err := l.excluded(ctx, repo, number, names)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return excluded[name] != "" })
	if len(names) > 0 {
		err = l.setAll(ctx, repo, number, names)
	}
	for _, name := range slices.Sorted(maps.Keys(excluded)) {
		if err == nil {
			err = fault.New(fault.Conflict, "%s was left out: %s has the label %s, which excludes it, and a person may have "+
				"set that", name, pullName(number), excluded[name])
		}
	}
	return err
}

// scopeOf returns the words before the last slash of a label's name; a pull request has one exclusive label at most of
// those that share them.
func scopeOf(name string) string { return name[:max(strings.LastIndexByte(name, '/'), 0)] }

// excluded returns, by their names, which labels would take the place of one that the pull request has: the server
// replaces an exclusive label by another of its scope. It costs nothing for names without a slash.
func (l labels) excluded(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) (map[string]string,
	error) {
	if !slices.ContainsFunc(names, func(name string) bool { return scopeOf(name) != "" }) {
		return nil, nil
	}
	var have []*gitea.Label
	at := l.api.repoURL(repo, "issues", strconv.Itoa(number), "labels")
	if _, err := l.api.get(ctx, at, nil, &have); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, name := range names {
		for _, there := range withoutNulls(have) {
			if there.Exclusive && there.Name != name && scopeOf(name) != "" && scopeOf(there.Name) == scopeOf(name) {
				out[name] = there.Name
			}
		}
	}
	return out, nil
}

// setAll adds labels by their names. The server silently ignores unknown ones, so the answer is compared.
func (l labels) setAll(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) error {
	missing, err := l.addLabels(ctx, repo, number, names)
	switch {
	case err != nil || len(missing) == 0:
		return err
	case !mayCreate(l.create):
		return forge.NoLabels(repo, missing)
	}
	for _, name := range missing {
		_, err := callSDK(ctx, l.api, func(c *gitea.Client) (*gitea.Label, *gitea.Response, error) {
			return c.CreateLabel(repo.Owner, repo.Name, gitea.CreateLabelOption{Name: name, Color: labelColor,
				Description: labelAbout})
		})
		if err != nil {
			return l.api.toFault(err, repo, "")
		}
	}
	missing, err = l.addLabels(ctx, repo, number, missing)
	if err == nil && len(missing) > 0 {
		return fault.New(fault.UpstreamError, "%s did not take the label %s for %s of %s", l.api.base.Host,
			strings.Join(missing, ", "), pullName(number), repo)
	}
	return err
}

// addLabels returns the names that the pull request does not have afterwards. Versions that take ids alone refuse names
// or fail over them; then the ids are looked up.
func (l labels) addLabels(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) ([]string, error) {
	ctx = transport.Repeatable(ctx)
	var have []*gitea.Label
	at := l.api.repoURL(repo, "issues", strconv.Itoa(number), "labels")
	err := l.api.post(ctx, at, map[string][]string{"labels": names}, &have)
	if statusIs(err, http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError) {
		have, err = l.addByID(ctx, repo, number, names)
	}
	if err != nil {
		return nil, err
	}
	l.ids.add(repo, have)
	return without(names, withoutNulls(have)), nil
}

func (l labels) addByID(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) ([]*gitea.Label,
	error) {
	defined, err := l.defined(ctx, repo)
	if err != nil {
		return nil, err
	}
	ids := []int64{}
	for _, label := range defined {
		if slices.Contains(names, label.Name) {
			ids = append(ids, label.ID)
		}
	}
	return callSDK(ctx, l.api, func(c *gitea.Client) ([]*gitea.Label, *gitea.Response, error) {
		return c.AddIssueLabels(repo.Owner, repo.Name, int64(number), gitea.IssueLabelsOption{Labels: ids})
	})
}

// defined reads the labels that a repository defines.
func (l labels) defined(ctx context.Context, repo gitprovider.RepoRef) ([]*gitea.Label, error) {
	out, _, err := pagesOf(l.api, func(c *gitea.Client, o gitea.ListOptions) ([]*gitea.Label, *gitea.Response, error) {
		return c.ListRepoLabels(repo.Owner, repo.Name, gitea.ListLabelsOptions{ListOptions: o})
	}).all(ctx)
	l.ids.add(repo, out)
	return out, err
}

// missingLabels looks among the labels of the repository and then, for what is missing, of the organization that owns
// it.
func (l labels) missingLabels(ctx context.Context, repo gitprovider.RepoRef, owner string, wanted []string) ([]string,
	error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	have, err := l.defined(ctx, repo)
	missing := without(wanted, have)
	if err != nil || len(missing) == 0 {
		return missing, err
	}
	shared, err := pagesOf(l.api, func(c *gitea.Client, o gitea.ListOptions) ([]*gitea.Label, *gitea.Response, error) {
		return c.ListOrgLabels(owner, gitea.ListOrgLabelsOptions{ListOptions: o})
	})(ctx, 1)
	if err != nil {
		return missing, nil // a person has no such list, and a token may lack read:organization
	}
	return without(missing, shared.items), nil
}

// without gives the names that no label has.
func without(names []string, labels []*gitea.Label) []string {
	return forge.Without(names, func(name string) bool {
		return slices.ContainsFunc(labels, func(l *gitea.Label) bool { return l.Name == name })
	})
}

// maxLabelRepos bounds the repositories whose label ids are remembered.
const maxLabelRepos = 256

// labelIDs remembers the ids of labels that answers happened to show, for the creation of pull requests, which takes
// ids alone. An id may be out of date: the server silently ignores it, and Label, which uses names, corrects that.
type labelIDs struct {
	repos *forge.LRU[string, map[string]int64]
}

func newLabelIDs() *labelIDs {
	return &labelIDs{forge.NewLRU[string, map[string]int64](maxLabelRepos, nil)}
}

// learn takes over the labels of pull requests of a repository.
func (l *labelIDs) learn(repo gitprovider.RepoRef, prs ...*gitea.PullRequest) {
	for _, pr := range prs {
		l.add(repo, pr.Labels)
	}
}

func (l *labelIDs) add(repo gitprovider.RepoRef, labels []*gitea.Label) {
	if len(labels) == 0 {
		return
	}
	l.repos.Update(forge.RepoKey(repo), func(known map[string]int64) map[string]int64 {
		known = maps.Clone(known) // somebody may be reading it
		if known == nil {
			known = map[string]int64{}
		}
		for _, label := range labels {
			if label != nil && label.ID > 0 && !label.IsArchived {
				known[label.Name] = label.ID
			}
		}
		return known
	})
}

// cachedIDs gives the ids of the labels, if all of them are known: a creation that sets some would save nothing.
func (l *labelIDs) cachedIDs(repo gitprovider.RepoRef, names []string) []int64 {
	have, _ := l.repos.Get(forge.RepoKey(repo))
	var ids []int64
	for _, name := range names {
		id, ok := have[name]
		if !ok {
			return nil
		}
		ids = append(ids, id)
	}
	return ids
}

// mayCreate asks whether labels may be made.
func mayCreate(asked func() bool) bool { return asked != nil && asked() }

// assigner asks for reviews and assigns.
type assigner struct {
	api   *api
	pulls pulls
}

func (a assigner) assign(ctx context.Context, repo gitprovider.RepoRef, number int,
	reviewers, assignees []string) error {
	refused, err := a.requestReviews(ctx, repo, number, reviewers)
	if err != nil {
		return err
	}
	more, err := a.setAssignees(ctx, repo, number, assignees)
	if err != nil {
		return err
	}
	if refused = append(refused, more...); len(refused) == 0 {
		return nil
	}
	slices.Sort(refused)
	return fault.New(fault.NotFound, "%s does not take %s as reviewer or assignee of %s in %s; check the names and their "+
		"access", a.api.base.Host, strings.Join(slices.Compact(refused), ", "), pullName(number), repo)
}

// requestReviews returns the names that the server does not take. A team of another owner cannot review here. Teams
// that the server does not know it may silently ignore, so they are looked for afterwards.
func (a assigner) requestReviews(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) ([]string,
	error) {
	var teams, foreign []string
	for _, name := range names {
		owner, _, isTeam := strings.Cut(name, "/")
		switch {
		case isTeam && strings.EqualFold(owner, repo.Owner):
			teams = append(teams, name)
		case isTeam:
			foreign = append(foreign, name)
		}
	}
	names = forge.Without(names, func(name string) bool { return slices.Contains(foreign, name) })
	refused, err := forge.RefusedNames(names, isRefusedName, func(names ...string) error {
		return a.requestReview(ctx, repo, number, names)
	})
	if err != nil || len(teams) == 0 && (len(refused) == 0 || len(refused) < len(names)) {
		return append(refused, foreign...), err
	}
	pr, err := a.pulls.readPull(ctx, repo, number) // which may be what is missing
	if err != nil {
		return nil, err
	}
	for _, name := range teams {
		_, team, _ := strings.Cut(name, "/")
		if !slices.ContainsFunc(pr.RequestedReviewersTeams, func(t *gitea.Team) bool {
			return t != nil && strings.EqualFold(t.Name, team)
		}) {
			refused = append(refused, name)
		}
	}
	return append(refused, foreign...), nil
}

func isRefusedName(err error) bool {
	return statusIs(err, http.StatusNotFound, http.StatusUnprocessableEntity)
}

func (a assigner) requestReview(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) error {
	var option gitea.PullReviewRequestOptions
	for _, name := range names {
		if _, team, isTeam := strings.Cut(name, "/"); isTeam {
			option.TeamReviewers = append(option.TeamReviewers, team)
		} else {
			option.Reviewers = append(option.Reviewers, name)
		}
	}
	_, err := callSDK(transport.Repeatable(ctx), a.api, func(c *gitea.Client) (struct{}, *gitea.Response, error) {
		resp, err := c.CreateReviewRequests(repo.Owner, repo.Name, int64(number), option)
		return struct{}{}, resp, err
	})
	return err
}

// setAssignees answers which names the server does not take. For an unknown name it answers 404, 422 or, at Gitea 1.26,
// 500; then it is looked who may be assigned, and the others are assigned.
func (a assigner) setAssignees(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) ([]string,
	error) {
	if len(names) == 0 {
		return nil, nil
	}
	set := func(names []string) error {
		at := a.api.repoURL(repo, "issues", strconv.Itoa(number))
		return a.api.patch(transport.Repeatable(ctx), at, map[string][]string{"assignees": names}, nil)
	}
	err := set(names)
	if !isRefusedName(err) && !statusIs(err, http.StatusInternalServerError) {
		return nil, err
	}
	possible, lookErr := a.api.assignable(ctx, repo)
	if lookErr != nil {
		return nil, err
	}
	refused := forge.Without(names, func(name string) bool { return possible[strings.ToLower(name)] })
	switch len(refused) {
	case 0:
		return nil, err
	case len(names):
		return refused, nil
	}
	return refused, set(forge.Without(names, func(name string) bool { return slices.Contains(refused, name) }))
}

// assignable gives the names, in lower case, of those who may be assigned. The list has no pages.
func (a *api) assignable(ctx context.Context, repo gitprovider.RepoRef) (map[string]bool, error) {
	users, err := callSDK(ctx, a, func(c *gitea.Client) ([]*gitea.User, *gitea.Response, error) {
		return c.GetAssignees(repo.Owner, repo.Name)
	})
	names := map[string]bool{}
	for _, u := range withoutNulls(users) {
		names[strings.ToLower(u.UserName)] = true
	}
	return names, err
}
