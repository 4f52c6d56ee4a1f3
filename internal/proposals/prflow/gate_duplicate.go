package prflow

import (
	"context"
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// maxForeignNotes bounds the pull requests of others that one answer names.
const maxForeignNotes = 5

// duplicateGate denies files that an open pull request of ours changes, or, if the policy asks for it, any open pull
// request. An identical change is not an error: its pull request is returned.
func duplicateGate() gate {
	return gate{
		Name: record.GateDuplicate, Phase: phasePulls,
		Asks:  "whether an open pull request changes one of the files, or brings one of the texts; the very same change is reused",
		Judge: judgeDuplicate,
	}
}

func judgeDuplicate(ctx context.Context, on rules, r *request, e *evidence) (ruling, error) {
	same, err := e.sameAs(ctx, r)
	if err != nil {
		return ruling{}, err
	}
	foreign := foreignOverlaps(r, e.snapshot.Foreign)
	out := ruling{notes: foreignNotes(r, foreign, e.snapshot.ForeignUnread)}
	if same != nil {
		out.same, out.detail = same, fmt.Sprintf("the same change is open as #%d", same.pr.Number)
		return out, nil
	}
	for _, pr := range e.snapshot.Open {
		if pr.Number == r.asked.Revises {
			continue
		}
		denial, err := e.duplicate(ctx, r, pr)
		if err != nil {
			return ruling{}, err
		}
		if denial != nil {
			return deny(e.wayOn(ctx, on, pr, denial)), nil
		}
	}
	if on.Policy.Duplicates == policy.DuplicatesAny && len(foreign) > 0 {
		return deny(duplicateOfOthers(foreign[0], r.overlap(foreign[0].Paths))), nil
	}
	out.detail = fmt.Sprintf("%d open pull requests of ours, none on these paths", len(e.snapshot.Open))
	return out, nil
}

// sameAs is like sameChange, but like sameRevision for a request that adds to a pull request; conflict if that has
// moved since it was read.
func (e *evidence) sameAs(ctx context.Context, r *request) (*sameChange, error) {
	rev := e.revision
	if rev == nil {
		return e.sameChange(ctx, r)
	}
	if rev.same != nil {
		return rev.same, nil
	}
	at := slices.IndexFunc(e.snapshot.Open, func(pr gitprovider.PullRequest) bool { return pr.Number == rev.pr.Number })
	if at >= 0 && e.snapshot.Open[at].HeadCommit == rev.pr.HeadCommit {
		return nil, nil
	}
	if at >= 0 {
		if same, err := e.sameRevision(ctx, r, e.snapshot.Open[at]); err != nil || same != nil {
			return same, err
		}
	}
	return nil, movedMeanwhile(rev.pr.Number)
}

func movedMeanwhile(number int) *fault.Error {
	e := fault.New(fault.Conflict, "#%d was revised, pushed to or closed since it was read a moment ago", number)
	e.Next = "read it again (get_pr_status), and make the change from what its branch has now"
	return e
}

// wayOn tells a refused caller what was said last about the pull request that stands in the way, and whether it may be
// added to.
func (e *evidence) wayOn(ctx context.Context, on rules, pr gitprovider.PullRequest, denial *fault.Error) *fault.Error {
	standing, err := e.revisions(on).of(ctx, e.resolution.Provider, e.snapshot.Repo, pr)
	if err != nil {
		e.log.warn("not seen whether a pull request may be revised", err, "pr", pr.Number)
	}
	do := "answer the review"
	if err != nil || standing.asks == nil {
		denial.Existing.LastReview, do = e.lastRemark(ctx, pr.Number), "add to it"
	} else {
		denial.Existing.LastReview = quoted(standing.asks, standing.lines)
	}
	if len(standing.red) > 0 {
		do = "mend what its checks say (" + namesOf(standing.red) + "; get_pr_status with include tells more)"
	}
	if err == nil && standing.why != nil && standing.why.Rule == ruleTarget {
		denial.Next = fmt.Sprintf("do not call again: report that %s, and leave it to the people there",
			standing.why.Message)
	}
	if err == nil && standing.why == nil {
		alone := ""
		if standing.asks != nil {
			alone = "or reply alone, "
		}
		denial.Next = fmt.Sprintf(
			"%s by one more call with revises: %d and a change of what the branch of #%d has, %sor report #%d; "+
				"do not move the change elsewhere", do, pr.Number, pr.Number, alone, pr.Number)
	}
	return denial
}

// duplicate explains why an open pull request of ours blocks a request; nil if it does not. A text that is moved to
// another file is the same change.
func (e *evidence) duplicate(ctx context.Context, r *request, pr gitprovider.PullRequest) (*fault.Error, error) {
	if overlap := r.overlap(pr.Paths); len(overlap) > 0 {
		return duplicateOf(pr.Number, pr.URL, pr.Title, overlap), nil
	}
	moved, err := e.sameTexts(ctx, r, pr)
	if err != nil || len(moved) == 0 {
		return nil, err
	}
	return duplicateText(pr.Number, pr.URL, pr.Title, canonical(pr.Paths), moved), nil
}

// duplicateOf refuses a change of files that an open pull request of ours changes.
func duplicateOf(number int, url, title string, overlap []string) *fault.Error {
	e := fault.New(fault.DuplicatePR, "the open pull request #%d (%s) changes %s already", number, url, listed(overlap))
	e.Existing = &fault.ExistingPR{Number: number, URL: url, Title: clean(title, maxTitle), Paths: overlap}
	return e
}

// duplicateText refuses texts that an open pull request of ours brings in other files.
func duplicateText(number int, url, title string, paths, moved []string) *fault.Error {
	e := fault.New(fault.DuplicatePR,
		"%s brings what the open pull request #%d (%s) brings in %s: under another name it is the same change",
		listed(moved), number, url, listed(paths))
	e.Existing = &fault.ExistingPR{Number: number, URL: url, Title: clean(title, maxTitle), Paths: paths}
	return e
}

func duplicateOfOthers(pr gitprovider.PullRequest, overlap []string) *fault.Error {
	e := fault.New(fault.DuplicatePR,
		"the open pull request #%d%s (%s) already changes %s, and the policy lets no two change "+
			"the same file (duplicates: any)", pr.Number, byAuthor(pr), pr.URL,
		listed(overlap))
	e.Existing = &fault.ExistingPR{Number: pr.Number, URL: pr.URL, Title: clean(pr.Title, maxTitle), Paths: overlap}
	return e
}

// foreignOverlaps lists the open pull requests of others that change one of the files, newest first.
func foreignOverlaps(r *request, foreign []gitprovider.PullRequest) []gitprovider.PullRequest {
	var out []gitprovider.PullRequest
	for _, pr := range slices.Backward(foreign) {
		if len(r.overlap(pr.Paths)) > 0 {
			out = append(out, pr)
		}
	}
	return out
}

// foreignNotes lists the pull requests of people, or from forks, that change the same files: the reviewer of ours has
// to merge both.
func foreignNotes(r *request, overlaps []gitprovider.PullRequest, unread int) (out []string) {
	for _, pr := range overlaps[:min(len(overlaps), maxForeignNotes)] {
		out = append(out, fmt.Sprintf("#%d%s also changes %s (%s)", pr.Number, byAuthor(pr), listed(r.overlap(pr.Paths)),
			pr.URL))
	}
	if more := len(overlaps) - maxForeignNotes; more > 0 {
		out = append(out, fmt.Sprintf("%d further pull requests of others change these files", more))
	}
	if unread > 0 {
		out = append(out, fmt.Sprintf(
			"%d open pull requests of others were not read in full; they may change the same files", unread))
	}
	return out
}

// byAuthor returns " by ann", or "" if the host does not say.
func byAuthor(pr gitprovider.PullRequest) string {
	if pr.Author == "" {
		return ""
	}
	return " by " + clean(pr.Author, maxName)
}
