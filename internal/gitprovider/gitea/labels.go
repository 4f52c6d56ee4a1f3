package gitea

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/transport"
)

const (
	// labelColor is the color of labels that are made, since the API demands one: a calm blue.
	labelColor = "#1d76db"
	labelAbout = "Set by Claude Ops"
)

// labels sets labels, and makes those that are missing if that is allowed.
type labels struct {
	api    *api
	ids    *labelIDs
	create func() bool
}

// set adds labels by their names. The server silently ignores unknown ones, so the answer is compared.
func (l labels) set(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) error {
	missing, err := l.add(ctx, repo, number, names)
	switch {
	case err != nil || len(missing) == 0:
		return err
	case !mayCreate(l.create):
		return forge.NoLabels(repo, missing)
	}
	for _, name := range missing {
		_, err := call(ctx, l.api, func(c *gitea.Client) (*gitea.Label, *gitea.Response, error) {
			return c.CreateLabel(repo.Owner, repo.Name, gitea.CreateLabelOption{Name: name, Color: labelColor,
				Description: labelAbout})
		})
		if err != nil {
			return l.api.toFault(err, repo, "")
		}
	}
	missing, err = l.add(ctx, repo, number, missing)
	if err == nil && len(missing) > 0 {
		return fault.New(fault.UpstreamError, "%s did not take the label %s for %s of %s", l.api.base.Host,
			strings.Join(missing, ", "), pullName(number), repo)
	}
	return err
}

// add returns the names that the pull request does not have afterwards. Versions that take ids alone refuse names
// or fail over them; then the ids are looked up.
func (l labels) add(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) ([]string, error) {
	ctx = transport.Repeatable(ctx)
	var have []*gitea.Label
	at := l.api.repoURL(repo, "issues", strconv.Itoa(number), "labels")
	err := l.api.post(ctx, at, map[string][]string{"labels": names}, &have)
	if statusIs(err, http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError) {
		have, err = l.addByID(ctx, repo, number, names)
	}
	if err != nil {
		return nil, err
	}
	l.ids.add(repo, have)
	return without(names, withoutNulls(have)), nil
}

func (l labels) addByID(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) ([]*gitea.Label,
	error) {
	defined, err := l.defined(ctx, repo)
	if err != nil {
		return nil, err
	}
	ids := []int64{}
	for _, label := range defined {
		if slices.Contains(names, label.Name) {
			ids = append(ids, label.ID)
		}
	}
	return call(ctx, l.api, func(c *gitea.Client) ([]*gitea.Label, *gitea.Response, error) {
		return c.AddIssueLabels(repo.Owner, repo.Name, int64(number), gitea.IssueLabelsOption{Labels: ids})
	})
}

// defined reads the labels that a repository defines.
func (l labels) defined(ctx context.Context, repo gitprovider.RepoRef) ([]*gitea.Label, error) {
	out, _, err := pagesOf(l.api, func(c *gitea.Client, o gitea.ListOptions) ([]*gitea.Label, *gitea.Response, error) {
		return c.ListRepoLabels(repo.Owner, repo.Name, gitea.ListLabelsOptions{ListOptions: o})
	}).all(ctx)
	l.ids.add(repo, out)
	return out, err
}

// missing looks among the labels of the repository and then, for what is missing, of the organization that owns it.
func (l labels) missing(ctx context.Context, repo gitprovider.RepoRef, owner string, wanted []string) ([]string,
	error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	have, err := l.defined(ctx, repo)
	missing := without(wanted, have)
	if err != nil || len(missing) == 0 {
		return missing, err
	}
	shared, err := pagesOf(l.api, func(c *gitea.Client, o gitea.ListOptions) ([]*gitea.Label, *gitea.Response, error) {
		return c.ListOrgLabels(owner, gitea.ListOrgLabelsOptions{ListOptions: o})
	})(ctx, 1)
	if err != nil {
		return missing, nil // a person has no such list, and a token may lack read:organization
	}
	return without(missing, shared.items), nil
}

// without gives the names that no label has.
func without(names []string, labels []*gitea.Label) []string {
	return forge.Without(names, func(name string) bool {
		return slices.ContainsFunc(labels, func(l *gitea.Label) bool { return l.Name == name })
	})
}

// maxLabelRepos bounds the repositories whose label ids are remembered.
const maxLabelRepos = 256

// labelIDs remembers the ids of labels that answers happened to show, for the creation of pull requests, which takes
// ids alone. An id may be out of date: the server silently ignores it, and Label, which uses names, corrects that.
type labelIDs struct {
	repos *forge.LRU[string, map[string]int64]
}

func newLabelIDs() *labelIDs {
	return &labelIDs{forge.NewLRU[string, map[string]int64](maxLabelRepos, nil)}
}

// learn takes over the labels of pull requests of a repository.
func (l *labelIDs) learn(repo gitprovider.RepoRef, prs ...*gitea.PullRequest) {
	for _, pr := range prs {
		l.add(repo, pr.Labels)
	}
}

func (l *labelIDs) add(repo gitprovider.RepoRef, labels []*gitea.Label) {
	if len(labels) == 0 {
		return
	}
	l.repos.Update(forge.RepoKey(repo), func(known map[string]int64) map[string]int64 {
		known = maps.Clone(known) // somebody may be reading it
		if known == nil {
			known = map[string]int64{}
		}
		for _, label := range labels {
			if label != nil && label.ID > 0 && !label.IsArchived {
				known[label.Name] = label.ID
			}
		}
		return known
	})
}

// known gives the ids of the labels, if all of them are known: a creation that sets some would save nothing.
func (l *labelIDs) known(repo gitprovider.RepoRef, names []string) []int64 {
	have, _ := l.repos.Get(forge.RepoKey(repo))
	var ids []int64
	for _, name := range names {
		id, ok := have[name]
		if !ok {
			return nil
		}
		ids = append(ids, id)
	}
	return ids
}

// mayCreate asks whether labels may be made.
func mayCreate(asked func() bool) bool { return asked != nil && asked() }
