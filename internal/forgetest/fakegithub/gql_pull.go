package fakegithub

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/forgetest/fakegithub/gql"
	"github.com/claudeops/claudeops/internal/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// pullNamed finds a pull request by its number in digits, or nil.
func (p *place) pullNamed(number string) *memhost.PR {
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil
	}
	return p.repo.PR(n)
}

// addPullFields are the fields of a repository that lead to pull requests and labels.
func (p *place) addPullFields(out fields) {
	out["pullRequest"] = p.guarded(func(in args) (any, error) {
		if pr := p.repo.PR(in.Int("number")); pr != nil {
			return p.gqlPull(pr), nil
		}
		return nil, &gql.Error{Type: "NOT_FOUND", Message: fmt.Sprintf(
			"Could not resolve to a PullRequest with the number of %d.", in.Int("number"))}
	}, "pull_requests")
	out["pullRequests"] = p.guarded(func(in args) (any, error) { return p.gqlPulls("pullRequests", in) }, "pull_requests")
	out["label"] = lazy(func(in args) (any, error) { return p.gqlLabel(in.String("name")), nil })
	out["labels"] = lazy(func(in args) (any, error) {
		var names []string
		for _, name := range p.set.Labels {
			if strings.Contains(lower(name), lower(in.String("query"))) {
				names = append(names, name)
			}
		}
		return p.gqlLabels(names, in)
	})
}

func (p *place) gqlPulls(field string, in args) (any, error) {
	prs := p.listed(in)
	return gql.Connection("PullRequest", field, gql.Items{
		Len: len(prs), Key: func(i int) string { return strconv.Itoa(prs[i].Number) },
		Node: func(i int) *gql.Object { return p.gqlPull(prs[i]) },
	}, in, nil)
}

// when is a time, or null if there is none.
func when(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at
}

// merger is who merges the pull requests of the fake.
const merger = "ann"

func (p *place) gqlPull(pr *memhost.PR) *gql.Object {
	st := p.pull(pr)
	owner, branch := p.headOf(pr)
	var mergedAt any
	if pr.State == gitprovider.StateMerged {
		mergedAt = when(pr.ClosedAt)
	}
	read := sync.OnceValue(func() *bool { return p.mergeable(pr) }) // both fields are one read
	out := fields{
		"id": nodeID(kindPull, p.id, strconv.Itoa(pr.Number)), "databaseId": p.id*1000 + pr.Number,
		"fullDatabaseId": strconv.Itoa(p.id*1000 + pr.Number), "number": pr.Number, "title": pr.Title, "body": pr.Body,
		"url": p.web("pull", strconv.Itoa(pr.Number)), "resourcePath": fmt.Sprintf("/%s/pull/%d", p.repo.Ref, pr.Number),
		"state": strings.ToUpper(string(pr.State)), "closed": pr.State != gitprovider.StateOpen,
		"closedAt": when(pr.ClosedAt), "merged": mergedAt != nil, "mergedAt": mergedAt, "createdAt": pr.CreatedAt,
		"updatedAt": st.updated, "isDraft": st.draft, "isCrossRepository": owner != p.repo.Ref.Owner, "locked": false,
		"author": p.s.gqlUser(p.author(pr)), "headRefName": branch, "headRefOid": pr.HeadCommit,
		"baseRefName": pr.Base, "headRepositoryOwner": p.s.gqlUser(owner), "viewerDidAuthor": p.author(pr) == viewer,
		"viewerCanUpdate": p.set.allows("write"), "maintainerCanModify": st.maintained,
		"reviewDecision":    lazy(func(args) (any, error) { return p.decision(pr), nil }),
		"mergeable":         lazy(func(args) (any, error) { return gqlMergeable(read()), nil }),
		"mergeStateStatus":  lazy(func(args) (any, error) { return p.mergeState(pr, read()), nil }),
		"statusCheckRollup": p.guarded(func(args) (any, error) { return p.gqlRollup(pr.HeadCommit), nil }, "checks", "statuses"),
	}
	out["mergedBy"] = lazy(func(args) (any, error) {
		if mergedAt == nil {
			return nil, nil
		}
		return p.s.gqlUser(merger), nil
	})
	p.addPullRefs(out, pr)
	p.addPullLists(out, pr)
	return &gql.Object{Type: "PullRequest", Fields: out}
}

func (p *place) addPullRefs(out fields, pr *memhost.PR) {
	repo := lazy(func(args) (any, error) { return p.gqlRepo(), nil })
	out["repository"], out["baseRepository"] = repo, repo
	out["headRepository"] = lazy(func(args) (any, error) {
		if owner, _ := p.headOf(pr); owner != p.repo.Ref.Owner {
			return p.gqlFork(owner), nil
		}
		return p.gqlRepo(), nil
	})
	out["headRef"] = lazy(func(args) (any, error) { return p.gqlRef(pr.Branch), nil })
	out["baseRef"] = lazy(func(args) (any, error) { return p.gqlRef(pr.Base), nil })
	out["baseRefOid"] = lazy(func(args) (any, error) { return p.baseTip(pr), nil })
	out["mergeCommit"] = lazy(func(args) (any, error) { return p.gqlCommit(p.mergeCommit(pr)), nil })
}

// baseTip is the commit that a pull request is to be merged into, or was merged into.
func (p *place) baseTip(pr *memhost.PR) string {
	if merge := p.mergeCommit(pr); merge != "" {
		return p.repo.Commits[merge].Parents[0]
	}
	if tip := p.tip(pr.Base); tip != "" {
		return tip
	}
	return p.base(pr)
}

// gqlFork is somebody's fork of the repository. The fake has no more of it than this.
func (p *place) gqlFork(owner string) *gql.Object {
	out := p.gqlRepo()
	name := owner + "/" + p.repo.Ref.Name
	out.Fields["id"], out.Fields["databaseId"] = nodeID(kindRepo, p.id, owner), p.id*10
	out.Fields["nameWithOwner"], out.Fields["owner"] = name, p.s.gqlUser(owner)
	out.Fields["url"], out.Fields["resourcePath"] = p.s.host.Web()+"/"+name, "/"+name
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

// author is who opened a pull request: its head's owner if it comes from a fork, else whoever the token is of.
func (p *place) author(pr *memhost.PR) string {
	if owner, _ := p.headOf(pr); owner != p.repo.Ref.Owner {
		return owner
	}
	return viewer
}
