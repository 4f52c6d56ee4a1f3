package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Commit implements gitprovider.Provider. Beside the codes of the port: invalid_argument for an empty change set or a
// branch that is not one of ours, no_change for an update that leaves a file as it is, conflict for a file that is not
// there to be updated or deleted, is there although it should be created, or is not a regular file.
func (p *Provider) Commit(ctx context.Context, req gitprovider.CommitRequest) (gitprovider.Commit, error) {
	none := gitprovider.Commit{}
	if err := checkCommit(req); err != nil {
		return none, err
	}
	repo, err := p.openRepository(ctx, req.Snapshot.Repo)
	if err != nil {
		return none, err
	}
	var id string
	err = onceMore(func() error {
		id, err = makeCommit(ctx, p, repo, req)
		return err
	})
	if err != nil {
		return none, err
	}
	if err := repo.createBranch(ctx, req, id); err != nil {
		return none, err
	}
	repo.remember(req, id)
	return gitprovider.Commit{ID: id, Branch: req.Branch}, nil
}

// createBranch makes the commit visible. A failure without a reason that can be seen (somebody else's lock that was
// held too long, a git that was ended) is tried again: the transaction takes effect as a whole or not at all, and what
// it expects guards it.
func (repo *repository) createBranch(ctx context.Context, req gitprovider.CommitRequest, id string) error {
	const attempts = 3
	var err error
	for range attempts {
		t := &transaction{}
		t.verifyBranch(req.Snapshot.Base, req.Snapshot.BaseCommit)
		t.createBranch(req.Branch, id)
		if err = repo.update(ctx, t, "claude-ops: proposed"); err == nil {
			return nil
		}
		if have, lookErr := repo.branches(ctx); lookErr == nil && have.tips[req.Branch] == id {
			return nil // git was ended after it had done its work
		}
		why := repo.whyRefused(ctx, req, err)
		if code := fault.CodeOf(why); code == fault.Conflict || code == fault.RepoNotAllowed || ctx.Err() != nil {
			return why
		}
		if t.leftLock(repo) != "" {
			return err // it was waited for already
		}
	}
	return err
}

// remember keeps what verify has shown, so that opening the pull request need not compare again.
func (repo *repository) remember(req gitprovider.CommitRequest, id string) {
	c := comparison{fork: req.Snapshot.BaseCommit}
	for _, path := range req.Changes.Paths() { // sorted
		c.paths = append(c.paths, path.String())
	}
	repo.comparisons.store(repo.gitDir, pair{req.Snapshot.BaseCommit, id}, c)
}

// checkCommit is CommitRequest.Check, and that git can be asked about the base.
func checkCommit(req gitprovider.CommitRequest) error {
	if err := req.Check(); err != nil {
		return err
	}
	if !isID(req.Snapshot.BaseCommit) || !isBranchName(req.Snapshot.Base) {
		return fault.New(fault.InvalidArgument, "a commit needs the snapshot that the gates approved")
	}
	return nil
}

// makeCommit writes the commit, without a reference, and checks it against the change set.
func makeCommit(ctx context.Context, p *Provider, repo *repository, req gitprovider.CommitRequest) (string, error) {
	if err := repo.checkLayout(ctx); err != nil { // see update
		return "", err
	}
	w, err := repo.workspace(req.Snapshot.BaseCommit, true)
	if err != nil {
		return "", err
	}
	defer w.close()
	o, err := w.openObjects(ctx)
	if err != nil {
		return "", err
	}
	when := req.Time
	if when.IsZero() {
		when = p.now()
	}
	d, problem := draftCommit(o, req, p.author.stamp(when), w.idLen)
	if problem == nil {
		if problem = w.unpack(ctx, d.pack); problem == nil {
			problem = d.verifyCommit(o, req, w.idLen)
		}
	}
	return d.id, o.close(problem)
}

// draft is a commit that is to be written, with what its tree needs.
type draft struct {
	pack     *pack
	base, id string // tree of the base commit, and the new commit
	tree     string // its tree
	body     []byte // of the new commit
}

