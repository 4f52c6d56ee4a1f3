package gitea

import (
	"context"
	"net/http"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// append adds a commit to the request's branch. The server takes the branch as it is when the request arrives; the ids
// of the files keep it from a text that somebody has changed since, and the answer says onto which commit it came.
func (w commitWriter) append(ctx context.Context, req gitprovider.CommitRequest) (gitprovider.Commit, error) {
	none, repo := gitprovider.Commit{}, req.Snapshot.Repo
	if err := req.CheckAppend(); err != nil {
		return none, err
	}
	if !isObjectID(req.Snapshot.BaseCommit) {
		return none, fault.New(fault.InvalidArgument, "a commit needs the snapshot that the gates approved")
	}
	body := w.changeFiles(req)
	body.NewBranch = "" // the branch is there
	var made filesChanged
	if err := w.api.post(ctx, w.api.repoURL(repo, "contents"), body, &made); err != nil {
		return none, w.notAppended(ctx, req, err)
	}
	if made.Commit == nil || !isObjectID(made.Commit.SHA) || len(made.Commit.Parents) != 1 ||
		made.Commit.Parents[0] == nil {
		return none, fault.New(fault.UpstreamError, "%s does not say which commit it made on the branch %s of %s",
			w.api.base.Host,
			req.Branch, repo)
	}
	out := gitprovider.Commit{ID: made.Commit.SHA, Branch: req.Branch, Parent: made.Commit.Parents[0].SHA}
	if out.Parent != req.Snapshot.BaseCommit { // what else the branch has now is somebody else's
		return out, nil
	}
	if err := w.verify(ctx, req, made); err != nil {
		return out, err
	}
	w.paths.Appended(req, out.ID)
	return out, nil
}

// notAppended says what a refused commit means. The server words a file that is missing like a branch that is, and
// answers 403 both to those who may not write and to those who came second, so that it is looked where the branch is.
func (w commitWriter) notAppended(ctx context.Context, req gitprovider.CommitRequest, err error) error {
	repo := req.Snapshot.Repo
	if !isMissing(err) && !statusIs(err, http.StatusForbidden, http.StatusConflict, http.StatusUnprocessableEntity) {
		return w.api.toFault(err, repo, "")
	}
	tip, lookErr := w.branches.Tip(ctx, repo, req.Branch)
	switch {
	case fault.CodeOf(lookErr) == fault.NotFound:
		return lookErr
	case lookErr != nil:
		return w.api.toFault(err, repo, "the branch "+req.Branch)
	case tip == "":
		return fault.Wrap(err, fault.NotFound, "the repository %s has no branch %s any more", repo, req.Branch)
	case tip != req.Snapshot.BaseCommit || statusIs(err, http.StatusConflict, http.StatusUnprocessableEntity):
		return fault.Wrap(err, fault.Conflict,
			"%s did not add to the branch %s of %s: somebody has changed it since it was read%s",
			w.api.base.Host, req.Branch, repo, refused(err).said())
	case statusIs(err, http.StatusForbidden):
		if why := w.api.forbiddenByRule(ctx, repo, req.Branch, err); why != nil {
			return why
		}
	}
	return w.api.toFault(err, repo, "the branch "+req.Branch)
}
