package prflow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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

func judgeDuplicate(ctx context.Context, on rules, r *createRequest, e *evidence) (ruling, error) {
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
	out.detail = fault.Count(len(e.snapshot.Open), "open pull request", "open pull requests") +
		" of ours, none on these paths"
	return out, nil
}

// sameAs is like sameChange, but like sameRevision for a request that adds to a pull request; conflict if that has
// moved since it was read.
func (e *evidence) sameAs(ctx context.Context, r *createRequest) (*sameChange, error) {
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
	standing, err := e.revisions(on).loadStanding(ctx, e.resolution.Provider, e.snapshot.Repo, pr)
	if err != nil {
		e.log.warn("not seen whether a pull request may be revised", err, "pr", pr.Number)
	}
	do := "answer the review"
	if err != nil || standing.asks == nil {
		denial.Existing.LastReview, do = e.lastRemark(ctx, pr.Number), "add to it"
	} else {
		denial.Existing.LastReview = quoteRemark(standing.asks, standing.lines)
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
func (e *evidence) duplicate(ctx context.Context, r *createRequest, pr gitprovider.PullRequest) (*fault.Error, error) {
	if overlap := r.overlap(pr.Paths); len(overlap) > 0 {
		return duplicateOf(pr.Number, pr.URL, pr.Title, overlap), nil
	}
	moved, err := e.sameTexts(ctx, r, pr)
	if err != nil || len(moved) == 0 {
		return nil, err
	}
	return duplicateText(pr.Number, pr.URL, pr.Title, canonicalPaths(pr.Paths), moved), nil
}

// duplicateOf refuses a change of files that an open pull request of ours changes.
func duplicateOf(number int, url, title string, overlap []string) *fault.Error {
	e := fault.New(fault.DuplicatePR, "the open pull request #%d (%s) changes %s already", number, url, joinPaths(overlap))
	e.Existing = &fault.ExistingPR{Number: number, URL: url, Title: clean(title, maxTitle), Paths: overlap}
	return e
}

// duplicateText refuses texts that an open pull request of ours brings in other files.
func duplicateText(number int, url, title string, paths, moved []string) *fault.Error {
	e := fault.New(fault.DuplicatePR,
		"%s brings what the open pull request #%d (%s) brings in %s: under another name it is the same change",
		joinPaths(moved), number, url, joinPaths(paths))
	e.Existing = &fault.ExistingPR{Number: number, URL: url, Title: clean(title, maxTitle), Paths: paths}
	return e
}

func duplicateOfOthers(pr gitprovider.PullRequest, overlap []string) *fault.Error {
	e := fault.New(fault.DuplicatePR,
		"the open pull request #%d%s (%s) already changes %s, and the policy lets no two change "+
			"the same file (duplicates: any)", pr.Number, byAuthor(pr), pr.URL,
		joinPaths(overlap))
	e.Existing = &fault.ExistingPR{Number: pr.Number, URL: pr.URL, Title: clean(pr.Title, maxTitle), Paths: overlap}
	return e
}

// foreignOverlaps lists the open pull requests of others that change one of the files, newest first.
func foreignOverlaps(r *createRequest, foreign []gitprovider.PullRequest) []gitprovider.PullRequest {
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
func foreignNotes(r *createRequest, overlaps []gitprovider.PullRequest, unread int) (out []string) {
	for _, pr := range overlaps[:min(len(overlaps), maxForeignNotes)] {
		out = append(out, fmt.Sprintf("#%d%s also changes %s (%s)", pr.Number, byAuthor(pr), joinPaths(r.overlap(pr.Paths)),
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

// cooldownGate denies what a person has rejected lately: it does not come straight back.
func cooldownGate() gate {
	return gate{
		Name: record.GateCooldown, Phase: phasePulls,
		Asks:  "whether a pull request on one of the files, or with one of the texts, was closed without merging lately",
		Judge: judgeCooldown,
	}
}

func judgeCooldown(ctx context.Context, on rules, r *createRequest, e *evidence) (ruling, error) {
	if err := e.rememberPaths(ctx); err != nil {
		return ruling{}, err
	}
	left := func(pr gitprovider.PullRequest) time.Duration {
		return pr.ClosedAt.Add(on.Policy.Limits.Cooldown).Sub(r.started)
	}
	var latest *gitprovider.PullRequest
	var what string
	out := ruling{}
	for i, pr := range e.snapshot.Closed {
		if left(pr) <= 0 || latest != nil && !pr.ClosedAt.After(latest.ClosedAt) {
			continue
		}
		rejected, err := e.rejected(ctx, r, pr)
		if err != nil {
			return ruling{}, err
		}
		lifted, err := e.lifted(ctx, on, pr)
		if err != nil {
			return ruling{}, err
		}
		switch {
		case rejected != "" && lifted != "":
			out.detail = lifted
		case rejected != "":
			latest, what = &e.snapshot.Closed[i], rejected
		}
	}
	if latest == nil {
		return out, nil
	}
	overlap := r.overlap(latest.Paths)
	denial := fault.New(fault.CooldownActive,
		"#%d (%s), which %s, was closed without merging; it may be proposed again in %s",
		latest.Number, latest.URL, what, left(*latest).Round(time.Second))
	denial.RetryAfter = left(*latest)
	denial.Existing = &fault.ExistingPR{
		Number: latest.Number, URL: latest.URL, Title: clean(latest.Title, maxTitle), Paths: overlap,
		LastReview: e.lastRemark(ctx, latest.Number),
	}
	return deny(denial), nil
}

// rejected says what of a request a pull request had that a person has closed; "" for nothing. What is moved to another
// file stays rejected.
func (e *evidence) rejected(ctx context.Context, r *createRequest, pr gitprovider.PullRequest) (what string,
	err error) {
	if overlap := r.overlap(pr.Paths); len(overlap) > 0 {
		what = "changed " + joinPaths(overlap)
	} else {
		moved, err := e.sameTexts(ctx, r, pr)
		if err != nil || len(moved) == 0 {
			return "", err
		}
		what = "brought the same text as " + joinPaths(moved) + " in " + joinPaths(canonicalPaths(pr.Paths))
	}
	byUs, err := e.closedByUs(ctx, pr)
	if err != nil || byUs {
		return "", err
	}
	return what, nil
}

// lifted says who has lifted the cooldown of a closed pull request; "" if it still applies.
func (e *evidence) lifted(ctx context.Context, on rules, pr gitprovider.PullRequest) (string, error) {
	isLabel := func(l string) bool { return strings.EqualFold(l, on.Policy.Limits.CooldownLabel) }
	if on.Policy.Limits.CooldownLabel != "" && slices.ContainsFunc(pr.Labels, isLabel) {
		return fmt.Sprintf("the cooldown of #%d was lifted by its label %s", pr.Number, on.Policy.Limits.CooldownLabel), nil
	}
	repo := e.snapshot.Repo
	key := record.PullKey{Provider: e.resolution.Provider.Name(), Owner: repo.Owner, Repo: repo.Name, Number: pr.Number}
	by, when, err := e.history.CooldownLifted(ctx, key)
	if err != nil || by == "" || when.Before(pr.ClosedAt) { // or it was closed again since
		return "", err
	}
	return fmt.Sprintf("the cooldown of #%d was lifted by %s", pr.Number, clean(by, maxName)), nil
}

// capsGate denies more than an agent may ask of its reviewers. The transaction that reserves asks it, so that callers
// side by side, in whatever process, never pass a cap together.
func capsGate() gate {
	return gate{
		Name: record.GateCaps, Phase: phaseReserve,
		Asks: "how many pull requests are open, and were made within an hour",
		Judge: func(_ context.Context, on rules, r *createRequest, e *evidence) (ruling, error) {
			if r.asked.Revises > 0 {
				return ruling{detail: "a revision opens no pull request"}, nil
			}
			caps := on.Policy.CapsFor(on.Tier)
			if denial := checkCaps(e.snapshot.Repo, caps, e.usage, e.settler.clock.Now()); denial != nil {
				return deny(denial), nil
			}
			return ruling{detail: usedOf(caps, e.usage)}, nil
		},
	}
}

const (
	// waitForPending is the retry delay reported when proposals that are being written fill a cap.
	waitForPending = 30 * time.Second
	// waitForReview is the retry delay reported when open pull requests fill a cap: people have to review them.
	waitForReview = time.Hour
)

// checkCaps returns limit_reached if one more pull request would exceed a cap.
func checkCaps(repo gitprovider.RepoRef, caps policy.Caps, u record.Usage, now time.Time) *fault.Error {
	if u.Open >= caps.OpenPRs {
		e := fault.New(fault.LimitReached,
			"%s has %d open pull requests of ours%s; the policy allows %d. Wait until some are reviewed",
			repo, u.Open, pendingClause(u), caps.OpenPRs)
		e.RetryAfter = waitForReview
		if u.Open-u.Pending < caps.OpenPRs {
			e.RetryAfter = waitForPending
		}
		return e
	}
	created := len(u.Made) + u.Pending
	if created < caps.CreationsPerHour {
		return nil
	}
	e := fault.New(fault.LimitReached, "pull requests opened in %s within the last hour: %d%s; the policy allows %d",
		repo, created, pendingClause(u), caps.CreationsPerHour)
	switch over := created - caps.CreationsPerHour; { // enough must leave the window to make room for one more
	case over < len(u.Made):
		e.RetryAfter = max(u.Made[over].Add(capWindow).Sub(now), time.Second)
	case caps.CreationsPerHour > 0:
		e.RetryAfter = waitForPending
	default:
		e.RetryAfter = capWindow
	}
	return e
}

// pendingClause returns the part of a message that says how many are being made.
func pendingClause(u record.Usage) string {
	if u.Pending == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of them are being made)", u.Pending)
}

// usedOf says for people how far the caps are used.
func usedOf(caps policy.Caps, u record.Usage) string {
	return fmt.Sprintf("%d of %d open, %d of %d in the last hour",
		u.Open, caps.OpenPRs, len(u.Made)+u.Pending, caps.CreationsPerHour)
}