// draftCommit makes the objects of the commit. Existing files keep their executable bit.
func draftCommit(o *objects, req gitprovider.CommitRequest, stamp string, idLen int) (draft, error) {
	d := draft{pack: &pack{sample: req.Snapshot.BaseCommit}}
	base, err := o.info(req.Snapshot.BaseCommit + "^{tree}")
	if err != nil {
		return d, err
	}
	d.base = base.id
	trees, err := editTree(o, d.base, idLen)
	if err != nil {
		return d, err
	}
	for _, c := range req.Changes.Changes() {
		path := c.Path.String()
		switch {
		case c.Action == gitprovider.ActionDelete:
			err = trees.remove(path)
		case req.Snapshot.Tree[path].Executable:
			err = trees.putFile(path, modeExecutable, d.pack.addObject(packedBlob, "blob", []byte(c.Content)))
		default:
			err = trees.putFile(path, modeFile, d.pack.addObject(packedBlob, "blob", []byte(c.Content)))
		}
		if err != nil {
			return d, err
		}
	}
	if d.tree, err = trees.packTrees(d.pack); err != nil {
		return d, err
	}
	d.body = fmt.Appendf(nil, "tree %s\nparent %s\nauthor %s\ncommitter %s\n\n%s\n", d.tree, req.Snapshot.BaseCommit,
		stamp, stamp,
		strings.TrimRight(req.Message, "\n"))
	d.id = d.pack.addObject(packedCommit, "commit", d.body)
	return d, nil
}

// unpack has git write the objects of a pack, each checked against its hash and flushed to disk.
func (w *workspace) unpack(ctx context.Context, p *pack) error {
	raw, err := p.bytes()
	if err != nil {
		return fault.From(err)
	}
	_, _, err = w.runGit(ctx, bytes.NewReader(raw), nil, "unpack-objects", "-q")
	return err
}

// whyRefused explains why git did not create the branch, by looking.
func (repo *repository) whyRefused(ctx context.Context, req gitprovider.CommitRequest, cause error) error {
	have, err := repo.branches(ctx)
	if err != nil {
		return cause
	}
	if have.tips[req.Snapshot.Base] != req.Snapshot.BaseCommit {
		return fault.Wrap(cause, fault.Conflict,
			"the base branch %s has moved since it was read; look at it again, and propose against what is there now",
			req.Snapshot.Base)
	}
	for branch := range have.tips {
		if above := gitprovider.BranchAbove(repo.ref, branch, cause); above != nil {
			return above
		}
		if branch == req.Branch || strings.HasPrefix(branch, req.Branch+"/") || strings.HasPrefix(req.Branch, branch+"/") {
			return fault.Wrap(cause, fault.Conflict,
				"the branch %s cannot be created because the branch %s exists; choose another title, or have that branch removed",
				req.Branch, branch)
		}
	}
	return cause
}

// identity is an author or committer.
type identity struct{ name, email string }

// newIdentity takes out what would end the field in a commit's header: angle brackets, line ends, NUL.
func newIdentity(name, email string) identity {
	clean := func(s string) string {
		return strings.TrimSpace(strings.Map(func(r rune) rune {
			if r < ' ' || r == '<' || r == '>' || r == 0x7f {
				return -1
			}
			return r
		}, s))
	}
	return identity{clean(name), clean(email)}
}

// stamp returns the identity with a time, in the raw form of commit headers.
func (i identity) stamp(t time.Time) string {
	return fmt.Sprintf("%s <%s> %d +0000", i.name, i.email, t.Unix())
}

// environ gives the variables by which git takes the identity; role is AUTHOR or COMMITTER.
func (i identity) environ(role string) []string {
	return []string{"GIT_" + role + "_NAME=" + i.name, "GIT_" + role + "_EMAIL=" + i.email}
}

// difference describes how a file differs between two trees, in the terms of git diff-tree --raw.
type difference struct {
	oldMode, newMode string
	newID            string
	status           string // A, M, D or T
}

