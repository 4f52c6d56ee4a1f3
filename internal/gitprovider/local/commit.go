package local

import (
	"bytes"
	"context"
	"fmt"
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
	repo, err := p.open(ctx, req.Snapshot.Repo)
	if err != nil {
		return none, err
	}
	id, err := makeCommit(ctx, p, repo, req)
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
		t.verify(req.Snapshot.Base, req.Snapshot.BaseCommit)
		t.create(req.Branch, id)
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
	repo.comparisons.put(repo.gitDir, pair{req.Snapshot.BaseCommit, id}, c)
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
	o, err := w.open(ctx)
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
			problem = d.verify(o, req, w.idLen)
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
			err = trees.put(path, modeExecutable, d.pack.add(packedBlob, "blob", []byte(c.Content)))
		default:
			err = trees.put(path, modeFile, d.pack.add(packedBlob, "blob", []byte(c.Content)))
		}
		if err != nil {
			return d, err
		}
	}
	if d.tree, err = trees.write(d.pack); err != nil {
		return d, err
	}
	d.body = fmt.Appendf(nil, "tree %s\nparent %s\nauthor %s\ncommitter %s\n\n%s\n", d.tree, req.Snapshot.BaseCommit,
		stamp, stamp,
		strings.TrimRight(req.Message, "\n"))
	d.id = d.pack.add(packedCommit, "commit", d.body)
	return d, nil
}

// unpack has git write the objects of a pack, each checked against its hash and flushed to disk.
func (w *workspace) unpack(ctx context.Context, p *pack) error {
	raw, err := p.bytes()
	if err != nil {
		return fault.From(err)
	}
	_, _, err = w.run(ctx, bytes.NewReader(raw), nil, "unpack-objects", "-q")
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
