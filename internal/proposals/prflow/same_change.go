package prflow

import (
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// sameChange finds the oldest one, since a younger one may be about to be withdrawn by its process. It is recognised by
// the proposals of the record, by its mark, and, for one that neither knows (the state folder was lost), by the
// contents of its branch.
func (e *evidence) sameChange(ctx context.Context, r *request) (*sameChange, error) {
	digest := e.digest(r)
	proposals, err := e.history.ByDigest(ctx, digest)
	if err != nil {
		return nil, err
	}
	proposals = slices.DeleteFunc(proposals, func(p record.Proposal) bool { return p.ID == r.id })
	var left *record.Proposal
	if at := slices.IndexFunc(proposals, e.settler.abandoned); at >= 0 {
		left = &proposals[at]
	}
	open := slices.Clone(e.snapshot.Open)
	slices.SortStableFunc(open, func(a, b gitprovider.PullRequest) int { return a.Number - b.Number })
	for _, pr := range open {
		if pr.Base != e.snapshot.Base {
			continue
		}
		for _, p := range proposals {
			its, err := e.became(p, pr)
			if err != nil {
				return nil, err
			}
			if its {
				if e.settler.abandoned(p) {
					left = &p
				}
				return &sameChange{pr: pr, left: left}, nil
			}
		}
		holds, err := e.holdsChange(ctx, r, pr, digest)
		if err != nil {
			return nil, err
		}
		if holds {
			return &sameChange{pr: pr, left: left}, nil
		}
	}
	return nil, nil
}

// became reports whether a pull request is the one that the proposal became, or that it has opened and not recorded
// yet.
func (e *evidence) became(p record.Proposal, pr gitprovider.PullRequest) (bool, error) {
	switch {
	case pr.Branch != p.Branch:
		return false, nil
	case p.State == record.StateOpened:
		return p.PRNumber == 0 || p.PRNumber == pr.Number, nil
	}
	return e.settler.owns(p, pr)
}

// holdsChange reports whether a pull request holds the change, by its mark or by what its branch holds.
func (e *evidence) holdsChange(ctx context.Context, r *request, pr gitprovider.PullRequest, digest string) (bool,
	error) {
	if e.marks[pr.Number].Digest == digest {
		return true, nil
	}
	if len(pr.Paths) != r.changes.Len() || len(r.overlap(pr.Paths)) != r.changes.Len() {
		return false, nil
	}
	holds, err := branchHolds(ctx, e.resolution.Provider, e.snapshot.Repo, pr.Branch, r.changes.Changes())
	if fault.CodeOf(err) == fault.NotFound { // its branch was removed a moment ago
		return false, nil
	}
	return holds, err
}

// sameTexts lists those files of a request whose text a pull request of ours brings, under whatever name: by its mark,
// or, for one that was opened before marks had that, by its record.
func (e *evidence) sameTexts(ctx context.Context, r *request, pr gitprovider.PullRequest) (paths []string, err error) {
	m := e.marks[pr.Number]
	if m.Contents == "" && m.Digest != "" {
		proposals, err := e.history.ByDigest(ctx, m.Digest)
		if err != nil {
			return nil, err
		}
		for _, p := range proposals {
			for _, f := range p.Files {
				if print := f.Fingerprint(); print != "" && p.Branch == pr.Branch {
					m.Contents += print[:markDigits]
				}
			}
		}
	}
	for _, c := range r.changes.Changes() {
		if m.holdsText(fingerprint(c)) {
			paths = append(paths, c.Path.String())
		}
	}
	return paths, nil
}

// sameRevision returns the pull request if its head is this very revision, by the records or, if those are lost, by its
// mark.
func (e *evidence) sameRevision(ctx context.Context, r *request, pr gitprovider.PullRequest) (*sameChange, error) {
	digest := e.digest(r)
	if m := e.marks[pr.Number]; m.Revision > 0 && m.Digest == digest {
		return &sameChange{pr: pr}, nil
	}
	proposals, err := e.history.ByDigest(ctx, digest)
	for _, p := range proposals {
		if p.Revises == pr.Number && p.Commit != "" && p.Commit == pr.HeadCommit && p.ID != r.id {
			return &sameChange{pr: pr}, nil
		}
	}
	return nil, err
}
