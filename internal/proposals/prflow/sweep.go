package prflow

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

const (
	// orphanAge is the age at which a branch counts as abandoned.
	orphanAge = time.Hour
	// maxSweep bounds the branches of one repository that one Sweep looks at closely.
	maxSweep = 50
)

// Sweeper finds branches of ours that have no pull request and no record: their process was killed, or gave up, and its
// records were lost. It remembers what it has seen, so that a later round costs little. It is not safe for concurrent
// use.
type Sweeper struct {
	reader  Reader
	settler *settler
	tier    gitprovider.Tier
	pauses  operation.Pauses       // nil for none
	settled map[branchAt]bool      // has a pull request, or is not ours
	bare    map[branchAt]time.Time // holds nothing beyond the default branch as it was then
}

// branchAt is a branch with its tip.
type branchAt struct{ provider, repo, branch, tip string }

// NewSweeper makes a Sweeper.
func (s *Service) NewSweeper() *Sweeper {
	return &Sweeper{
		reader: s.Reader(), settler: s.settler(), tier: s.CurrentAuthority().Tier, pauses: s.Pauses,
		settled: map[branchAt]bool{}, bare: map[branchAt]time.Time{},
	}
}

// Swept is a branch that a Sweep has removed, or could not.
type Swept struct {
	Repo   string `json:"repo"`             // provider:owner/name
	Branch string `json:"branch,omitempty"` // "" if the repository's branches could not be read
	Error  string `json:"error,omitempty"`
}

// Sweep removes, in the repositories, the branches below claude-ops/ that carry our mark and nothing but the change
// that it names, are an hour old, and have no pull request in whatever state and no proposal that is not settled. A
// bare one, which GitHub has between branch and commit, is removed when this Sweeper has seen it an hour ago. Every
// removal is in the audit. It goes on after a failure, which the entry reports.
func (w *Sweeper) Sweep(ctx context.Context, repos []record.RepoName) ([]Swept, error) {
	held, err := w.settler.history.Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	var out []Swept
	for _, name := range repos {
		resolution, err := w.reader.resolveNamed(name.Provider, name.Owner, name.Name)
		if code := fault.CodeOf(err); code == fault.ProviderDisabled || code == fault.RepoNotAllowed {
			continue
		}
		if err == nil {
			r := round{w, resolution.Provider, resolution.Repo, held, nil, ""}
			err = r.sweep(ctx)
			out = append(out, r.swept...)
		}
		if ctx.Err() != nil {
			return out, fault.From(ctx.Err())
		}
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			out = append(out, Swept{Repo: name.String(), Error: w.settler.log.redactedMessage(err)})
		}
	}
	return out, nil
}

// round is a Sweep of one repository.
type round struct {
	*Sweeper
	provider gitprovider.Provider
	repo     gitprovider.RepoRef
	held     []record.Proposal
	swept    []Swept
	base     string // tip of the default branch; "" before it was asked for
}

func (r *round) sweep(ctx context.Context) error {
	tips, err := r.provider.OurBranches(ctx, r.repo)
	if err != nil {
		return err
	}
	looked := 0
	for _, branch := range slices.Sorted(maps.Keys(tips)) {
		at := branchAt{r.provider.Name(), strings.ToLower(r.repo.String()), branch, tips[branch]}
		if r.settled[at] || r.isHeld(branch) || looked == maxSweep {
			continue
		}
		looked++
		orphan, request, err := r.isOrphan(ctx, at)
		if err != nil {
			return err
		}
		if orphan {
			r.removeBranch(ctx, at, request)
		}
	}
	return nil
}

func (r *round) isHeld(branch string) bool {
	return slices.ContainsFunc(r.held, func(p record.Proposal) bool {
		return p.Provider == r.provider.Name() && strings.EqualFold(p.Owner+"/"+p.Repo, r.repo.String()) && p.Branch == branch
	})
}

