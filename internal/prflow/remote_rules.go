package prflow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
)

// remoteRules runs gates 7 and 8 in their order, and in a dry run gate 9; the first one that denies ends the request, since
// what it says is about other pull requests, not about this one. Outside of a dry run gate 9 is asked by the transaction that
// reserves; see reserveWithinCaps. It returns the open pull request that already holds this very change.
func (c *creation) remoteRules(ctx context.Context) (reused *gitprovider.PullRequest, err error) {
	reused, err = c.duplicateGate(ctx)
	if err != nil || reused != nil {
		return reused, err
	}
	if err := c.cooldownGate(ctx); err != nil {
		return nil, err
	}
	if c.DryRun {
		return nil, c.previewCaps(ctx)
	}
	return nil, nil
}

// deny notes that a gate refuses with the error.
func (c *creation) deny(gate record.Gate, e *fault.Error) error {
	c.rule(gate, []fault.Violation{{Code: e.Code, Message: e.Message}}, "")
	return e
}

// duplicateGate is gate 7. The very same change is no error: its pull request is returned.
func (c *creation) duplicateGate(ctx context.Context) (*gitprovider.PullRequest, error) {
	same, err := c.sameChange(ctx)
	if err != nil {
		return nil, err
	}
	c.warnOfForeign()
	if same != nil {
		c.rule(record.GateDuplicate, nil, fmt.Sprintf("the same change is open as #%d", same.Number))
		return same, nil
	}
	for _, pr := range c.snapshot.Open {
		if overlap := c.overlap(pr.Paths); len(overlap) > 0 {
			return nil, c.deny(record.GateDuplicate, duplicateOf(pr.Number, pr.URL, pr.Title, overlap))
		}
	}
	if err := c.foreignDuplicate(); err != nil {
		return nil, err
	}
	c.rule(record.GateDuplicate, nil, fmt.Sprintf("%d open pull requests of ours, none on these paths", len(c.snapshot.Open)))
	return nil, nil
}

// sameChange finds the open pull request that holds this very change: by the ledger's digests, and for those that the
// ledger does not know (the state folder was lost) by what their branch holds.
func (c *creation) sameChange(ctx context.Context) (*gitprovider.PullRequest, error) {
	proposals, err := c.History.ByDigest(ctx, c.digest)
	if err != nil {
		return nil, err
	}
	for _, p := range proposals {
		for i, pr := range c.snapshot.Open {
			if p.ID == c.requestID || pr.Branch != p.Branch || pr.Base != c.snapshot.Base {
				continue
			}
			its, err := c.isPullOf(p, &pr)
			switch {
			case err != nil:
				return nil, err
			case !its:
				continue
			case c.abandoned(p) && !c.DryRun:
				err = c.settle(ctx, p)
			}
			return &c.snapshot.Open[i], err
		}
	}
	for i, pr := range c.snapshot.Open {
		if pr.Base == c.snapshot.Base && c.marks[pr.Number].Digest == c.digest {
			return &c.snapshot.Open[i], nil
		}
		if pr.Base != c.snapshot.Base || len(pr.Paths) != c.changes.Len() || len(c.overlap(pr.Paths)) != c.changes.Len() {
			continue
		}
		holds, err := branchHolds(ctx, c.resolution.Provider, c.snapshot.Repo, pr.Branch, c.changes.Changes())
		switch {
		case fault.CodeOf(err) == fault.NotFound: // its branch was removed a moment ago
			continue
		case err != nil:
			return nil, err
		}
		if holds {
			return &c.snapshot.Open[i], nil
		}
	}
	return nil, nil
}

// isPullOf reports whether a pull request with the proposal's branch is the one that it became, or that it has opened and not
// recorded yet.
func (s *Service) isPullOf(p record.Proposal, pr *gitprovider.PullRequest) (bool, error) {
	if p.State == record.StateOpened {
		return p.PRNumber == 0 || p.PRNumber == pr.Number, nil
	}
	return s.isOf(p, pr)
}

// overlap lists the paths of this change that are among the given ones, letter case aside.
func (c *creation) overlap(paths []string) []string {
	var out []string
	for _, p := range c.changes.Paths() {
		if slices.ContainsFunc(paths, func(other string) bool { return strings.EqualFold(other, p.String()) }) {
			out = append(out, p.String())
		}
	}
	return out
}

func duplicateOf(number int, url, title string, overlap []string) *fault.Error {
	e := fault.New(fault.DuplicatePR,
		"the open pull request #%d (%s) already changes %s; wait for its review, or propose other files",
		number, url, listed(overlap))
	e.Existing = &fault.ExistingPR{Number: number, URL: url, Title: clean(title, maxTitle), Paths: overlap}
	return e
}

// cooldownGate is gate 8: a change that a person rejected does not come straight back.
func (c *creation) cooldownGate(ctx context.Context) error {
	if err := c.rememberPaths(ctx); err != nil {
		return err
	}
	var latest *gitprovider.PullRequest
	for i, pr := range c.snapshot.Closed {
		if c.cooldownLeft(pr) <= 0 || len(c.overlap(pr.Paths)) == 0 || latest != nil && !pr.ClosedAt.After(latest.ClosedAt) {
			continue
		}
		byUs, err := c.closedByUs(ctx, pr)
		if err != nil {
			return err
		}
		if !byUs {
			latest = &c.snapshot.Closed[i]
		}
	}
	if latest == nil {
		c.rule(record.GateCooldown, nil, "")
		return nil
	}
	left, overlap := c.cooldownLeft(*latest), c.overlap(latest.Paths)
	e := fault.New(fault.CooldownActive,
		"#%d (%s), which changed %s, was closed without merging; these files may be proposed again in %s",
		latest.Number, latest.URL, listed(overlap), left.Round(time.Second))
	e.RetryAfter = left
	e.Existing = &fault.ExistingPR{
		Number: latest.Number, URL: latest.URL, Title: clean(latest.Title, maxTitle), Paths: overlap,
		LastReview: c.lastRemark(ctx, latest.Number),
	}
	return c.deny(record.GateCooldown, e)
}

// closedByUs reports whether it was our doing that a pull request was closed: it was withdrawn, or its branch was removed
// before it was there to be seen. The first a mark says, whosever key it is signed with, the second the records.
func (c *creation) closedByUs(ctx context.Context, pr gitprovider.PullRequest) (bool, error) {
	if newMarkReader(nil, c.resolution.Provider.Name(), c.snapshot.Repo).withdrawn(pr) {
		return true, nil
	}
	m, ours := c.marks[pr.Number]
	if !ours {
		return false, nil
	}
	return c.History.Undone(ctx, m.Request)
}

// rememberPaths fills in, from the ledger, the paths of rejected pull requests whose branch the provider has no more.
func (c *creation) rememberPaths(ctx context.Context) error {
	repo := c.snapshot.Repo
	for i, pr := range c.snapshot.Closed {
		if len(pr.Paths) > 0 {
			continue
		}
		paths, err := c.History.PathsOf(ctx, c.resolution.Provider.Name(), repo.Owner, repo.Name, pr.Number)
		if err != nil {
			return err
		}
		c.snapshot.Closed[i].Paths = paths
	}
	return nil
}

func (c *creation) cooldownLeft(pr gitprovider.PullRequest) time.Duration {
	return pr.ClosedAt.Add(c.Policy.Limits.Cooldown).Sub(c.started)
}

// listed joins paths for a message, three at most.
func listed(paths []string) string {
	const most = 3
	out := ""
	for i, p := range paths[:min(len(paths), most)] {
		if i > 0 {
			out += ", "
		}
		out += p
	}
	if more := len(paths) - most; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}
