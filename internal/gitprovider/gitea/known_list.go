package gitea

import (
	"context"
	"slices"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// listKnown is openOf without files that would cost a request.
func (p pulls) listKnown(ctx context.Context, repo gitprovider.RepoRef, wanted func(gitprovider.PullRequest) bool) (
	out gitprovider.KnownList, err error) {
	all, err := p.open(ctx, repo)
	if err != nil {
		return out, err
	}
	reviewed := p.reviews.of(ctx, all)
	all = slices.DeleteFunc(all, func(pr *gitea.PullRequest) bool { return headGone(pr) || !wanted(p.convert(pr)) })
	files, end := p.files.batched(ctx, repo, all)
	defer end()
	out.EachReview = true
	for _, pr := range all {
		one := p.convert(pr)
		one.Unreviewed = !reviewed(pr)
		paths, known := files.remembered(ctx, repo, pr)
		if one.Paths = paths; !known {
			out.Unread = append(out.Unread, one.Number)
		}
		out.PRs = append(out.PRs, one)
	}
	out.ReadPaths = func(ctx context.Context, numbers []int) (map[int][]string, error) {
		some := slices.DeleteFunc(slices.Clone(all),
			func(pr *gitea.PullRequest) bool { return !slices.Contains(numbers, int(pr.Index)) })
		paths, err := p.files.readAll(ctx, repo, some)
		found := map[int][]string{}
		for i, pr := range some {
			if err == nil {
				found[int(pr.Index)] = paths[i]
			}
		}
		return found, err
	}
	return out, nil
}
