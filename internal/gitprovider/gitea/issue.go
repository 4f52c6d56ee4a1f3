package gitea

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// issues reads issues, with who acted there.
type issues struct {
	api      *api
	examiner examiner
}

var _ gitprovider.IssueReader = (*Provider)(nil)

// ReadIssue implements gitprovider.IssueReader with 4 requests in 2 rounds; 1 or 2 more unless who acted administers
// the repository; 1 for each team of an organisation that may write; and 1 for each further 50 things that happened to
// a labelled issue.
func (p *Provider) ReadIssue(ctx context.Context, repo gitprovider.RepoRef,
	q gitprovider.IssueQuery) (gitprovider.Issue, error) {
	if err := forge.CheckNumber(repo, q.Number); err != nil {
		return gitprovider.Issue{}, err
	}
	issue, err := p.issues.readIssue(ctx, repo, q)
	return issue, p.api.toFault(err, repo, "issue #"+strconv.Itoa(q.Number))
}

func (i issues) readIssue(ctx context.Context, repo gitprovider.RepoRef,
	q gitprovider.IssueQuery) (out gitprovider.Issue, err error) {
	var issue gitea.Issue
	var we string
	err = forge.Together(
		func() error {
			_, err := i.api.get(ctx, i.api.repoURL(repo, "issues", strconv.Itoa(q.Number)), nil, &issue)
			return err
		},
		func() error {
			we = i.examiner.user(ctx)
			return nil
		},
		func() (err error) {
			if q.Comment != 0 {
				out.Act, err = i.comment(ctx, repo, q)
			} else {
				out.Act, err = i.labelling(ctx, repo, q)
			}
			return err
		},
	)
	if err != nil {
		return out, err
	}
	if we == "" {
		return out, fault.New(fault.Misconfigured,
			"%s may not read its own user, so what it wrote itself cannot be told apart; give it the scope read:user",
			tokenVariable)
	}
	out.Title, out.Body, out.Pull, out.Labels = issue.Title, issue.Body, issue.PullRequest != nil, labelNames(issue.Labels)
	by := &out.Act.By
	if out.Act.ID == 0 || by.Login == "" {
		return out, nil
	}
	by.Ours = strings.EqualFold(by.Login, we)
	by.MayWrite, err = i.mayWrite(ctx, repo, by.Login)
	return out, err
}

func accountOf(u *gitea.User) gitprovider.IssueAccount {
	if u == nil {
		return gitprovider.IssueAccount{}
	}
	return gitprovider.IssueAccount{ID: u.ID, Login: u.UserName, Program: u.ID <= 0} // such as gitea-actions, -2
}

func (i issues) comment(ctx context.Context, repo gitprovider.RepoRef, q gitprovider.IssueQuery) (gitprovider.IssueAct,
	error) {
	var c gitea.Comment
	at := i.api.repoURL(repo, "issues", "comments", strconv.FormatInt(q.Comment, 10))
	if _, err := i.api.get(ctx, at, nil, &c); err != nil {
		return gitprovider.IssueAct{}, err
	}
	on := c.IssueURL
	if on == "" {
		on = c.PRURL
	}
	if c.ID != q.Comment || path.Base(on) != strconv.Itoa(q.Number) || c.OriginalAuthor != "" {
		return gitprovider.IssueAct{}, fault.New(fault.NotFound, "%s#%d has no comment %d", repo, q.Number, q.Comment)
	}
	return gitprovider.IssueAct{ID: c.ID, By: accountOf(c.Poster), Text: c.Body, At: c.Created.UTC(),
		Edited: !c.Updated.Equal(c.Created)}, nil
}

// timelineEntry is one thing that happened to an issue. The SDK lacks the label.
type timelineEntry struct {
	ID      int64        `json:"id"`
	Type    string       `json:"type"`
	Body    string       `json:"body"` // of a label: 1 if it was put on
	User    *gitea.User  `json:"user"`
	Label   *gitea.Label `json:"label"`
	Created time.Time    `json:"created_at"`
}

// maxTimeline bounds the pages that are read of what happened to an issue.
const maxTimeline = 10

