package gitea

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// commitWriter makes branches with a commit on them.
type commitWriter struct {
	api      *api
	branches branches
	trees    trees
	paths    *forge.Paths
	fresh    *freshBranches
	now      func() time.Time
}

// filesChanged is the answer to a change of files, of which the SDK reads no list.
type filesChanged struct {
	Files  []*gitea.ContentsResponse `json:"files"` // null for a deleted file; the first 30 alone
	Commit *gitea.FileCommitResponse `json:"commit"`
}

func (w commitWriter) commit(ctx context.Context, req gitprovider.CommitRequest) (string, error) {
	if err := req.Check(); err != nil {
		return "", err
	}
	if !isObjectID(req.Snapshot.BaseCommit) {
		return "", fault.New(fault.InvalidArgument, "a commit needs the snapshot that the gates approved")
	}
	repo := req.Snapshot.Repo
	var made filesChanged
	if err := w.api.post(ctx, w.api.repoURL(repo, "contents"), w.changeFiles(req), &made); err != nil {
		return "", w.toFault(ctx, req, err)
	}
	if made.Commit == nil || !isObjectID(made.Commit.SHA) {
		return "", fault.New(fault.UpstreamError, "%s does not say which commit it made on the branch %s of %s",
			w.api.base.Host,
			req.Branch, repo)
	}
	id := made.Commit.SHA
	if err := w.verify(ctx, req, made); err != nil {
		return "", forge.Undo(ctx, w.branches, req, id, err)
	}
	w.fresh.add(repo, req.Branch)
	w.paths.Committed(req, versionOf(req.Snapshot.BaseCommit, id))
	return id, nil
}

// changeFiles returns the request. Both dates are always sent: without, some versions date the commit 2001-01-01
// (go-gitea/gitea#35860).
func (w commitWriter) changeFiles(req gitprovider.CommitRequest) gitea.ChangeFilesOptions {
	when := req.Time
	if when.IsZero() {
		when = w.now()
	}
	when = when.UTC().Truncate(time.Second)
	body := gitea.ChangeFilesOptions{
		Branch: req.Snapshot.Base, NewBranch: req.Branch, Message: req.Message,
		Dates: gitea.CommitDateOptions{Author: when, Committer: when},
	}
	for _, c := range req.Changes.Changes() {
		body.Files = append(body.Files, &gitea.ChangeFileOperation{
			Operation: string(c.Action), // the port's words are the API's
			Path:      c.Path.String(),
			Content:   base64.StdEncoding.EncodeToString([]byte(c.Content)),
			SHA:       req.Snapshot.Tree[c.Path.String()].ID, // without, the server does not check what is replaced
		})
	}
	return body
}

// toFault says what a refused commit means. The server answers 403 both to those who may not write and to those who
// came second (cannot lock ref), so at a 403 it is looked what is there.
func (w commitWriter) toFault(ctx context.Context, req gitprovider.CommitRequest, err error) error {
	repo := req.Snapshot.Repo
	switch {
	case isMissing(err):
		return w.api.toFault(err, repo, "the base branch "+req.Snapshot.Base)
	case statusIs(err, http.StatusConflict, http.StatusUnprocessableEntity):
		return fault.Wrap(err, fault.Conflict,
			"%s did not make the branch %s in %s: it exists already, or the base branch %s "+
				"has moved since it was read%s", w.api.base.Host, req.Branch, repo, req.Snapshot.Base, refused(err).said())
	case statusIs(err, http.StatusForbidden):
		if why := w.conflictingBranch(ctx, req, err); why != nil {
			return why
		}
		if why := w.api.forbiddenByRule(ctx, repo, req.Branch, err); why != nil {
			return why
		}
	}
	return w.api.toFault(err, repo, "")
}

// conflictingBranch looks for what keeps a branch from being made: itself, one above or below it, or a base that has
// moved. nil means that none of these does, or that they could not be looked at.
func (w commitWriter) conflictingBranch(ctx context.Context, req gitprovider.CommitRequest, cause error) error {
	repo := req.Snapshot.Repo
	heads := func(prefix string) func() (map[string]string, error) {
		return func() (map[string]string, error) { return w.branches.heads(ctx, repo, prefix) }
	}
	var base, ours map[string]string
	err := forge.Together(
		forge.Into(&base, heads(req.Snapshot.Base)),
		forge.Into(&ours, heads(strings.TrimSuffix(gitprovider.BranchPrefix, "/"))),
	)
	if err == nil && base[req.Snapshot.Base] != req.Snapshot.BaseCommit {
		return forge.BaseMoved(req.Snapshot, cause)
	}
	for branch := range ours {
		if above := gitprovider.BranchAbove(repo, branch, cause); above != nil {
			return above
		}
		if branch == req.Branch || strings.HasPrefix(branch, req.Branch+"/") || strings.HasPrefix(req.Branch, branch+"/") {
			return fault.Wrap(cause, fault.Conflict, "the branch %s cannot be made in %s because the branch %s exists; choose "+
				"another title, or have that branch removed", req.Branch, repo, branch)
		}
	}
	// The text is git's own, which the server passes on. It is used only if the check above found nothing: the conflicting
	// branch may be gone again.
	if strings.Contains(refused(cause).message, "cannot lock ref") {
		return fault.Wrap(cause, fault.Conflict,
			"the branch %s could not be made in %s: somebody changed a branch at the same "+
				"moment; try again", req.Branch, repo)
	}
	return nil
}
