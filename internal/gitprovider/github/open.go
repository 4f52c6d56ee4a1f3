package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// opener opens pull requests.
type opener struct {
	api   *api
	pulls pulls
}

func (o opener) submitPull(ctx context.Context, spec gitprovider.PullRequestSpec) (gitprovider.PullRequest, error) {
	none := gitprovider.PullRequest{}
	var pr gitprovider.PullRequest
	head, looked := branchObject(spec.Repo, spec.Head), false
	unknown := func(err error) bool {
		if !headUnknown(err) {
			return false
		}
		if !looked && !o.api.fresh.has(head) && !o.api.fresh.wasShown(head) && o.isNew(ctx, spec) {
			o.api.fresh.add(head)
		}
		looked = true
		return true
	}
	err := o.api.fresh.waitFor(ctx, head, "the branch "+forge.Clean(spec.Head), unknown,
		func() (err error) {
			pr, err = o.createPull(ctx, spec, spec.Draft)
			if r := asRefusal(err); r != nil && spec.Draft && r.says("draft pull requests") {
				pr, err = o.createPull(ctx, spec, false)
			}
			return err
		})
	r := asRefusal(err)
	if r == nil || r.status != http.StatusUnprocessableEntity {
		return pr, err
	}
	switch {
	case r.says("already exists"):
		found, err := o.pulls.openFor(ctx, spec)
		switch {
		case err != nil:
			return none, err
		case found == nil:
			return none, fault.New(fault.UpstreamError,
				"GitHub has a pull request for %s already but did not show it; try again",
				forge.Clean(spec.Head))
		}
		return *found, nil
	case r.says("no commits between"):
		return none, forge.NothingToPropose(spec)
	case r.namesField("head"):
		return none, fault.New(fault.NotFound, "the repository %s has no branch %s", spec.Repo, forge.Clean(spec.Head))
	case r.namesField("base"):
		return none, forge.NoBase(spec.Repo, spec.Base, "")
	}
	return none, err
}

// headUnknown reports whether a refusal can mean that GitHub does not know a branch yet, or its commit.
func headUnknown(err error) bool {
	r := asRefusal(err)
	return r != nil && r.status == http.StatusUnprocessableEntity && (r.says("no commits between") || r.namesField("head"))
}

// isNew reports whether the head branch has a commit of the last minute that is not the base's: another process may
// have made it.
func (o opener) isNew(ctx context.Context, spec gitprovider.PullRequestSpec) bool {
	q := newQuery(spec.Repo)
	q.textVariable("head", branchRef(spec.Head))
	q.textVariable("base", branchRef(spec.Base))
	q.selectField("head: ref(qualifiedName: $head) { target { oid ... on Commit { committedDate } } }")
	q.selectField("base: ref(qualifiedName: $base) { target { oid } }")
	from, err := queryRepository[struct {
		Head *struct {
			Target struct {
				Oid           string
				CommittedDate time.Time
			}
		}
		Base *refNode
	}](ctx, o.api, q, needContents)
	return err == nil && from.Head != nil && from.Head.Target.Oid != from.Base.tip() &&
		o.api.fresh.now().Sub(from.Head.Target.CommittedDate).Abs() < newFor
}

func (o opener) createPull(ctx context.Context, spec gitprovider.PullRequestSpec, draft bool) (gitprovider.PullRequest,
	error) {
	none := gitprovider.PullRequest{}
	body := &gogithub.NewPullRequest{
		Title: &spec.Title, Body: &spec.Body, Head: &spec.Head, Base: &spec.Base, Draft: &draft,
	}
	var made gogithub.PullRequest
	if err := o.api.post(ctx, o.api.repoURL(spec.Repo, "pulls"), needPulls, body, &made); err != nil {
		return none, err
	}
	if made.GetNumber() < 1 || made.GetHTMLURL() == "" {
		return none, fault.New(fault.UpstreamError, "GitHub did not say which pull request it opened for %s",
			forge.Clean(spec.Head))
	}
	pr := gitprovider.PullRequest{
		Number: made.GetNumber(), Title: made.GetTitle(), Body: made.GetBody(), URL: made.GetHTMLURL(), Branch: spec.Head,
		HeadCommit: made.GetHead().GetSHA(), Base: spec.Base, State: gitprovider.StateOpen,
		CreatedAt: made.GetCreatedAt().UTC(), Author: made.GetUser().GetLogin(),
		RepoID: repoID(made.GetBase().GetRepo().GetID()),
	}
	for _, label := range made.Labels {
		pr.Labels = append(pr.Labels, label.GetName())
	}
	o.api.fresh.add(pullObject(spec.Repo, pr.Number))
	o.api.fresh.markShown(branchObject(spec.Repo, spec.Head))
	pr.Paths, _ = o.pulls.files.known.Opened(spec.Repo, pr.Number, versionOf(pr.HeadCommit, pr.Base))
	return pr, nil
}

