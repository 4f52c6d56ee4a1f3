package local

import (
	"context"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Snapshot implements gitprovider.Provider. It changes nothing in the repository; like every look at pull requests it
// may bring their records up to date (see Provider). DefaultBranch is the branch that HEAD names, which in an ordinary
// repository is the one that is checked out; "" if there is no such branch.
func (p *Provider) Snapshot(ctx context.Context, q gitprovider.SnapshotQuery) (*gitprovider.Snapshot, error) {
	if q.FilesOnly {
		return p.files(ctx, q)
	}
	repo, seen, err := p.openPulls(ctx, q.Repo)
	if err != nil {
		return nil, err
	}
	base, err := repo.baseBranch(ctx, seen.branches, q.Base)
	if err != nil {
		return nil, err
	}
	snap := &gitprovider.Snapshot{
		Repo: repo.ref, URL: repo.url(), DefaultBranch: repo.defaultBranch(seen.branches), Base: base,
		BaseCommit: seen.branches.tips[base],
		Tips:       map[string]string{},
	}
	for _, pr := range seen.open {
		switch {
		case gitprovider.MayBeOurs(pr):
			snap.Open = append(snap.Open, pr)
		case q.Foreign && pr.Base == base:
			snap.Foreign = append(snap.Foreign, pr)
		}
	}
	for _, branch := range q.Branches {
		if tip, exists := seen.branches.tips[branch]; exists {
			snap.Tips[branch] = tip
		}
	}
	if snap.Closed, err = p.pulls.closedSince(ctx, repo, q.ClosedSince); err != nil {
		return nil, err
	}
	return snap, repo.readFiles(ctx, snap, q)
}

// files is Snapshot of a branch without its pull requests.
func (p *Provider) files(ctx context.Context, q gitprovider.SnapshotQuery) (*gitprovider.Snapshot, error) {
	repo, err := p.open(ctx, q.Repo)
	if err != nil {
		return nil, err
	}
	have, err := repo.branches(ctx)
	if err != nil {
		return nil, err
	}
	branch, err := repo.baseBranch(ctx, have, q.Base)
	if err != nil {
		return nil, err
	}
	snap := &gitprovider.Snapshot{Repo: repo.ref, Base: branch, BaseCommit: have.tips[branch]}
	return snap, repo.readFiles(ctx, snap, q)
}

// readFiles fills in the tree, and the contents if they are wanted.
func (repo *repository) readFiles(ctx context.Context, snap *gitprovider.Snapshot,
	q gitprovider.SnapshotQuery) error {
	w, err := repo.workspace(snap.BaseCommit, false)
	if err != nil {
		return err
	}
	defer w.close()
	o, err := w.open(ctx)
	if err != nil {
		return err
	}
	snap.Tree, err = readTrees(o, snap.BaseCommit, q.Paths, w.idLen)
	if err == nil && q.Contents {
		snap.Contents, err = readContents(o, snap.Tree, q.Paths)
	}
	return o.close(err)
}

// ListFiles implements gitprovider.FileLister.
func (p *Provider) ListFiles(ctx context.Context, at *gitprovider.Snapshot, folder string) ([]gitprovider.ListedFile,
	bool, error) {
	repo, err := p.open(ctx, at.Repo)
	if err != nil {
		return nil, false, err
	}
	id, prefix := at.BaseCommit, ""
	if folder != "" {
		id, prefix = at.Tree[folder].ID, folder+"/"
	}
	if !isID(id) {
		return nil, false, fault.New(fault.NotFound, "there is no folder %.200q in %s", folder, repo.ref)
	}
	w, err := repo.workspace(id, false)
	if err != nil {
		return nil, false, err
	}
	defer w.close()
	out, _, err := w.run(ctx, nil, nil, "ls-tree", "-r", "-l", "-z", "--full-tree", id)
	if err != nil {
		return nil, false, err
	}
	var files []gitprovider.ListedFile
	for _, line := range splitZ(out) { // <mode> blob <id> <size>TAB<path>
		about, path, _ := strings.Cut(line, "\t")
		fields := strings.Fields(about)
		if len(fields) != 4 || newEntry(fields[0], fields[2]).Kind != gitprovider.KindFile {
			continue
		}
		size, err := strconv.ParseInt(fields[3], 10, 64)
		if err != nil {
			return nil, false, fault.New(fault.Internal, "git answered something else than a list of files")
		}
		files = append(files, gitprovider.ListedFile{Path: prefix + path, ID: fields[2], Size: size})
	}
	sorted, complete := gitprovider.SortListed(files)
	return sorted, complete, nil
}
