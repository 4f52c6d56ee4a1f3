package gitea

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/transport"
)

const (
	// labelColor is the color of labels that are made, since the API demands one: a calm blue.
	labelColor = "#1d76db"
	labelAbout = "Set by Claude Ops"
)

// Label implements gitprovider.Provider. One request adds labels by their names; those that are there already stay as
// they are. The server leaves out unknown names without a word, so the answer is compared: what is missing is made first
// if that is allowed (Options.CreateLabels), else it is not_found and named, and the others are set all the same.
//
// A number that belongs to an issue is not told from a pull request.
func (p *Provider) Label(ctx context.Context, repo gitprovider.RepoRef, number int, labels []string) error {
	if err := p.noSuchNumber(repo, number); err != nil {
		return err
	}
	if len(labels) == 0 {
		_, err := p.pull(ctx, repo, number)
		return p.judge(err, repo, pullName(number))
	}
	missing, err := p.addLabels(ctx, repo, number, labels)
	if err != nil || len(missing) == 0 {
		return p.judge(err, repo, pullName(number))
	}
	if !p.createLabels {
		return fault.New(fault.NotFound, "%s has no label %s; define it there, or allow Claude Ops to make labels", repo,
			strings.Join(missing, ", "))
	}
	for _, name := range missing {
		if err := p.createLabel(ctx, repo, name); err != nil {
			return p.judge(err, repo, "")
		}
	}
	missing, err = p.addLabels(ctx, repo, number, missing)
	if err == nil && len(missing) > 0 {
		return fault.New(fault.UpstreamError, "%s did not take the label %s for %s of %s", p.base.Host,
			strings.Join(missing, ", "), pullName(number), repo)
	}
	return p.judge(err, repo, pullName(number))
}

// addLabels returns the names that the pull request does not have afterwards. Versions that take ids alone refuse names
// or fail over them; then the ids are looked up.
func (p *Provider) addLabels(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) ([]string, error) {
	ctx = transport.Repeatable(ctx)
	var have []*gitea.Label
	body := map[string][]string{"labels": names}
	err := p.post(ctx, p.repoURL(repo, "issues", itoa(number), "labels"), body, &have)
	if statusIs(err, http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError) {
		have, err = p.addLabelsByID(ctx, repo, number, names)
	}
	if err != nil {
		return nil, err
	}
	p.labels.add(repo, have)
	return without(names, present(have)), nil
}

func (p *Provider) addLabelsByID(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) ([]*gitea.Label,
	error) {
	defined, err := p.repoLabels(ctx, repo)
	if err != nil {
		return nil, err
	}
	ids := []int64{}
	for _, l := range defined {
		if slices.Contains(names, l.Name) {
			ids = append(ids, l.ID)
		}
	}
	have, _, err := call(ctx, p, func(c *gitea.Client) ([]*gitea.Label, *gitea.Response, error) {
		return c.AddIssueLabels(repo.Owner, repo.Name, int64(number), gitea.IssueLabelsOption{Labels: ids})
	})
	return have, err
}

// repoLabels reads the labels that a repository defines.
func (p *Provider) repoLabels(ctx context.Context, repo gitprovider.RepoRef) ([]*gitea.Label, error) {
	labels, _, err := readAll(ctx, func(ctx context.Context, n int) (page[*gitea.Label], error) {
		items, header, err := call(ctx, p, func(c *gitea.Client) ([]*gitea.Label, *gitea.Response, error) {
			return c.ListRepoLabels(repo.Owner, repo.Name, gitea.ListLabelsOptions{
				ListOptions: gitea.ListOptions{Page: n, PageSize: pageSize},
			})
		})
		return page[*gitea.Label]{items: present(items), total: totalOf(header)}, err
	})
	p.labels.add(repo, labels)
	return labels, err
}

func (p *Provider) createLabel(ctx context.Context, repo gitprovider.RepoRef, name string) error {
	_, _, err := call(ctx, p, func(c *gitea.Client) (*gitea.Label, *gitea.Response, error) {
		return c.CreateLabel(repo.Owner, repo.Name, gitea.CreateLabelOption{
			Name: name, Color: labelColor, Description: labelAbout,
		})
	})
	return err
}

// maxLabelRepos bounds the repositories whose label ids are remembered.
const maxLabelRepos = 256

// labelIDs remembers the ids of labels that answers happened to show, for the creation of pull requests, which takes
// ids alone. An id may be out of date: the server drops it without a word, and Label, which goes by name, mends that.
type labelIDs struct {
	mu    sync.Mutex
	repos map[string]map[string]int64
}

func newLabelIDs() *labelIDs { return &labelIDs{repos: map[string]map[string]int64{}} }

// learn takes over the labels of pull requests of a repository.
func (l *labelIDs) learn(repo gitprovider.RepoRef, prs []*gitea.PullRequest) {
	for _, pr := range prs {
		l.add(repo, pr.Labels)
	}
}

func (l *labelIDs) add(repo gitprovider.RepoRef, labels []*gitea.Label) {
	if len(labels) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.repos) >= maxLabelRepos {
		clear(l.repos)
	}
	key := repoKey(repo)
	if l.repos[key] == nil {
		l.repos[key] = map[string]int64{}
	}
	for _, label := range labels {
		if label != nil && label.ID > 0 && !label.IsArchived {
			l.repos[key][label.Name] = label.ID
		}
	}
}

// known gives the ids of the labels, if all of them are known: a creation that sets some would save nothing.
func (l *labelIDs) known(repo gitprovider.RepoRef, names []string) []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []int64
	for _, name := range names {
		id, ok := l.repos[repoKey(repo)][name]
		if !ok {
			return nil
		}
		ids = append(ids, id)
	}
	return ids
}
