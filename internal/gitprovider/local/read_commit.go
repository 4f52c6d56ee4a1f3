package local

import (
	"context"
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
