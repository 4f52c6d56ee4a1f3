package github

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	gogithub "github.com/google/go-github/v60/github"

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

// ReadIssue implements gitprovider.IssueReader with 4 requests in 2 rounds, and at most 2 more where a label was put on
// an issue to which much has happened.
func (p *Provider) ReadIssue(ctx context.Context, repo gitprovider.RepoRef,
	q gitprovider.IssueQuery) (gitprovider.Issue, error) {
	if err := forge.CheckNumber(repo, q.Number); err != nil {
		return gitprovider.Issue{}, err
	}
	issue, err := p.issues.readIssue(about(ctx, repo), repo, q)
	return issue, publish(err)
}

func (i issues) readIssue(ctx context.Context, repo gitprovider.RepoRef,
	q gitprovider.IssueQuery) (out gitprovider.Issue, err error) {
	var issue gogithub.Issue
	var who identity
	err = forge.Together(
		func() error {
			_, err := i.api.get(ctx, i.api.repoURL(repo, "issues", strconv.Itoa(q.Number)), needIssues, &issue)
			return err
		},
		forge.Into(&who, func() (identity, error) { return i.examiner.whoAmI(ctx, repo) }),
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
	out.Title, out.Body, out.Pull = issue.GetTitle(), issue.GetBody(), issue.IsPullRequest()
	for _, label := range issue.Labels {
		out.Labels = append(out.Labels, label.GetName())
	}
	by := &out.Act.By
	if out.Act.ID == 0 || by.Login == "" || by.Program {
		return out, nil
	}
	by.Ours = strings.EqualFold(by.Login, who.login) // a token without a login is that of an app, and a program
	by.MayWrite, err = i.mayWrite(ctx, repo, by.Login)
	return out, err
}

// mayWrite asks now what may be known already: who lost the right starts nothing any more. GitHub's answer has the role
// maintain as write, and triage as read.
func (i issues) mayWrite(ctx context.Context, repo gitprovider.RepoRef, login string) (bool, error) {
	var told struct{ Permission string }
	_, err := i.api.get(ctx, i.api.repoURL(repo, "collaborators", login, "permission"), needMetadata, &told)
	if no := asRefusal(err); no != nil && no.status == http.StatusNotFound {
		return false, nil // of somebody who is gone
	}
	return told.Permission == "admin" || told.Permission == "write", err
}

func (i issues) comment(ctx context.Context, repo gitprovider.RepoRef, q gitprovider.IssueQuery) (gitprovider.IssueAct,
	error) {
	var c gogithub.IssueComment
	at := i.api.repoURL(repo, "issues", "comments", strconv.FormatInt(q.Comment, 10))
	if _, err := i.api.get(ctx, at, needIssues, &c); err != nil {
		return gitprovider.IssueAct{}, err
	}
	if c.GetID() != q.Comment || !strings.HasSuffix(c.GetIssueURL(), "/issues/"+strconv.Itoa(q.Number)) {
		return gitprovider.IssueAct{}, fault.New(fault.NotFound, "%s#%d has no comment %d", repo, q.Number, q.Comment)
	}
	return gitprovider.IssueAct{ID: c.GetID(), By: accountOf(c.User), Text: c.GetBody(), At: c.GetCreatedAt().UTC(),
		Edited: !c.GetUpdatedAt().Equal(c.GetCreatedAt())}, nil
}

// labelling finds the last time that the label was put on. GitHub lists what happened oldest first, so the last two
// pages are read.
func (i issues) labelling(ctx context.Context, repo gitprovider.RepoRef,
	q gitprovider.IssueQuery) (act gitprovider.IssueAct, err error) {
	at := i.api.repoURL(repo, "issues", strconv.Itoa(q.Number), "events")
	events, last, err := i.events(ctx, at, 1)
	for number := last; err == nil && number > 1 && number > last-2; number-- {
		var more []*gogithub.IssueEvent
		more, _, err = i.events(ctx, at, number)
		events = append(events, more...)
	}
	for _, e := range events {
		if e == nil || e.GetEvent() != "labeled" || e.Label == nil || !strings.EqualFold(e.Label.GetName(), q.Label) ||
			e.GetCreatedAt().Before(q.Since) || e.GetID() <= act.ID {
			continue
		}
		act = gitprovider.IssueAct{ID: e.GetID(), By: accountOf(e.Actor), At: e.GetCreatedAt().UTC()}
	}
	return act, err
}

func (i issues) events(ctx context.Context, at *url.URL, number int) (list []*gogithub.IssueEvent, last int,
	err error) {
	resp, err := i.api.get(ctx, pageURL(at, number), needIssues, &list)
	if err != nil {
		return nil, 0, err
	}
	return list, resp.LastPage, nil
}

func accountOf(u *gogithub.User) gitprovider.IssueAccount {
	return gitprovider.IssueAccount{ID: u.GetID(), Login: u.GetLogin(), Program: u.GetType() != "User"}
}
