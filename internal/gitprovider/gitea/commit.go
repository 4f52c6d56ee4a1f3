package gitea

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// changeFiles is the body of POST contents. The SDK has no call for several files.
type changeFiles struct {
	Branch    string       `json:"branch"`
	NewBranch string       `json:"new_branch"`
	Message   string       `json:"message"`
	Dates     commitDates  `json:"dates"`
	Files     []changeFile `json:"files"`
}

// commitDates are always sent, both of them: without, some versions date the commit 2001-01-01 (go-gitea/gitea#35860).
type commitDates struct {
	Author    time.Time `json:"author"`
	Committer time.Time `json:"committer"`
}

type changeFile struct {
	Operation string  `json:"operation"` // create, update or delete: the port's words
	Path      string  `json:"path"`
	Content   *string `json:"content,omitempty"` // base64
	SHA       string  `json:"sha,omitempty"`     // blob that is replaced or removed; without, the server does not check
}

// filesChanged is the answer.
type filesChanged struct {
	Files  []*gitea.ContentsResponse `json:"files"` // null for a deleted file; the first 30 alone
	Commit *gitea.FileCommitResponse `json:"commit"`
}

// Commit implements gitprovider.Provider. One request makes branch and commit. The server takes the base as it is at that
// moment, so the answer is checked: a commit with another parent, or with other files, is undone. The commit belongs to
// the token's user.
//
// Beside the port's codes: repo_not_allowed if the repository is archived, the user may not write, or a rule protects
// branches of this name.
func (p *Provider) Commit(ctx context.Context, req gitprovider.CommitRequest) (gitprovider.Commit, error) {
	none := gitprovider.Commit{}
	if err := req.Check(); err != nil {
		return none, err
	}
	if !isObjectID(req.Snapshot.BaseCommit) {
		return none, fault.New(fault.InvalidArgument, "a commit needs the snapshot that the gates approved")
	}
	repo := req.Snapshot.Repo
	var made filesChanged
	err := p.post(ctx, p.repoURL(repo, "contents"), p.changeFiles(req), &made)
	if err != nil {
		return none, p.judgeCommit(ctx, req, err)
	}
	if made.Commit == nil || !isObjectID(made.Commit.SHA) {
		return none, fault.New(fault.UpstreamError, "%s does not say which commit it made on the branch %s of %s", p.base.Host,
			req.Branch, repo)
	}
	if err := p.checkMade(ctx, req, made); err != nil {
		return none, p.undo(ctx, req, made.Commit.SHA, err)
	}
	p.fresh.add(repo, req.Branch)
	p.own.add(req, made.Commit.SHA)
	return gitprovider.Commit{ID: made.Commit.SHA, Branch: req.Branch}, nil
}

func (p *Provider) changeFiles(req gitprovider.CommitRequest) changeFiles {
	when := req.Time
	if when.IsZero() {
		when = p.now()
	}
	when = when.UTC().Truncate(time.Second)
	body := changeFiles{
		Branch: req.Snapshot.Base, NewBranch: req.Branch, Message: req.Message,
		Dates: commitDates{Author: when, Committer: when},
	}
	for _, c := range req.Changes.Changes() {
		file := changeFile{Operation: string(c.Action), Path: c.Path.String(), SHA: req.Snapshot.Tree[c.Path.String()].ID}
		if c.Action != gitprovider.ActionDelete {
			content := base64.StdEncoding.EncodeToString([]byte(c.Content))
			file.Content = &content
		}
		body.Files = append(body.Files, file)
	}
	return body
}

// judgeCommit says what a refused commit means. The server answers 403 both to those who may not write and to those who
// came second (cannot lock ref), so at a 403 it is looked what is there.
func (p *Provider) judgeCommit(ctx context.Context, req gitprovider.CommitRequest, err error) error {
	repo := req.Snapshot.Repo
	switch {
	case isMissing(err):
		return p.judge(err, repo, "the base branch "+req.Snapshot.Base)
	case statusIs(err, http.StatusConflict, http.StatusUnprocessableEntity):
		return fault.Wrap(err, fault.Conflict, "%s did not make the branch %s in %s: it exists already, or the base branch %s "+
			"has moved since it was read%s", p.base.Host, req.Branch, repo, req.Snapshot.Base, saidBy(err))
	case statusIs(err, http.StatusForbidden):
		if why := p.inTheWay(ctx, req, err); why != nil {
			return why
		}
		if why := p.ruledOut(ctx, repo, req.Branch, err); why != nil {
			return why
		}
	}
	return p.judge(err, repo, "")
}

// inTheWay looks for what keeps a branch from being made: itself, one above or below it, or a base that has moved. nil
// means that none of these does, or that they could not be looked at.
func (p *Provider) inTheWay(ctx context.Context, req gitprovider.CommitRequest, cause error) error {
	repo := req.Snapshot.Repo
	var base, ours map[string]string
	err := together(
		func() (err error) {
			base, err = p.heads(ctx, repo, req.Snapshot.Base)
			return err
		},
		func() (err error) {
			ours, err = p.heads(ctx, repo, strings.TrimSuffix(gitprovider.BranchPrefix, "/"))
			return err
		},
	)
	if err == nil && base[req.Snapshot.Base] != req.Snapshot.BaseCommit {
		return baseMoved(req, cause)
	}
	for branch := range ours {
		if branch == req.Branch || strings.HasPrefix(branch, req.Branch+"/") || strings.HasPrefix(req.Branch, branch+"/") {
			return fault.Wrap(cause, fault.Conflict, "the branch %s cannot be made in %s because the branch %s exists; choose "+
				"another title, or have that branch removed", req.Branch, repo, branch)
		}
	}
	if strings.Contains(saidBy(cause), lockPhrase) {
		return fault.Wrap(cause, fault.Conflict, "the branch %s could not be made in %s: somebody changed a branch at the same "+
			"moment; try again", req.Branch, repo)
	}
	return nil
}

// lockPhrase is git's own, which the server passes on. It counts only when looking has shown nothing: whoever was in the
// way may be gone again.
const lockPhrase = "cannot lock ref"

func baseMoved(req gitprovider.CommitRequest, cause error) error {
	return fault.Wrap(cause, fault.Conflict, "the base branch %s of %s has moved since it was read; look at it again, and "+
		"propose against what is there now", req.Snapshot.Base, req.Snapshot.Repo)
}

// undo removes the branch that was just made wrongly. If that fails, the branch is there, and the code says so.
func (p *Provider) undo(ctx context.Context, req gitprovider.CommitRequest, commit string, why error) error {
	if err := p.DeleteBranch(context.WithoutCancel(ctx), req.Snapshot.Repo, req.Branch, commit); err != nil {
		return fault.Wrap(why, fault.UpstreamError, "the branch %s of %s was made on another state than was approved, and could "+
			"not be removed again; remove it", req.Branch, req.Snapshot.Repo)
	}
	return why
}