// isOrphan reports whether a branch was left behind, and by which request, if that is known.
func (r *round) isOrphan(ctx context.Context, at branchAt) (orphan bool, request string, err error) {
	info, err := r.provider.ReadCommit(ctx, r.repo, at.tip)
	if err != nil {
		return false, "", err
	}
	content, request, marked := readCommitMark(info)
	switch {
	case !marked:
		orphan, err = r.isBare(ctx, at)
	case r.settler.clock.Now().Sub(info.Time) < orphanAge:
		return false, "", nil
	default:
		orphan, err = r.holdsOnly(ctx, at.branch, info, content)
		r.settled[at] = err == nil && !orphan
	}
	if err != nil || !orphan {
		return false, "", err
	}
	pr, err := r.provider.FindByHead(ctx, r.repo, at.branch)
	if err == nil && pr != nil && carries(newMarkReader(nil, at.provider, r.repo), *pr, at.tip) {
		r.settled[at] = true
		return false, "", nil
	}
	return err == nil, request, err
}

// carries reports whether the commit is a pull request's, so that its branch is not left behind: that of an open one,
// and of one that people have ended.
func carries(r markReader, pr gitprovider.PullRequest, commit string) bool {
	return pr.State == gitprovider.StateOpen || pr.HeadCommit == commit && !r.withdrawn(pr)
}

// isBare reports whether the branch was seen an hour ago at the commit that was the default branch's then.
func (r *round) isBare(ctx context.Context, at branchAt) (bool, error) {
	if since, seen := r.bare[at]; seen {
		return r.settler.clock.Now().Sub(since) >= orphanAge, nil
	}
	if r.base == "" {
		snapshot, err := r.provider.Snapshot(ctx, gitprovider.SnapshotQuery{Repo: r.repo})
		if err != nil {
			return false, err
		}
		r.base = snapshot.BaseCommit
	}
	if at.tip == r.base {
		r.bare[at] = r.settler.clock.Now()
	} else {
		r.settled[at] = true
	}
	return false, nil
}

// holdsOnly reports whether a commit is exactly the change that its mark names, without later amendments. It checks no
// signature, since the key may have been lost with the records.
func (r *round) holdsOnly(ctx context.Context, branch string, info gitprovider.CommitInfo, content string) (bool,
	error) {
	query := gitprovider.SnapshotQuery{Repo: r.repo, Base: branch, Contents: true}
	for _, p := range info.Paths {
		path, err := gitprovider.ParsePath(p)
		if err != nil {
			return false, nil
		}
		query.Paths = append(query.Paths, path)
	}
	snapshot, err := r.provider.Snapshot(ctx, query)
	if err != nil || snapshot.BaseCommit != info.ID {
		return false, err
	}
	var changes []gitprovider.Change
	for _, path := range query.Paths {
		change := gitprovider.Change{Path: path, Action: gitprovider.ActionDelete}
		if _, there := snapshot.Tree[path.String()]; there {
			text, read := snapshot.Contents[path]
			if !read {
				return false, nil
			}
			change.Action, change.Content = gitprovider.ActionUpdate, string(text)
		}
		changes = append(changes, change)
	}
	return contentDigest(changes) == content, nil
}

// removeBranch removes the branch, and records that. While the repository is paused it stays.
func (r *round) removeBranch(ctx context.Context, at branchAt, request string) {
	s, entry := r.settler, Swept{Repo: at.provider + ":" + r.repo.String(), Branch: at.branch}
	release, err := rules{pauses: r.pauses}.claimWrite(ctx, r.repo)
	if fault.CodeOf(err) == fault.Paused {
		return
	}
	if err == nil {
		defer release()
		err = r.provider.DeleteBranch(ctx, r.repo, at.branch, at.tip)
	}
	if fault.CodeOf(err) == fault.Conflict { // somebody works on it
		return
	}
	if err == nil {
		message := "a branch of ours without a pull request was removed; nothing is recorded of its request"
		if request != "" {
			message = "a branch of ours without a pull request was removed; its request was " + clean(request, maxName)
		}
		now := s.clock.Now()
		err = s.ledger.Record(ctx, record.Attempt{
			Time: now, RequestID: r.reader.newID(), Tier: r.tier, Action: record.ActionSettle,
			Actor:    record.Actor{Door: record.DoorPoll, System: record.SystemServe},
			Provider: at.provider, Owner: r.repo.Owner, Repo: r.repo.Name, Branch: at.branch,
			Outcome: record.OutcomeFailed, Message: message,
		}, nil)
	}
	if err != nil {
		entry.Error = s.log.redactedMessage(err)
		s.log.error("branch without a pull request", err, "repo", entry.Repo, "branch", at.branch)
	}
	r.swept = append(r.swept, entry)
}
