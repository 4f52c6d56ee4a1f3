package fakegitea

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

func pullRef(number int) string { return fmt.Sprintf("refs/pull/%d/head", number) }

// pull returns the server's state of a pull request. Ids are assigned in the order of opening.
func (r *repository) pull(pr *memhost.PR) *prState {
	for _, each := range r.repo.PRs {
		if r.st.prs[each.Number] == nil {
			r.st.prs[each.Number] = &prState{
				id: r.s.next("pull"), poster: posterOf(each), updated: each.CreatedAt, base: r.repo.Branches[each.Base],
			}
		}
	}
	return r.st.prs[pr.Number]
}

// posterOf returns the author of a pull request that was opened without a request to the server.
func posterOf(pr *memhost.PR) string {
	if pr.Author != "" {
		return pr.Author
	}
	return Owner
}

// settle lets the server notice what happened to branches: a pull request follows its head, is closed when that is
// gone, and has to be checked again for conflicts when its base moved.
func (r *repository) settle() {
	for _, pr := range r.repo.PRs {
		known := r.pull(pr)
		if !isOpen(pr) {
			continue
		}
		tip := r.repo.Branches[pr.Branch]
		if tip == "" && known.late > 0 {
			continue
		}
		if tip == "" {
			r.close(pr)
			continue
		}
		if base := r.repo.Branches[pr.Base]; base != known.base {
			set := r.st.Delays.MergeableReads
			shown := r.mergeable(pr, false)
			known.base, known.merge = base, mergeState{shown: shown, stale: set.Stale, checking: set.Checking}
		}
		if tip != pr.HeadCommit {
			r.reviews(pr) // are of the former head
			known.inReviews = formerHead{r.st.Delays.LateStale, pr.HeadCommit}
			known.inLists = formerHead{r.st.Delays.LateHead, pr.HeadCommit}
			pr.HeadCommit = tip
			pr.Paths = r.repo.Changed(pr.Base, tip)
			known.updated = r.s.host.Now()
		}
	}
}

func (r *repository) close(pr *memhost.PR) {
	pr.State, pr.ClosedAt = gitprovider.StateClosed, r.s.host.Now()
	r.pull(pr).updated = pr.ClosedAt
}

// touched notes that somebody changed something about a pull request.
func (r *repository) touched(pr *memhost.PR) { r.pull(pr).updated = r.s.host.Now() }

// updatedAt returns the time of the last event of a pull request, reviews and comments included.
func (r *repository) updatedAt(pr *memhost.PR) time.Time {
	last := r.pull(pr).updated
	if pr.ClosedAt.After(last) {
		last = pr.ClosedAt
	}
	for _, r := range pr.Reviews {
		if r.SubmittedAt.After(last) {
			last = r.SubmittedAt
		}
	}
	for _, c := range pr.Comments {
		if c.At.After(last) {
			last = c.At
		}
	}
	return last
}

// mergeable returns the value that the server shows; see MergeableReads. It means nothing once the pull request is not
// open.
func (r *repository) mergeable(pr *memhost.PR, read bool) bool {
	known := r.pull(pr)
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
	case isDraft(pr), r.repo.Commits[known.base] == nil:
		return false
	}
	_, fits := r.repo.Merge(known.base, pr.HeadCommit)
	return fits
}

// isDraft goes by the title, as the server does.
func isDraft(pr *memhost.PR) bool {
	title := strings.ToUpper(pr.Title)
	return strings.HasPrefix(title, "WIP:") || strings.HasPrefix(title, "[WIP]")
}

// mergeCommit returns the commit that merged a pull request, "" if it was not merged.
func (r *repository) mergeCommit(pr *memhost.PR) string {
	if pr.State != gitprovider.StateMerged {
		return ""
	}
	for id, commit := range r.repo.Commits {
		if len(commit.Parents) == 2 && commit.Parents[1] == pr.HeadCommit && r.repo.Contains(r.repo.Branches[pr.Base], id) {
			return id
		}
	}
	return r.repo.Branches[pr.Base]
}

// mergeBase returns the commit where the head left the base: before the merge, if it was merged.
func (r *repository) mergeBase(pr *memhost.PR) string {
	base := r.repo.Branches[pr.Base]
	if merge := r.repo.Commits[r.mergeCommit(pr)]; merge != nil && len(merge.Parents) > 0 {
		base = merge.Parents[0]
	}
	return r.repo.MergeBase(base, pr.HeadCommit)
}

// labels gives the labels of a pull request, by name. The host knows them by name only: a name that the server does not
// know as the pull request's is the first label of that name, which is defined if it is not.
func (r *repository) labels(pr *memhost.PR) []Label {
	known := r.pull(pr)
	var out []Label
	for _, id := range known.labels {
		if label, defined := r.st.labelByID(id); defined && slices.Contains(pr.Labels, label.Name) {
			out = append(out, label)
		}
	}
	for _, name := range pr.Labels {
		if slices.ContainsFunc(out, func(l Label) bool { return l.Name == name }) {
			continue
		}
		label, defined := r.st.labelNamed(name)
		if !defined {
			label = Label{ID: r.s.next("label"), Name: name, Color: "ededed"}
			r.st.Labels = append(r.st.Labels, label)
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

// setLabels replaces the labels of a pull request. Ids that the repository does not define are silently dropped.
func (r *repository) setLabels(pr *memhost.PR, ids []int64) {
	known := r.pull(pr)
	known.labels, pr.Labels = nil, nil
	for _, id := range ids {
		label, defined := r.st.labelByID(id)
		if defined && !slices.Contains(known.labels, id) {
			known.labels = append(known.labels, id)
			pr.AddLabels(label.Name)
		}
	}
}
