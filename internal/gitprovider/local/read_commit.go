package local

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// ReadCommit implements gitprovider.Settler.
func (p *Provider) ReadCommit(ctx context.Context, ref gitprovider.RepoRef, id string) (gitprovider.CommitInfo, error) {
	none := gitprovider.CommitInfo{}
	missing := fault.New(fault.NotFound, "the repository %s has no commit %.100q", ref, id)
	repo, err := p.open(ctx, ref)
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
	if _, code, err := w.run(ctx, nil, []int{1, 128}, "cat-file", "-e", id+"^{commit}"); err != nil || code != 0 {
		if err == nil {
			err = missing
		}
		return none, err
	}
	out, _, err := w.run(ctx, nil, nil, "show", "--no-patch", "--no-show-signature", "--format=%H%n%P%n%ct%n%an%n%B", id)
	if err != nil {
		return none, err
	}
	info, err := parseCommit(string(out))
	if err != nil {
		return none, err
	}
	out, _, err = w.run(ctx, nil, nil, "diff-tree", "--root", "-r", "-z", "-m", "--first-parent", "--no-commit-id",
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
	repo, err := p.open(ctx, ref)
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
	o, err := w.open(ctx)
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
