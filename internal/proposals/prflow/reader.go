package prflow

import (
	"context"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// Reader reads pull requests at the providers that the operator allows. It is for people: uncut, and at a provider that
// they name. Texts that others wrote are as the provider gave them; who shows them cleans them. What agents read is
// Service.List and Service.Status. Errors of all methods are faults with a request id.
type Reader struct {
	registry *gitprovider.Registry
	policy   func() policy.Policy // as it is now
	marks    func(provider string, repo gitprovider.RepoRef) (markReader, error)
	adds     func() revisions
	newID    func() string
	log      redactedLog
}

// Reader reads what this Service may read.
func (s *Service) Reader() Reader {
	settler := s.settler()
	rules := func() policy.Policy { return s.CurrentAuthority().Policy }
	adds := func() revisions {
		return revisions{history: s.History, settler: settler, policy: rules}
	}
	return Reader{s.Registry, rules, settler.marksOf, adds, s.NewID, s.log()}
}

// ListAt is List at a named provider, for people who look across all of them.
func (r Reader) ListAt(ctx context.Context, provider, owner, name string) ([]gitprovider.PullRequest, error) {
	resolution, err := r.resolveNamed(provider, owner, name)
	if err != nil {
		return nil, r.readFailure(err)
	}
	prs, err := r.listOurs(ctx, resolution)
	return prs, r.readFailure(err)
}

// StatusAt is Status at a named provider.
func (r Reader) StatusAt(ctx context.Context, provider, owner, name string, number int) (gitprovider.Status, error) {
	resolution, err := r.resolveNamed(provider, owner, name)
	if err != nil {
		return gitprovider.Status{}, r.readFailure(err)
	}
	status, err := resolution.Provider.Status(ctx, resolution.Repo, number)
	return status, r.readFailure(err)
}

// OursAt is StatusAt without reviews and checks, and whether the pull request looks like one of ours: by its mark, its
// branch or its label.
func (r Reader) OursAt(ctx context.Context, provider, owner, name string, number int) (pr gitprovider.PullRequest,
	ours bool, err error) {
	status, err := r.StatusAt(ctx, provider, owner, name, number)
	if err != nil {
		return pr, false, err
	}
	return status.PullRequest, gitprovider.MayBeOurs(status.PullRequest), nil
}

// ProviderOf names the provider that serves a repository; "" if nothing settles it. No provider is asked.
func (r Reader) ProviderOf(owner, name string) string {
	resolution, err := r.registry.Resolve(gitprovider.RepoRef{Owner: owner, Name: name})
	if err != nil {
		return ""
	}
	return resolution.Provider.Name()
}

// Comparison is the difference between a recorded proposal and the present state of its base branch.
type Comparison struct {
	BaseCommit string // that it is compared with
	Diff       string // unified, all files, uncut
	// Gone are files that the proposal updates, and that the base branch has removed or moved elsewhere since. git follows
	// a file that was moved, so that a merge writes the change to its new place.
	Gone []string
}

// Compare reads the proposal's base branch and compares. The base may have moved since the proposal was made, or may
// have taken it in; BaseCommit tells.
func (r Reader) Compare(ctx context.Context, p record.Proposal) (Comparison, error) {
	resolution, err := r.resolveNamed(p.Provider, p.Owner, p.Repo)
	if err != nil {
		return Comparison{}, r.readFailure(err)
	}
	changes := make([]gitprovider.Change, 0, len(p.Files))
	paths := make([]gitprovider.Path, 0, len(p.Files))
	for _, f := range p.Files {
		path, err := gitprovider.ParsePath(f.Path)
		if err != nil {
			return Comparison{}, r.readFailure(fault.Wrap(err, fault.Internal, "a path of the recorded proposal is not canonical"))
		}
		changes = append(changes, gitprovider.Change{Path: path, Action: f.Action, Content: f.Content})
		paths = append(paths, path)
	}
	base := p.Base
	if p.Revises > 0 && p.State == record.StateDryRun { // it would be added to what the branch has
		base = p.Branch
	}
	snapshot, err := resolution.Provider.Snapshot(ctx, gitprovider.SnapshotQuery{
		Repo: resolution.Repo, Base: base, Paths: paths, Contents: true, FilesOnly: true,
	})
	if err != nil {
		return Comparison{}, r.readFailure(err)
	}
	out := Comparison{BaseCommit: snapshot.BaseCommit, Diff: changesDiff(changesNow(changes, snapshot), snapshot)}
	for _, change := range changes {
		if _, there := snapshot.Tree[change.Path.String()]; !there && change.Action == gitprovider.ActionUpdate {
			out.Gone = append(out.Gone, change.Path.String())
		}
	}
	return out, nil
}

// changesNow adapts changes to a base that may have moved: a file to be created may exist by now, one to be deleted may
// be gone.
func changesNow(changes []gitprovider.Change, snapshot *gitprovider.Snapshot) (out []gitprovider.Change) {
	for _, change := range changes {
		_, there := snapshot.Tree[change.Path.String()]
		switch {
		case change.Action == gitprovider.ActionCreate && there:
			change.Action = gitprovider.ActionUpdate
		case change.Action == gitprovider.ActionUpdate && !there:
			change.Action = gitprovider.ActionCreate
		case change.Action == gitprovider.ActionDelete && !there:
			continue
		}
		out = append(out, change)
	}
	return out
}

// resolveNamed returns a repository at the provider that is named.
func (r Reader) resolveNamed(provider, owner, name string) (gitprovider.Resolution, error) {
	return r.findRepository(owner, name, "", func(repo gitprovider.RepoRef) (gitprovider.Resolution, error) {
		return r.registry.ResolveAt(provider, repo)
	})
}

// findRepository returns a repository that the operator allows, at the provider that resolve finds.
func (r Reader) findRepository(
	owner, name, cloneURL string, resolve func(gitprovider.RepoRef) (gitprovider.Resolution, error),
) (gitprovider.Resolution, error) {
	repo, violations := parseRepo(owner, name, cloneURL)
	if len(violations) > 0 {
		return gitprovider.Resolution{}, fault.Refusal(violations)
	}
	found, err := resolve(repo)
	if err != nil {
		return found, err
	}
	if v := notListed(r.policy(), found.Provider.Name(), found.Repo); v != nil {
		return found, fault.Refusal([]fault.Violation{*v})
	}
	return found, nil
}

// listOurs lists the open pull requests of ours: with the label, or with a true mark.
func (r Reader) listOurs(ctx context.Context, at gitprovider.Resolution) ([]gitprovider.PullRequest, error) {
	prs, err := at.Provider.ListOpen(ctx, at.Repo, gitprovider.LabelOurs)
	if err != nil {
		return nil, err
	}
	return r.onlyOurs(at, prs)
}

// listKnown is like list, but leaves out unknown files where reading them costs a request for each; see
// gitprovider.KnownList.
func (r Reader) listKnown(ctx context.Context, at gitprovider.Resolution) (known gitprovider.KnownList, err error) {
	lister, can := at.Provider.(gitprovider.Lister)
	if !can {
		known.PRs, err = r.listOurs(ctx, at)
		return known, err
	}
	if known, err = lister.ListKnown(ctx, at.Repo, gitprovider.LabelOurs); err != nil {
		return known, err
	}
	known.PRs, err = r.onlyOurs(at, known.PRs)
	return known, err
}

// onlyOurs leaves out those that only claim to have a mark of ours.
func (r Reader) onlyOurs(at gitprovider.Resolution, prs []gitprovider.PullRequest) ([]gitprovider.PullRequest, error) {
	if !slices.ContainsFunc(prs, func(pr gitprovider.PullRequest) bool { return !isLabelled(pr) }) {
		return prs, nil
	}
	marks, err := r.marks(at.Provider.Name(), at.Repo)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(prs, func(pr gitprovider.PullRequest) bool {
		_, isTrue := marks.firstSigned(pr)
		return !isTrue && !isLabelled(pr)
	}), nil
}

// isLabelled compares like hosts that ignore letter case.
func isLabelled(pr gitprovider.PullRequest) bool {
	return slices.ContainsFunc(pr.Labels, func(l string) bool { return strings.EqualFold(l, gitprovider.LabelOurs) })
}

// readFailure gives a failed read a request id and keeps our tokens out of its text; nil stays nil.
func (r Reader) readFailure(err error) error {
	if err == nil {
		return nil
	}
	id, e := r.newID(), *fault.From(err)
	e.Message = r.log.redactedMessage(err)
	if e.Next == "" {
		e.Next = afterReading(&e)
	}
	r.log.Info("read failed", "request_id", id, "code", e.Code, "error", r.log.redactError(err))
	return operation.Logged(&e, id)
}

// KnownRepositories returns the repositories of the record and those that the allowlists name one by one, sorted.
// providerOf settles an entry that names no provider; see Reader.ProviderOf.
func KnownRepositories(recorded []record.RepoName, p policy.Policy,
	providerOf func(owner, name string) string) []record.RepoName {
	out := slices.Clone(recorded)
	for _, pattern := range p.AllRepositories() {
		name := record.RepoName{Provider: pattern.Provider, Owner: pattern.Owner, Name: pattern.Name}
		if strings.ContainsAny(name.Owner+name.Name, "*?[{\\") {
			continue
		}
		if name.Provider == "" {
			name.Provider = providerOf(name.Owner, name.Name)
		}
		known := func(r record.RepoName) bool { return strings.EqualFold(r.String(), name.String()) }
		if name.Provider != "" && !slices.ContainsFunc(out, known) {
			out = append(out, name)
		}
	}
	slices.SortStableFunc(out, func(a, b record.RepoName) int { return strings.Compare(a.String(), b.String()) })
	return out
}
