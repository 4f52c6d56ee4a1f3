package gitea

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Lateness implements gitprovider.Settler.
func (p *Provider) Lateness() time.Duration { return gitprovider.ForgeLateness }

// OurBranches implements gitprovider.Settler. It costs a request, and one more where there are none.
func (p *Provider) OurBranches(ctx context.Context, repo gitprovider.RepoRef) (map[string]string, error) {
	tips, err := p.existing(ctx, repo, strings.TrimSuffix(gitprovider.BranchPrefix, "/"))
	if err != nil {
		return nil, p.judge(err, repo, "")
	}
	out := map[string]string{}
	for branch, tip := range tips {
		if strings.HasPrefix(branch, gitprovider.BranchPrefix) {
			out[branch] = tip
		}
	}
	return out, nil
}

// commitInfo is the answer to GET git/commits, as far as it is read.
type commitInfo struct {
	SHA    string `json:"sha"`
	Commit struct {
		Message   string `json:"message"`
		Committer struct {
			Date time.Time `json:"date"`
		} `json:"committer"`
	} `json:"commit"`
	Parents []struct {
		SHA string `json:"sha"`
	} `json:"parents"`
}

// ReadCommit implements gitprovider.Settler with one request, and one for each page of the two trees.
func (p *Provider) ReadCommit(ctx context.Context, repo gitprovider.RepoRef, id string) (gitprovider.CommitInfo, error) {
	none := gitprovider.CommitInfo{}
	if !isObjectID(id) {
		return none, fault.New(fault.NotFound, "the repository %s has no commit %.100q", repo, id)
	}
	var from commitInfo
	query := url.Values{"stat": {"false"}, "verification": {"false"}, "files": {"false"}}
	if _, err := p.get(ctx, p.repoURL(repo, "git", "commits", id), query, &from); err != nil {
		return none, p.judge(err, repo, "the commit "+id)
	}
	if from.SHA != id {
		return none, fault.New(fault.UpstreamError, "%s gave something else for the commit %s of %s", p.base.Host, id, repo)
	}
	info := gitprovider.CommitInfo{ID: from.SHA, Message: from.Commit.Message, Time: from.Commit.Committer.Date.UTC()}
	for _, parent := range from.Parents {
		info.Parents = append(info.Parents, parent.SHA)
	}
	parent := ""
	if len(info.Parents) > 0 {
		parent = info.Parents[0]
	}
	paths, err := p.differing(ctx, repo, parent, id)
	info.Paths = paths
	return info, err
}

// differing gives the paths in which two commits differ, sorted; parent "" stands for nothing. The trees are compared here: the
// list of files that Gitea has of a commit leaves out files that turn into symbolic links, and the like.
func (p *Provider) differing(ctx context.Context, repo gitprovider.RepoRef, parent, commit string) ([]string, error) {
	var before, after fileTree
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		after, err = p.pagedTree(ctx, repo, commit)
		return err
	})
	if parent != "" {
		group.Go(func() (err error) {
			before, err = p.pagedTree(ctx, repo, parent)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return before.changedIn(after), nil
}

// Withdraw implements gitprovider.Settler: it looks, and then closes and writes the body in one request.
func (p *Provider) Withdraw(ctx context.Context, repo gitprovider.RepoRef, w gitprovider.Withdrawal) error {
	at := []string{"pulls", strconv.Itoa(w.Number)}
	var from gitea.PullRequest
	if _, err := p.get(ctx, p.repoURL(repo, at...), nil, &from); err != nil {
		return p.judge(err, repo, pullName(w.Number))
	}
	if err := w.Check(pullRequest(&from, p.now())); err != nil {
		return err
	}
	change := map[string]string{"body": w.Body}
	if from.State == gitea.StateOpen {
		change["state"] = string(gitea.StateClosed)
	}
	body, err := json.Marshal(change)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "a request to Gitea could not be encoded")
	}
	_, err = p.exchange(ctx, http.MethodPatch, p.repoURL(repo, at...), body, nil)
	return p.judge(err, repo, pullName(w.Number))
}

// OpenOurs implements gitprovider.Settler.
func (p *Provider) OpenOurs(ctx context.Context, repo gitprovider.RepoRef, below int) ([]gitprovider.PullRequest, error) {
	open, err := p.openPulls(ctx, repo)
	if err != nil {
		return nil, p.judge(err, repo, "")
	}
	open = slices.DeleteFunc(open, func(pr *gitea.PullRequest) bool {
		return int(pr.Index) >= below || headGone(pr) || !gitprovider.MayBeOurs(pullRequest(pr, p.now()))
	})
	prs, err := p.withPaths(ctx, repo, open)
	return prs, p.judge(err, repo, "")
}