// labelling finds the last time that the label was put on. The server counts only the entries of a page.
func (i issues) labelling(ctx context.Context, repo gitprovider.RepoRef,
	q gitprovider.IssueQuery) (act gitprovider.IssueAct, err error) {
	for number := 1; number <= maxTimeline; number++ {
		query := url.Values{"page": {strconv.Itoa(number)}, "limit": {strconv.Itoa(pageSize)},
			"since": {q.Since.UTC().Format(time.RFC3339)}}
		var entries []*timelineEntry
		at := i.api.repoURL(repo, "issues", strconv.Itoa(q.Number), "timeline")
		if _, err := i.api.get(ctx, at, query, &entries); err != nil {
			return act, err
		}
		for _, e := range entries {
			if e != nil && e.Type == "label" && e.Body == "1" && e.Label != nil && e.ID > act.ID &&
				strings.EqualFold(e.Label.Name, q.Label) && !e.Created.Before(q.Since) {
				act = gitprovider.IssueAct{ID: e.ID, By: accountOf(e.User), At: e.Created.UTC()}
			}
		}
		if len(entries) == 0 {
			break
		}
	}
	return act, nil
}

// mayWrite reports whether a user may write to the code of a repository. The server tells administrators, apart from
// what members of teams may do by units: at an organisation's repository older servers say write of the members of a
// team that may only write to issues, so that the teams are asked about all but collaborators. Others it tells who
// may be assigned, and those are the writers where a user owns the repository; among the assignable of an
// organisation's are members of teams that may only read.
func (i issues) mayWrite(ctx context.Context, repo gitprovider.RepoRef, login string) (bool, error) {
	var told struct {
		Permission string `json:"permission"`
	}
	_, err := i.api.get(ctx, i.api.repoURL(repo, "collaborators", login, "permission"), nil, &told)
	asked := err == nil
	switch {
	case isMissing(err): // of a user who does not exist
		return false, nil
	case asked && administers(told.Permission):
		return true, nil
	case !asked && !statusIs(err, http.StatusForbidden):
		return false, err
	}
	var teams []*team
	_, err = i.api.get(ctx, i.api.repoURL(repo, "teams"), nil, &teams)
	// its answer where a user is the owner
	switch owned := statusIs(err, http.StatusMethodNotAllowed) && !lacksRoute(err); {
	case owned && asked:
		return writes(told.Permission), nil
	case owned:
		writers, err := i.api.assignable(ctx, repo)
		return writers[strings.ToLower(login)], err
	case err != nil:
		return false, err
	}
	if asked && writes(told.Permission) { // what a collaborator may do holds for everything
		if collaborates, err := i.collaborates(ctx, repo, login); err != nil || collaborates {
			return collaborates, err
		}
	}
	member, all, err := i.inTeam(ctx, teams, login)
	if err == nil && !member && (!asked || !all) {
		err = fault.New(fault.Misconfigured, "Gitea does not tell who may write to %s: make the user of %s an owner of the "+
			"organisation, and give the token the scope read:organization", repo, tokenVariable)
	}
	return member, err
}

// team is a team of an organisation with what it may do.
type team struct {
	ID         int64             `json:"id"`
	Permission string            `json:"permission"`
	Units      map[string]string `json:"units_map"`
}

func writes(permission string) bool { return permission == "write" || administers(permission) }

func administers(permission string) bool { return permission == "admin" || permission == "owner" }

// collaborates reports whether a user has been given access to the repository itself.
func (i issues) collaborates(ctx context.Context, repo gitprovider.RepoRef, login string) (bool, error) {
	_, err := i.api.get(ctx, i.api.repoURL(repo, "collaborators", login), nil, nil)
	if isMissing(err) {
		return false, nil
	}
	return err == nil, err
}

// inTeam reports whether a user is a member of one of the teams that write to code; all is false if the server does not
// tell of each.
func (i issues) inTeam(ctx context.Context, teams []*team, login string) (member, all bool, err error) {
	all = true
	for _, t := range withoutNulls(teams) {
		if !administers(t.Permission) && !writes(t.Units["repo.code"]) {
			continue
		}
		_, err := i.api.get(ctx, i.api.endpoint("teams", strconv.FormatInt(t.ID, 10), "members", login), nil, nil)
		switch {
		case err == nil:
			return true, all, nil
		case statusIs(err, http.StatusForbidden):
			all = false
		case !isMissing(err):
			return false, false, err
		}
	}
	return false, all, nil
}
