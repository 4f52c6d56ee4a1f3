package gitea

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// refsPrefix begins the full names of branches.
const refsPrefix = "refs/heads/"

// branches reads and removes branches.
type branches struct{ api *api }

// Tip implements forge.Branches.
func (b branches) Tip(ctx context.Context, repo gitprovider.RepoRef, branch string) (string, error) {
	tips, err := b.existing(ctx, repo, branch)
	return tips[branch], b.api.toFault(err, repo, "")
}

// Remove implements forge.Branches. Gitea has no deletion that is guarded by a commit: somebody who pushes in the
// moment between the look and the deletion loses the branch, though not the commits, which the server keeps for its
// pull request.
func (b branches) Remove(ctx context.Context, repo gitprovider.RepoRef, branch, _ string) error {
	_, err := callSDK(ctx, b.api, func(c *gitea.Client) (bool, *gitea.Response, error) {
		return c.DeleteRepoBranch(repo.Owner, repo.Name, branch)
	})
	if statusIs(err, http.StatusForbidden) {
		if why := b.api.forbiddenByRule(ctx, repo, branch, err); why != nil {
			return why
		}
	}
	return b.api.toFault(err, repo, "the branch "+branch)
}

// existing is heads with a second look when the result is empty: a missing repository has no branches either, and the
// server answers both alike.
func (b branches) existing(ctx context.Context, repo gitprovider.RepoRef, prefix string) (map[string]string, error) {
	tips, err := b.heads(ctx, repo, prefix)
	if err != nil || len(tips) > 0 {
		return tips, err
	}
	_, err = b.api.readRepository(ctx, repo)
	return nil, err
}

// heads gives the tips of the branches whose full name begins with the prefix, from git itself: the server's list of
// branches is a copy that lags behind pushes.
func (b branches) heads(ctx context.Context, repo gitprovider.RepoRef, prefix string) (map[string]string, error) {
	if gitprovider.CheckBranchName(prefix) != nil {
		return nil, nil // no branch can have such a name
	}
	var refs []gitea.Reference
	at := b.api.repoURL(repo, append([]string{"git", "refs", "heads"}, strings.Split(prefix, "/")...)...)
	_, err := b.api.get(ctx, at, nil, &refs)
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

// ours gives the tips of the branches below BranchPrefix.
func (b branches) ours(ctx context.Context, repo gitprovider.RepoRef) (map[string]string, error) {
	tips, err := b.existing(ctx, repo, strings.TrimSuffix(gitprovider.BranchPrefix, "/"))
	out := map[string]string{}
	for branch, tip := range tips {
		if strings.HasPrefix(branch, gitprovider.BranchPrefix) {
			out[branch] = tip
		}
	}
	return out, err
}

// tips gives the tips of those of the branches that exist. A request finds every branch that begins with a name, so
// that a name and the longer ones that begin with it cost one.
func (b branches) tips(ctx context.Context, repo gitprovider.RepoRef, names []string) (map[string]string, error) {
	found := map[string]string{}
	var mu sync.Mutex
	err := forge.Each(ctx, shortest(names), func(ctx context.Context, _ int, prefix string) error {
		have, err := b.heads(ctx, repo, prefix)
		mu.Lock()
		defer mu.Unlock()
		for branch, tip := range have {
			if slices.Contains(names, branch) {
				found[branch] = tip
			}
		}
		return err
	})
	return found, err
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

// commit asks for a branch by its name, which is found with plain slashes.
func (b branches) commit(ctx context.Context, repo gitprovider.RepoRef, branch string) (string, error) {
	from, err := b.fetchBranch(ctx, repo, branch)
	if err != nil {
		return "", err
	}
	if from.Commit == nil || !isObjectID(from.Commit.ID) {
		return "", fault.New(fault.UpstreamError, "%s does not say which commit the branch %s of %s is at", b.api.base.Host,
			branch, repo)
	}
	return from.Commit.ID, nil
}

func (b branches) fetchBranch(ctx context.Context, repo gitprovider.RepoRef, branch string) (*gitea.Branch, error) {
	return callSDK(ctx, b.api, func(c *gitea.Client) (*gitea.Branch, *gitea.Response, error) {
		return c.GetRepoBranch(repo.Owner, repo.Name, branch)
	})
}