// labels sets labels. GitHub silently makes those that the repository lacks, so it is looked first which exist.
type labels struct {
	api    *api
	facts  *repositoryFacts
	create func() bool
	now    func() time.Time
}

// labelsFresh is how long a snapshot's labels are trusted. GitHub creates an unknown label that it is told to set, so
// an outdated cache could bring back a label that a person has deleted.
const labelsFresh = time.Minute

// labelKey returns a label as GitHub compares it, letter case aside.
func labelKey(name string) string { return strings.ToLower(name) }

// labelList is a list of labels as GraphQL answers it.
type labelList struct {
	PageInfo pageInfo
	Nodes    []struct{ Name string }
}

// names returns the names of the labels.
func (l *labelList) names() []string {
	if l == nil {
		return nil
	}
	var out []string
	for _, label := range l.Nodes {
		out = append(out, label.Name)
	}
	return out
}

// labelKeys returns the set of the keys of labels.
func labelKeys(names []string) map[string]bool {
	keys := map[string]bool{}
	for _, name := range names {
		keys[labelKey(name)] = true
	}
	return keys
}

// lacking gives those of the labels that are not among the keys.
func lacking(keys map[string]bool, names []string) []string {
	return forge.Without(names, func(name string) bool { return keys[labelKey(name)] })
}

func (l labels) set(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) error {
	var missing []string
	if !mayCreate(l.create) {
		var err error
		if missing, err = l.missingLabels(ctx, repo, names); err != nil {
			return err
		}
	}
	if existing := lacking(labelKeys(missing), names); len(existing) > 0 {
		u := l.api.repoURL(repo, "issues", strconv.Itoa(number), "labels")
		var have []gogithub.Label // read, so that something else than GitHub's answer is noticed
		err := l.api.postTo(transport.Repeatable(ctx), repo, number, u, map[string][]string{"labels": existing}, &have)
		if err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return forge.NoLabels(repo, missing)
	}
	return nil
}

// missingLabels tells which labels do not exist: from a fresh snapshot, or by asking.
func (l labels) missingLabels(ctx context.Context, repo gitprovider.RepoRef, names []string) ([]string, error) {
	if known := l.facts.cached(repo); l.now().Sub(known.seen) <= labelsFresh {
		names = lacking(known.labels, names)
	}
	return l.absent(ctx, repo, names)
}

// absent gives those of the labels that do not exist, with one request if there are any to look for.
func (l labels) absent(ctx context.Context, repo gitprovider.RepoRef, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	q := newQuery(repo)
	for i, name := range names {
		alias := "label" + strconv.Itoa(i)
		q.textVariable(alias, name)
		q.selectField(alias + ": label(name: $" + alias + ") { name }")
	}
	answer, err := queryRepository[map[string]*struct{ Name string }](ctx, l.api, q, needIssues)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, label := range *answer {
		if label != nil {
			found[labelKey(label.Name)] = true
		}
	}
	return lacking(found, names), nil
}

// mayCreate asks whether labels may be made.
func mayCreate(asked func() bool) bool { return asked != nil && asked() }

// assigner asks for reviews and assigns.
type assigner struct {
	api   *api
	isApp bool // a token for teams is another one
}

