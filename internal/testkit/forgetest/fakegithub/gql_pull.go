package fakegithub

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// pullNamed finds a pull request by its number in digits, or nil.
func (r *pullRules) pullNamed(number string) *memhost.PR {
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil
	}
	return r.at.repo.PR(n)
}

// addPullFields adds the fields of a repository that lead to pull requests and labels.
func (g *pullGraph) addPullFields(out fields) {
	out["pullRequest"] = g.at.rights().guarded(func(in args) (any, error) {
		if err := g.at.s.graph.spend(1); err != nil {
			return nil, err
		}
		if pr := g.at.repo.PR(in.Int("number")); pr != nil && !g.at.hides(doorGraph, pullName(pr.Number)) {
			return g.pull(pr), nil
		}
		return nil, &gql.Error{Type: "NOT_FOUND", Message: fmt.Sprintf(
			"Could not resolve to a PullRequest with the number of %d.", in.Int("number"))}
	}, "pull_requests")
	out["pullRequests"] = g.at.rights().guarded(func(in args) (any, error) { return g.pulls("pullRequests", in) },
		"pull_requests")
	out["label"] = lazy(func(in args) (any, error) { return g.label(in.String("name")), nil })
	out["labels"] = lazy(func(in args) (any, error) {
		var names []string
		for _, name := range g.at.set.Labels {
			if strings.Contains(lower(name), lower(in.String("query"))) {
				names = append(names, name)
			}
		}
		return g.labels(names, in)
	})
}

func (g *pullGraph) pulls(field string, in args) (any, error) {
	if err := g.at.s.graph.spend(in.Int("first")); err != nil {
		return nil, err
	}
	prs := g.at.rules().listed(in)
	return gql.Connection("PullRequest", field, gql.Items{
		Len: len(prs), Key: func(i int) string { return strconv.Itoa(prs[i].Number) },
		Node: func(i int) *gql.Object { return g.pull(prs[i]) },
	}, in)
}

// when returns a time, or null if there is none.
func when(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at
}

// merger is the user who merges the pull requests of the fake.
const merger = "ann"

func (g *pullGraph) pull(pr *memhost.PR) *gql.Object {
	st := g.at.pull(pr)
	owner, branch := g.at.headOf(pr)
	var mergedAt any
	if pr.State == gitprovider.StateMerged {
		mergedAt = when(pr.ClosedAt)
	}
	read := sync.OnceValue(func() *bool { return g.at.rules().mergeable(pr) }) // however often one document asks
	out := fields{
		"id": nodeID(kindPull, g.at.id, strconv.Itoa(pr.Number)), "number": pr.Number, "title": pr.Title, "body": pr.Body,
		"url": g.at.web("pull", strconv.Itoa(pr.Number)), "state": strings.ToUpper(string(pr.State)),
		"closedAt": when(pr.ClosedAt), "mergedAt": mergedAt, "createdAt": pr.CreatedAt, "updatedAt": st.updated,
		"isCrossRepository": owner != g.at.repo.Ref.Owner, "author": g.at.s.graph.user(g.at.rules().author(pr)),
		"headRefName": branch, "headRefOid": cmp.Or(g.at.set.Delays.Heads[pr.Number], pr.HeadCommit), "baseRefName": pr.Base,
		"mergeable": lazy(func(args) (any, error) { return gqlMergeable(read()), nil }),
	}
	out["mergedBy"] = lazy(func(args) (any, error) {
		if mergedAt == nil {
			return nil, nil
		}
		return g.at.s.graph.user(merger), nil
	})
	g.addPullRefs(out, pr)
	g.addPullLists(out, pr)
	return &gql.Object{Type: "PullRequest", Fields: out}
}

func (g *pullGraph) addPullRefs(out fields, pr *memhost.PR) {
	out["repository"] = lazy(func(args) (any, error) { return g.repo(), nil })
	out["headRepository"] = lazy(func(args) (any, error) {
		if owner, _ := g.at.headOf(pr); owner != g.at.repo.Ref.Owner {
			return g.fork(owner), nil
		}
		return g.repo(), nil
	})
	out["headRef"] = lazy(func(args) (any, error) { return g.at.git().ref(pr.Branch), nil })
}

// baseTip returns the commit that a pull request is to be merged into, or was merged into.
func (r *pullRules) baseTip(pr *memhost.PR) string {
	if merge := r.mergeCommit(pr); merge != "" {
		return r.at.repo.Commits[merge].Parents[0]
	}
	if tip := r.at.tip(pr.Base); tip != "" {
		return tip
	}
	return r.base(pr)
}

// fork returns somebody's fork of the repository. The fake has no more of it than this.
func (g *pullGraph) fork(owner string) *gql.Object {
	out := g.repo()
	out.Fields["id"], out.Fields["databaseId"] = nodeID(kindRepo, g.at.id, owner), g.at.id*10
	out.Fields["owner"] = g.at.s.graph.user(owner)
	out.Fields["url"] = g.at.s.host.Web() + "/" + owner + "/" + g.at.repo.Ref.Name
	out.Fields["isFork"], out.Fields["viewerPermission"] = true, "READ"
	return out
}

func gqlMergeable(ok *bool) string {
	switch {
	case ok == nil:
		return "UNKNOWN"
	case *ok:
		return "MERGEABLE"
	default:
		return "CONFLICTING"
	}
}

// author returns the author of a pull request: its head's owner if it comes from a fork, else the owner of the token.
func (r *pullRules) author(pr *memhost.PR) string {
	if owner, _ := r.at.headOf(pr); owner != r.at.repo.Ref.Owner {
		return owner
	}
	return viewer
}