// verifyCommit reads the new commit back from the repository and holds it against the change set: every approved file
// differs from the base in the approved way, in bytes and mode, and no other file differs. Only then may a reference
// point to the commit.
func (d draft) verifyCommit(o *objects, req gitprovider.CommitRequest, idLen int) error {
	body, err := o.contents(d.id)
	if err != nil {
		return err
	}
	if !bytes.Equal(body, d.body) {
		return fault.Wrap(fmt.Errorf("commit %s is not what was written", d.id), fault.Internal,
			"git has another commit than was written")
	}
	c := treeComparison{o, idLen, map[string]difference{}}
	if err := c.compareTrees("", d.base, d.tree); err != nil {
		return err
	}
	for _, change := range req.Changes.Changes() {
		path := change.Path.String()
		if err := checkDifference(change, c.found[path], d.id); err != nil {
			return err
		}
		if change.Action != gitprovider.ActionDelete {
			if blob, err := o.info(c.found[path].newID); err != nil || blob.kind != "blob" ||
				blob.size != int64(len(change.Content)) {
				return cmp.Or(err, fmt.Errorf("%s is %+v", path, blob))
			}
		}
		delete(c.found, path)
	}
	for path := range c.found {
		return fault.Wrap(fmt.Errorf("%q differs as well", path), fault.Internal,
			"the commit would have changed a file that nobody approved, so it was not made")
	}
	return nil
}

// treeComparison finds the files in which two trees differ, by reading both.
type treeComparison struct {
	objects *objects
	idLen   int
	found   map[string]difference // by path
}

// compareTrees compares two trees; "" is an empty one.
func (c treeComparison) compareTrees(dir, before, after string) error {
	was, err := c.entries(before)
	if err != nil {
		return err
	}
	is, err := c.entries(after)
	if err != nil {
		return err
	}
	names := maps.Collect(maps.All(was))
	maps.Copy(names, is)
	for name := range names {
		if err := c.compareEntry(join(dir, name), was[name], is[name]); err != nil {
			return err
		}
	}
	return nil
}

// compareEntry compares what two trees have under one name.
func (c treeComparison) compareEntry(path string, was, is treeEntry) error {
	if was.id == is.id && canonicalMode(was.mode) == canonicalMode(is.mode) {
		return nil
	}
	if was.isFolder() || is.isFolder() {
		before, after := "", ""
		if was.isFolder() {
			before, was = was.id, treeEntry{}
		}
		if is.isFolder() {
			after, is = is.id, treeEntry{}
		}
		if err := c.compareTrees(path, before, after); err != nil {
			return err
		}
	}
	d := difference{oldMode: canonicalMode(was.mode), newMode: canonicalMode(is.mode), newID: is.id}
	switch {
	case was.id == "" && is.id == "":
		return nil
	case was.id == "":
		d.status = "A"
	case is.id == "":
		d.status = "D"
	case d.oldMode[:3] != d.newMode[:3]:
		d.status = "T"
	default:
		d.status = "M"
	}
	c.found[path] = d
	return nil
}

func (c treeComparison) entries(tree string) (map[string]treeEntry, error) {
	if tree == "" {
		return nil, nil
	}
	return readEntries(c.objects, tree, c.idLen)
}

// checkDifference compares one approved change with what the commit does to the file. sample is any object id.
func checkDifference(c gitprovider.Change, d difference, sample string) error {
	path := c.Path.String()
	blob := gitprovider.BlobID([]byte(c.Content), sample)
	switch {
	case c.Action == gitprovider.ActionCreate && (d.status == "M" || d.status == "T" || d.status == ""):
		return fault.New(fault.Conflict, "the file %s exists in the base already; propose an update instead", path)
	case c.Action != gitprovider.ActionCreate && d.status == "A", c.Action == gitprovider.ActionDelete && d.status == "":
		return fault.New(fault.Conflict, "there is no file %s in the base; check the path, or create it", path)
	case c.Action == gitprovider.ActionUpdate && d.status == "":
		return fault.New(fault.NoChange, "the file %s has this content in the base already; leave it out", path)
	case d.status == "T" || d.status == "D" && !strings.HasPrefix(d.oldMode, "100"):
		return fault.New(fault.Conflict, "%s is not a regular file in the base; leave it to a person", path)
	}
	asApproved := false
	switch c.Action {
	case gitprovider.ActionCreate:
		asApproved = d.status == "A" && d.newMode == "100644" && d.newID == blob
	case gitprovider.ActionUpdate:
		asApproved = d.status == "M" && d.newMode == d.oldMode && d.newID == blob
	case gitprovider.ActionDelete:
		asApproved = d.status == "D"
	}
	if !asApproved {
		return fault.Wrap(fmt.Errorf("%s %q became %+v", c.Action, path, d), fault.Internal,
			"the commit would have changed a file otherwise than approved, so it was not made")
	}
	return nil
}

