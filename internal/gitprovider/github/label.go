package github

import (
	"context"
	"slices"
	"strings"
	"time"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/transport"
)

// labelsFresh is how long a snapshot's labels are believed. GitHub makes a label that it is told to set and does not
// know, so that an old memory of one could bring back what a person has deleted.
const labelsFresh = time.Minute

// labelKey is a label as GitHub compares it, letter case aside.
func labelKey(name string) string { return strings.ToLower(name) }

// Label implements gitprovider.Provider. GitHub would silently make labels that the repository lacks. Unless
// Options.CreateLabels says so, those are not set: the others are, and the error, not_found, names the missing ones.
func (p *Provider) Label(ctx context.Context, repo gitprovider.RepoRef, number int, labels []string) error {
	ctx = about(ctx, repo)
	return publish(p.label(ctx, repo, number, labels))
}

func (p *Provider) label(ctx context.Context, repo gitprovider.RepoRef, number int, labels []string) error {
	if len(labels) == 0 {
		return nil
	}
	if number < 1 || number > maxNumber {
		return noSuchPull(repo, number)
	}
	existing, missing := labels, []string(nil)
	if !p.createLabels {
		var err error
		if existing, missing, err = p.splitLabels(ctx, repo, labels); err != nil {
			return err
		}
	}
	if len(existing) > 0 {
		u := p.repoURL(repo, "issues", decimal(number), "labels")
		var have []gogithub.Label // read, so that something else than GitHub's answer is noticed
		err := p.post(transport.Repeatable(ctx), u, needPulls, map[string][]string{"labels": existing}, &have)
		if err != nil {
			return p.pullMissing(err, repo, number)
		}
	}
	if len(missing) > 0 {
		return fault.New(fault.NotFound, "the repository %s has no label %s; have it created there, or let the policy allow "+
			"that labels are created", repo, clean(strings.Join(missing, ", ")))
	}
	return nil
}

// splitLabels tells which labels exist: from a fresh snapshot, or by asking.
func (p *Provider) splitLabels(ctx context.Context, repo gitprovider.RepoRef, labels []string) (existing, missing []string,
	err error) {
	known, _ := p.facts.get(repoKey(repo))
	have := known.labels
	if p.now().Sub(known.seen) > labelsFresh {
		have = nil
	}
	unknown := slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return have[labelKey(l)] })
	found, err := p.lookUpLabels(ctx, repo, unknown)
	if err != nil {
		return nil, nil, err
	}
	for _, label := range labels {
		if have[labelKey(label)] || found[labelKey(label)] {
			existing = append(existing, label)
		} else {
			missing = append(missing, label)
		}
	}
	return existing, missing, nil
}

// lookUpLabels tells which of the labels exist, with one request if there are any.
func (p *Provider) lookUpLabels(ctx context.Context, repo gitprovider.RepoRef, labels []string) (map[string]bool, error) {
	found := map[string]bool{}
	if len(labels) == 0 {
		return found, nil
	}
	q := newQuery(repo)
	addLabels(q, labels)
	var data struct {
		Repository map[string]*struct{ Name string }
	}
	if err := p.graphql(ctx, q.operation(needIssues), &data); err != nil {
		return nil, err
	}
	if data.Repository == nil {
		return nil, p.notFound()
	}
	for _, label := range data.Repository {
		if label != nil {
			found[labelKey(label.Name)] = true
		}
	}
	return found, nil
}

// addLabels selects the labels, under numbered aliases.
func addLabels(q *query, labels []string) {
	for i, label := range labels {
		alias := "label" + decimal(i)
		q.variable(alias, "String!", label)
		q.add(alias + ": label(name: $" + alias + ") { name }")
	}
}

func noSuchPull(repo gitprovider.RepoRef, number int) error {
	return fault.New(fault.NotFound, "the repository %s has no pull request %d", repo, number)
}
