package fakegitea

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/forgetest/memhost"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func pullRef(number int) string { return fmt.Sprintf("refs/pull/%d/head", number) }

// pull finds what the server knows of a pull request, whoever opened it. Ids are given in the order of opening.
func (c *call) pull(pr *memhost.PR) *prState {
	for _, each := range c.repo.PRs {
		if c.st.prs[each.Number] == nil {
			c.st.prs[each.Number] = &prState{
				id: c.s.next("pull"), poster: posterOf(each), updated: each.CreatedAt, base: c.repo.Branches[each.Base],
			}
		}
	}
	return c.st.prs[pr.Number]
}

// posterOf is who opened a pull request behind the doors.
func posterOf(pr *memhost.PR) string {
	if pr.Author != "" {
		return pr.Author
	}
	return Owner
}

// settle lets the server notice what happened to branches: a pull request follows its head, is closed when that is gone,
// and has to be checked again for conflicts when its base moved.
func (c *call) settle() {
	for _, pr := range c.repo.PRs {
		known := c.pull(pr)
		if !isOpen(pr) {
			continue
		}
		tip := c.repo.Branches[pr.Branch]
		if tip == "" && known.late > 0 {
			continue
		}
		if tip == "" {
			c.close(pr)
			continue
		}
		if base := c.repo.Branches[pr.Base]; base != known.base {
			set := c.st.MergeableReads
			shown := c.mergeable(pr, false)
			known.base, known.merge = base, mergeState{shown: shown, stale: set.Stale, checking: set.Checking}
		}
		if tip != pr.HeadCommit {
			c.reviews(pr) // are of the former head
			known.lateStale, known.staleHead = c.st.LateStale, pr.HeadCommit
			pr.HeadCommit = tip
			pr.Paths = c.repo.Changed(pr.Base, tip)
			known.updated = c.s.host.Now()
		}
	}
}

func (c *call) close(pr *memhost.PR) {
	pr.State, pr.ClosedAt = gitprovider.StateClosed, c.s.host.Now()
	c.pull(pr).updated = pr.ClosedAt
}

// touched notes that somebody changed something about a pull request.
func (c *call) touched(pr *memhost.PR) { c.pull(pr).updated = c.s.host.Now() }

// updatedAt is when something happened to a pull request last, reviews included.
func (c *call) updatedAt(pr *memhost.PR) time.Time {
	last := c.pull(pr).updated
	if pr.ClosedAt.After(last) {
		last = pr.ClosedAt
	}
	for _, r := range pr.Reviews {
		if r.SubmittedAt.After(last) {
			last = r.SubmittedAt
		}
	}
	return last
}

// mergeable is what the server shows; see MergeableReads. It means nothing once the pull request is not open.
func (c *call) mergeable(pr *memhost.PR, read bool) bool {
	known := c.pull(pr)
	switch {
	case isOpen(pr) && known.merge.stale > 0:
		if read {
			known.merge.stale--
		}
		return known.merge.shown
	case isOpen(pr) && known.merge.checking > 0:
		if read {
			known.merge.checking--
		}
		return false
	case isDraft(pr), c.repo.Commits[known.base] == nil:
		return false
	}
	_, fits := c.repo.Merge(known.base, pr.HeadCommit)
	return fits
}

// isDraft goes by the title, as the server does.
func isDraft(pr *memhost.PR) bool {
	title := strings.ToUpper(pr.Title)
	return strings.HasPrefix(title, "WIP:") || strings.HasPrefix(title, "[WIP]")
}

// mergeCommit is the commit that merged a pull request, "" if it was not merged.
func (c *call) mergeCommit(pr *memhost.PR) string {
	if pr.State != gitprovider.StateMerged {
		return ""
	}
	for id, commit := range c.repo.Commits {
		if len(commit.Parents) == 2 && commit.Parents[1] == pr.HeadCommit && c.repo.Contains(c.repo.Branches[pr.Base], id) {
			return id
		}
	}
	return c.repo.Branches[pr.Base]
}

// mergeBase is where the head left the base: before the merge, if it was merged.
func (c *call) mergeBase(pr *memhost.PR) string {
	base := c.repo.Branches[pr.Base]
	if merge := c.repo.Commits[c.mergeCommit(pr)]; merge != nil && len(merge.Parents) > 0 {
		base = merge.Parents[0]
	}
	return c.repo.MergeBase(base, pr.HeadCommit)
}

// labels gives the labels of a pull request, by name. The host knows them by name only: a name that the server does not
// know as the pull request's is the first label of that name, which is defined if it is not.
func (c *call) labels(pr *memhost.PR) []Label {
	known := c.pull(pr)
	var out []Label
	for _, id := range known.labels {
		if label, defined := c.st.labelByID(id); defined && slices.Contains(pr.Labels, label.Name) {
			out = append(out, label)
		}
	}
	for _, name := range pr.Labels {
		if slices.ContainsFunc(out, func(l Label) bool { return l.Name == name }) {
			continue
		}
		label, defined := c.st.labelNamed(name)
		if !defined {
			label = Label{ID: c.s.next("label"), Name: name, Color: "ededed"}
			c.st.Labels = append(c.st.Labels, label)
		}
		out = append(out, label)
	}
	known.labels = nil
	for _, label := range out {
		known.labels = append(known.labels, label.ID)
	}
	slices.SortFunc(out, func(a, b Label) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return out
}

// setLabels replaces the labels of a pull request. Ids that the repository does not define are dropped without a word.
func (c *call) setLabels(pr *memhost.PR, ids []int64) {
	known := c.pull(pr)
	known.labels, pr.Labels = nil, nil
	for _, id := range ids {
		label, defined := c.st.labelByID(id)
		if defined && !slices.Contains(known.labels, id) {
			known.labels = append(known.labels, id)
			pr.AddLabels(label.Name)
		}
	}
}