// ReadCommit implements gitprovider.Settler.
func (p *Provider) ReadCommit(ctx context.Context, ref gitprovider.RepoRef, id string) (gitprovider.CommitInfo, error) {
	none := gitprovider.CommitInfo{}
	missing := fault.New(fault.NotFound, "the repository %s has no commit %.100q", ref, id)
	repo, err := p.openRepository(ctx, ref)
	if err != nil {
		return none, err
	}
	if !isID(id) {
		return none, missing
	}
	w, err := repo.workspace(id, false)
	if err != nil {
		return none, err
	}
	defer w.close()
	if _, code, err := w.runGit(ctx, nil, []int{1, 128}, "cat-file", "-e", id+"^{commit}"); err != nil || code != 0 {
		if err == nil {
			err = missing
		}
		return none, err
	}
	out, _, err := w.runGit(ctx, nil, nil, "show", "--no-patch", "--no-show-signature", "--format=%H%n%P%n%ct%n%an%n%B",
		id)
	if err != nil {
		return none, err
	}
	info, err := parseCommit(string(out))
	if err != nil {
		return none, err
	}
	out, _, err = w.runGit(ctx, nil, nil, "diff-tree", "--root", "-r", "-z", "-m", "--first-parent", "--no-commit-id",
		"--name-only",
		"--no-renames", id)
	if err != nil {
		return none, err
	}
	info.Paths = splitZ(out)
	slices.Sort(info.Paths)
	return info, nil
}

// parseCommit reads id, parents, seconds, author and message, each on a line of its own but the last.
func parseCommit(text string) (gitprovider.CommitInfo, error) {
	parts := strings.SplitN(text, "\n", 5)
	if len(parts) == 5 {
		if seconds, err := strconv.ParseInt(parts[2], 10, 64); err == nil {
			return gitprovider.CommitInfo{
				ID: parts[0], Parents: strings.Fields(parts[1]), Time: time.Unix(seconds, 0).UTC(),
				Author: parts[3], Message: strings.TrimRight(parts[4], "\n") + "\n",
			}, nil
		}
	}
	return gitprovider.CommitInfo{}, fault.New(fault.Internal, "git answered something else than a commit")
}

// ReadBlob implements gitprovider.BlobReader.
func (p *Provider) ReadBlob(ctx context.Context, ref gitprovider.RepoRef, id string) ([]byte, error) {
	repo, err := p.openRepository(ctx, ref)
	if err != nil {
		return nil, err
	}
	missing := fault.New(fault.NotFound, "the repository %s has no blob %.12q", ref, id)
	if !isID(id) {
		return nil, missing
	}
	w, err := repo.workspace(id, false)
	if err != nil {
		return nil, err
	}
	defer w.close()
	o, err := w.openObjects(ctx)
	if err != nil {
		return nil, err
	}
	content, err := o.blob(id)
	if errors.Is(err, errMissing) {
		err = missing
	}
	return content, o.close(err)
}

// blob reads a blob of at most MaxContentRead bytes; errMissing for what is none.
func (o *objects) blob(id string) ([]byte, error) {
	obj, err := o.info(id)
	switch {
	case err != nil:
		return nil, err
	case obj.kind != "blob":
		return nil, errMissing
	case obj.size > gitprovider.MaxContentRead:
		return nil, gitprovider.BlobTooLarge(id)
	}
	return o.contents(id)
}
