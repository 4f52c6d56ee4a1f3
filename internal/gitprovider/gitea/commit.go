package gitea

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"net/http"
	"slices"
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
	if err := w.verifyCommit(ctx, req, made); err != nil {
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
				"has moved since it was read%s", w.api.base.Host, req.Branch, repo, req.Snapshot.Base,
			asRefusal(err).messageSuffix())
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
	if strings.Contains(asRefusal(cause).message, "cannot lock ref") {
		return fault.Wrap(cause, fault.Conflict,
			"the branch %s could not be made in %s: somebody changed a branch at the same "+
				"moment; try again", req.Branch, repo)
	}
	return nil
}

// verifyCommit demands that the commit is on the base that the gates saw and holds exactly the approved change. The
// server rewrites odd paths, filters contents (Git LFS) and takes the base as it is when the request arrives, all
// silently.
//
// The best proof costs no request: the id of the root tree follows from the snapshot and the change. Where it differs
// (git keeps file modes from long ago that a snapshot does not show) the files that the answer lists decide, and, since
// it lists 30 at most, the commit's own tree.
func (w commitWriter) verifyCommit(ctx context.Context, req gitprovider.CommitRequest, made filesChanged) error {
	if len(made.Commit.Parents) != 1 || made.Commit.Parents[0] == nil ||
		made.Commit.Parents[0].SHA != req.Snapshot.BaseCommit {
		return forge.BaseMoved(req.Snapshot, nil)
	}
	expected := expectedTree(req)
	if made.Commit.Tree != nil && made.Commit.Tree.SHA == treeID(expected, req.Snapshot.BaseCommit) {
		return nil
	}
	if listsExactly(req, made) {
		return nil
	}
	got, err := w.trees.commit(ctx, req.Snapshot.Repo, made.Commit.SHA, req.Changes.Paths())
	if err != nil {
		return w.api.toFault(err, req.Snapshot.Repo, "")
	}
	if path := firstDifference(expected, got.tree, foldersOf(req.Changes.Paths())); path != "" {
		return w.otherFiles(req, path)
	}
	return nil
}

// firstDifference names an entry of the folders that differs between what was expected and what there is; "" if none
// does. Of folders only the existence counts: their ids follow from what is in them.
func firstDifference(expected, got gitprovider.Tree, folders map[string]bool) string {
	for path, entry := range expected {
		have, exists := got[path]
		if folders[parentOf(path)] && (!exists || entry.Kind != gitprovider.KindDir && have != entry) {
			return path
		}
	}
	for path := range got {
		if _, exists := expected[path]; !exists {
			return path
		}
	}
	return ""
}

// otherFiles returns a definite refusal: the same call would be answered in the same way.
func (w commitWriter) otherFiles(req gitprovider.CommitRequest, path string) error {
	return fault.New(fault.ContentDenied, "%s wrote other files than were approved (%.200q in %s), as it does where the "+
		"repository filters files, by Git LFS for example; leave that file to a person", w.api.base.Host, path,
		req.Snapshot.Repo)
}

// expectedTree returns the snapshot's tree with the change made: the folders that lead to it, and all that is in them.
// Folders that the change empties are gone; the ids of folders that it touches are empty.
func expectedTree(req gitprovider.CommitRequest) gitprovider.Tree {
	tree := maps.Clone(req.Snapshot.Tree)
	for _, c := range req.Changes.Changes() {
		path := c.Path.String()
		if c.Action == gitprovider.ActionDelete {
			delete(tree, path)
		} else {
			tree[path] = gitprovider.Entry{
				Kind: gitprovider.KindFile, Executable: tree[path].Executable,
				ID: gitprovider.BlobID([]byte(c.Content), req.Snapshot.BaseCommit),
			}
		}
		for _, dir := range c.Path.Ancestors() {
			tree[dir] = gitprovider.Entry{Kind: gitprovider.KindDir}
		}
	}
	dropEmpty(tree)
	return tree
}

// dropEmpty removes touched folders without an entry, the deepest first: git stores no empty folder.
func dropEmpty(tree gitprovider.Tree) {
	paths := slices.Sorted(maps.Keys(tree))
	for _, path := range slices.Backward(paths) {
		if tree[path].Kind == gitprovider.KindDir && tree[path].ID == "" && len(childrenOf(tree, path)) == 0 {
			delete(tree, path)
		}
	}
}

// childrenOf gives the names of a folder's entries.
func childrenOf(tree gitprovider.Tree, dir string) []string {
	var names []string
	for path := range tree {
		if parentOf(path) == dir {
			names = append(names, path[strings.LastIndexByte(path, '/')+1:])
		}
	}
	return names
}

// treeID computes the id of the root folder as git does: the ids of touched folders follow from their entries.
func treeID(tree gitprovider.Tree, sample string) string { return folderID(tree, "", sample) }

func folderID(tree gitprovider.Tree, dir, sample string) string {
	names := childrenOf(tree, dir)
	at := func(name string) gitprovider.Entry { return tree[strings.TrimPrefix(dir+"/"+name, "/")] }
	// git sorts the names of folders as if they ended with a slash.
	key := func(name string) string {
		if at(name).Kind == gitprovider.KindDir {
			return name + "/"
		}
		return name
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(key(a), key(b)) })
	var body []byte
	for _, name := range names {
		entry := at(name)
		id := entry.ID
		if id == "" {
			id = folderID(tree, strings.TrimPrefix(dir+"/"+name, "/"), sample)
		}
		raw, err := hex.DecodeString(id)
		if err != nil {
			return ""
		}
		body = append(body, modeOf(entry)+" "+name+"\x00"...)
		body = append(body, raw...)
	}
	return gitprovider.ObjectID("tree", body, sample)
}

func modeOf(e gitprovider.Entry) string {
	switch {
	case e.Kind == gitprovider.KindDir:
		return "40000"
	case e.Kind == gitprovider.KindSymlink:
		return "120000"
	case e.Kind == gitprovider.KindSubmodule:
		return "160000"
	case e.Executable:
		return "100755"
	}
	return "100644"
}

// listsExactly reports whether the answer lists every file that was written, each with its path and bytes, and no
// other.
func listsExactly(req gitprovider.CommitRequest, made filesChanged) bool {
	wrote := map[string]string{}
	for _, f := range made.Files {
		if f != nil {
			wrote[f.Path] = f.SHA
		}
	}
	want := map[string]string{}
	for _, c := range req.Changes.Changes() {
		if c.Action != gitprovider.ActionDelete {
			want[c.Path.String()] = gitprovider.BlobID([]byte(c.Content), req.Snapshot.BaseCommit)
		}
	}
	return len(made.Files) == req.Changes.Len() && maps.Equal(wrote, want)
}

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
	if err := w.verifyCommit(ctx, req, made); err != nil {
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
			w.api.base.Host, req.Branch, repo, asRefusal(err).messageSuffix())
	case statusIs(err, http.StatusForbidden):
		if why := w.api.forbiddenByRule(ctx, repo, req.Branch, err); why != nil {
			return why
		}
	}
	return w.api.toFault(err, repo, "the branch "+req.Branch)
}