func (a assigner) assign(ctx context.Context, repo gitprovider.RepoRef, number int,
	reviewers, assignees []string) error {
	refusedReviewers, withoutTeams, err := a.askForReviews(ctx, repo, number, reviewers)
	if err != nil {
		return err
	}
	refusedAssignees, err := a.setAssignees(ctx, repo, number, assignees)
	if err != nil {
		return err
	}
	var said []string
	if len(refusedReviewers) > 0 {
		said = append(said, "as reviewers "+strings.Join(refusedReviewers, ", "))
	}
	if len(refusedAssignees) > 0 {
		said = append(said, "as assignees "+strings.Join(refusedAssignees, ", "))
	}
	var why []string
	if len(said) > 0 {
		why = append(why, fmt.Sprintf("GitHub does not take %s; only collaborators of %s other than the author can be named",
			forge.Clean(strings.Join(said, "; ")), repo))
	}
	if withoutTeams != "" {
		why = append(why, withoutTeams)
	}
	if len(why) == 0 {
		return nil
	}
	return fault.New(fault.NotFound, "%s", strings.Join(why, "; "))
}

// askForReviews asks people and teams, together if one token does for both. It returns the names that GitHub does not
// take, and why no team could be asked.
func (a assigner) askForReviews(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) (no []string,
	withoutTeams string, err error) {
	if !a.isApp {
		return a.review(ctx, repo, number, names)
	}
	teams := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !isTeam(name) })
	no, _, err = a.review(ctx, repo, number, forge.Without(names, isTeam))
	if err != nil || len(teams) == 0 {
		return no, "", err
	}
	noTeams, withoutTeams, err := a.review(transport.ForMembers(ctx), repo, number, teams)
	if f := fault.From(err); err != nil && f.Code == fault.ProviderDisabled { // the installation does not grant it
		return no, f.Message, nil
	}
	return append(no, noTeams...), withoutTeams, err
}

func isTeam(name string) bool { return strings.Contains(name, "/") }

// review asks for reviews. Of a new pull request it waits for the first answer that is none of its being new. A team
// that the token may not see is refused in the words of an unknown pull request.
func (a assigner) review(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) (no []string,
	withoutTeams string, err error) {
	asked := false
	no, err = forge.RefusedNames(names, isUnprocessable, func(names ...string) error {
		ask := func() error {
			err := a.requestReview(ctx, repo, number, names)
			if r := asRefusal(err); r != nil && len(names) == 1 && isTeam(names[0]) && r.says(unknownNode) {
				withoutTeams = "to name a team, the token needs the organisation's permission \"Members: read\""
			}
			return err
		}
		if asked {
			return ask()
		}
		asked = true
		late, err := a.api.fresh.retryUntilKnown(ctx, pullObject(repo, number), pullUnknown, ask)
		if late && !slices.ContainsFunc(names, isTeam) {
			return notYet(pullWords(number), err)
		}
		return err
	})
	return no, withoutTeams, err
}

func isUnprocessable(err error) bool {
	r := asRefusal(err)
	return r != nil && r.fault.Code == fault.InvalidArgument
}

func (a assigner) requestReview(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) error {
	body := &gogithub.ReviewersRequest{}
	for _, name := range names {
		if _, team, isTeam := strings.Cut(name, "/"); isTeam {
			body.TeamReviewers = append(body.TeamReviewers, team)
		} else {
			body.Reviewers = append(body.Reviewers, name)
		}
	}
	at := a.api.repoURL(repo, "pulls", strconv.Itoa(number), "requested_reviewers")
	err := a.api.post(transport.Repeatable(ctx), at, needPulls, body, new(gogithub.PullRequest))
	return a.api.refusals.pullMissing(err, repo, number)
}

// setAssignees returns the names that GitHub left out: it ignores those that it does not take.
func (a assigner) setAssignees(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) ([]string,
	error) {
	if len(names) == 0 {
		return nil, nil
	}
	var issue gogithub.Issue
	at := a.api.repoURL(repo, "issues", strconv.Itoa(number), "assignees")
	err := a.api.postTo(transport.Repeatable(ctx), repo, number, at, map[string][]string{"assignees": names}, &issue)
	if err != nil {
		return nil, err
	}
	return forge.Without(names, func(name string) bool {
		return slices.ContainsFunc(issue.Assignees, func(u *gogithub.User) bool {
			return strings.EqualFold(u.GetLogin(), name)
		})
	}), nil
}
