package gitea

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"code.gitea.io/sdk/gitea"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// refsPrefix begins the full names of branches.
const refsPrefix = "refs/heads/"

// BranchTip implements gitprovider.Provider.
func (p *Provider) BranchTip(ctx context.Context, repo gitprovider.RepoRef, branch string) (string, error) {
	tips, err := p.existing(ctx, repo, branch)
	if err != nil {
		return "", p.judge(err, repo, "")
	}
	return tips[branch], nil
}

// existing is heads for one name, with a second look when there is nothing: a missing repository has no branches either,
// and the server words both alike.
func (p *Provider) existing(ctx context.Context, repo gitprovider.RepoRef, branch string) (map[string]string, error) {
	tips, err := p.heads(ctx, repo, branch)
	if err != nil || len(tips) > 0 {
		return tips, err
	}
	_, err = p.repository(ctx, repo)
	return nil, err
}

// heads gives the tips of the branches whose full name begins with the prefix, from git itself: the server's list of
// branches is a copy that lags behind pushes.
func (p *Provider) heads(ctx context.Context, repo gitprovider.RepoRef, prefix string) (map[string]string, error) {
	if gitprovider.CheckBranchName(prefix) != nil {
		return nil, nil // no branch can have such a name
	}
	var refs []gitea.Reference
	_, err := p.get(ctx, p.repoURL(repo, append([]string{"git", "refs", "heads"}, strings.Split(prefix, "/")...)...), nil, &refs)
	if isMissing(err) {
		return nil, nil
	}
	tips := map[string]string{}
	for _, ref := range refs {
		if branch, ok := strings.CutPrefix(ref.Ref, refsPrefix); ok && ref.Object != nil {
			tips[branch] = ref.Object.SHA
		}
	}
	return tips, err
}

// tips gives the tips of those of the branches that exist. A request finds every branch that begins with a name, so that
// a name and the longer ones that begin with it cost one.
func (p *Provider) tips(ctx context.Context, repo gitprovider.RepoRef, branches []string) (map[string]string, error) {
	found := map[string]string{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for _, prefix := range shortest(branches) {
		group.Go(func() error {
			have, err := p.heads(ctx, repo, prefix)
			mu.Lock()
			defer mu.Unlock()
			for branch, tip := range have {
				if slices.Contains(branches, branch) {
					found[branch] = tip
				}
			}
			return err
		})
	}
	return found, group.Wait()
}

// shortest leaves out the names that begin with another one.
func shortest(names []string) []string {
	var out []string
	for _, name := range slices.Sorted(slices.Values(names)) {
		if len(out) == 0 || !strings.HasPrefix(name, out[len(out)-1]) {
			out = append(out, name)
		}
	}
	return out
}

// DeleteBranch implements gitprovider.Provider. Gitea has no deletion that is guarded by a commit: somebody who pushes
// in the moment between the look and the deletion loses the branch, though not the commits, which the server keeps for
// its pull request. Beside the port's codes: repo_not_allowed for a protected branch or an archived repository.
func (p *Provider) DeleteBranch(ctx context.Context, repo gitprovider.RepoRef, branch, tip string) error {
	if err := gitprovider.CheckOurs(branch); err != nil {
		return err
	}
	have, err := p.existing(ctx, repo, branch)
	switch {
	case err != nil:
		return p.judge(err, repo, "")
	case have[branch] == "":
		return nil
	case have[branch] != tip:
		return fault.New(fault.Conflict, "the branch %s of %s has moved since it was made; it stays as it is", branch, repo)
	}
	err = p.removeBranch(ctx, repo, branch)
	if statusIs(err, http.StatusForbidden) {
		if why := p.ruledOut(ctx, repo, branch, err); why != nil {
			return why
		}
	}
	return p.judge(err, repo, "the branch "+branch)
}

// removeBranch deletes a branch. One that is gone is no error.
func (p *Provider) removeBranch(ctx context.Context, repo gitprovider.RepoRef, branch string) error {
	_, _, err := call(ctx, p, func(c *gitea.Client) (bool, *gitea.Response, error) {
		return c.DeleteRepoBranch(repo.Owner, repo.Name, branch)
	})
	if isMissing(err) {
		return nil
	}
	if statusIs(err, http.StatusForbidden) {
		// The server says so as well when somebody deleted it at the same moment.
		if have, lookErr := p.heads(ctx, repo, branch); lookErr == nil && have[branch] == "" {
			return nil
		}
	}
	return err
}
