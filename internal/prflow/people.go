package prflow

import (
	"context"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
)

// This file holds what people read beside what agents may: at a provider that they name, and uncut. Texts that others
// wrote are as the provider gave them; who shows them cleans them.

// ListAt is List at a named provider, for people who look across all of them.
func (s *Service) ListAt(ctx context.Context, provider, owner, name string) ([]gitprovider.PullRequest, error) {
	resolution, err := s.readableAt(provider, owner, name)
	if err != nil {
		return nil, s.readError(err)
	}
	prs, err := s.listOurs(ctx, resolution)
	if err != nil {
		return nil, s.readError(err)
	}
	return prs, nil
}

// StatusAt is Status at a named provider.
func (s *Service) StatusAt(ctx context.Context, provider, owner, name string, number int) (gitprovider.Status, error) {
	resolution, err := s.readableAt(provider, owner, name)
	if err != nil {
		return gitprovider.Status{}, s.readError(err)
	}
	status, err := resolution.Provider.Status(ctx, resolution.Repo, number)
	if err != nil {
		return gitprovider.Status{}, s.readError(err)
	}
	return status, nil
}

// ProviderOf names the provider that serves a repository; "" if nothing settles it. No provider is asked.
func (s *Service) ProviderOf(owner, name string) string {
	resolution, err := s.Registry.Resolve(gitprovider.RepoRef{Owner: owner, Name: name})
	if err != nil {
		return ""
	}
	return resolution.Provider.Name()
}

// Comparison is what a recorded proposal changes, seen from its base branch as it is now.
type Comparison struct {
	BaseCommit string // that it is compared with
	Diff       string // unified, all files, uncut
}

// Compare reads the proposal's base branch and compares. The base may have moved since the proposal was made, or may have
// taken it in; BaseCommit tells.
func (s *Service) Compare(ctx context.Context, p record.Proposal) (Comparison, error) {
	resolution, err := s.readableAt(p.Provider, p.Owner, p.Repo)
	if err != nil {
		return Comparison{}, s.readError(err)
	}
	changes := make([]gitprovider.Change, 0, len(p.Files))
	paths := make([]gitprovider.Path, 0, len(p.Files))
	for _, f := range p.Files {
		path, err := gitprovider.ParsePath(f.Path)
		if err != nil {
			return Comparison{}, s.readError(fault.Wrap(err, fault.Internal, "a path of the recorded proposal is not canonical"))
		}
		changes = append(changes, gitprovider.Change{Path: path, Action: f.Action, Content: f.Content})
		paths = append(paths, path)
	}
	snapshot, err := resolution.Provider.Snapshot(ctx, gitprovider.SnapshotQuery{
		Repo: resolution.Repo, Base: p.Base, Paths: paths, Contents: true,
	})
	if err != nil {
		return Comparison{}, s.readError(err)
	}
	out := Comparison{BaseCommit: snapshot.BaseCommit}
	for _, change := range changes {
		out.Diff += nowDiff(change, snapshot)
	}
	return out, nil
}

// nowDiff is fileDiff for a base that may have moved: a file to be created may be there by now, one to be deleted may be gone.
func nowDiff(change gitprovider.Change, snapshot *gitprovider.Snapshot) string {
	_, there := snapshot.Tree[change.Path.String()]
	switch {
	case change.Action == gitprovider.ActionCreate && there:
		change.Action = gitprovider.ActionUpdate
	case change.Action == gitprovider.ActionUpdate && !there:
		change.Action = gitprovider.ActionCreate
	case change.Action == gitprovider.ActionDelete && !there:
		return ""
	}
	return fileDiff(change, snapshot)
}

func (s *Service) readableAt(provider, owner, name string) (gitprovider.Resolution, error) {
	repo, violations := parseRepo(owner, name, "")
	if len(violations) > 0 {
		return gitprovider.Resolution{}, refuseArguments(violations)
	}
	resolution, err := s.Registry.ResolveAt(provider, repo)
	if err != nil {
		return resolution, err
	}
	if v := s.repoViolation(resolution); v != nil {
		return resolution, &fault.Error{Code: v.Code, Message: v.Message, Violations: []fault.Violation{*v}}
	}
	return resolution, nil
}

// AgentText is the body of a proposal as the agent wrote it, without the footer that we add.
func AgentText(body string) string { return withoutFooter(body) }
