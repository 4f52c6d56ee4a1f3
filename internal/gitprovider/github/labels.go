package github

import (
	"context"
	"strconv"
	"strings"
	"time"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// labels sets labels. GitHub silently makes those that the repository lacks, so it is looked first which exist.
type labels struct {
	api    *api
	facts  *repositoryFacts
	create func() bool
	now    func() time.Time
}

// labelsFresh is how long a snapshot's labels are trusted. GitHub creates an unknown label that it is told to set, so
// an outdated cache could bring back a label that a person has deleted.
const labelsFresh = time.Minute

// labelKey returns a label as GitHub compares it, letter case aside.
func labelKey(name string) string { return strings.ToLower(name) }

// labelList is a list of labels as GraphQL answers it.
type labelList struct {
	PageInfo pageInfo
	Nodes    []struct{ Name string }
}

// names returns the names of the labels.
func (l *labelList) names() []string {
	if l == nil {
		return nil
	}
	var out []string
	for _, label := range l.Nodes {
		out = append(out, label.Name)
	}
	return out
}

// labelKeys returns the set of the keys of labels.
func labelKeys(names []string) map[string]bool {
	keys := map[string]bool{}
	for _, name := range names {
		keys[labelKey(name)] = true
	}
	return keys
}

// lacking gives those of the labels that are not among the keys.
func lacking(keys map[string]bool, names []string) []string {
	return forge.Without(names, func(name string) bool { return keys[labelKey(name)] })
}

func (l labels) set(ctx context.Context, repo gitprovider.RepoRef, number int, names []string) error {
	var missing []string
	if !mayCreate(l.create) {
		var err error
		if missing, err = l.missing(ctx, repo, names); err != nil {
			return err
		}
	}
	if existing := lacking(labelKeys(missing), names); len(existing) > 0 {
		u := l.api.repoURL(repo, "issues", strconv.Itoa(number), "labels")
		var have []gogithub.Label // read, so that something else than GitHub's answer is noticed
		err := l.api.postTo(transport.Repeatable(ctx), repo, number, u, map[string][]string{"labels": existing}, &have)
		if err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return forge.NoLabels(repo, missing)
	}
	return nil
}

// missing tells which labels do not exist: from a fresh snapshot, or by asking.
func (l labels) missing(ctx context.Context, repo gitprovider.RepoRef, names []string) ([]string, error) {
	if known := l.facts.of(repo); l.now().Sub(known.seen) <= labelsFresh {
		names = lacking(known.labels, names)
	}
	return l.absent(ctx, repo, names)
}

// absent gives those of the labels that do not exist, with one request if there are any to look for.
func (l labels) absent(ctx context.Context, repo gitprovider.RepoRef, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	q := newQuery(repo)
	for i, name := range names {
		alias := "label" + strconv.Itoa(i)
		q.text(alias, name)
		q.add(alias + ": label(name: $" + alias + ") { name }")
	}
	answer, err := ask[map[string]*struct{ Name string }](ctx, l.api, q, needIssues)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, label := range *answer {
		if label != nil {
			found[labelKey(label.Name)] = true
		}
	}
	return lacking(found, names), nil
}

// mayCreate asks whether labels may be made.
func mayCreate(asked func() bool) bool { return asked != nil && asked() }
