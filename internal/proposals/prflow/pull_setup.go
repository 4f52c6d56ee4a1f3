package prflow

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// pullSetup gives an open pull request what it shall have beside its content: labels, reviewers, assignees. None of it
// makes the pull request, so each failure is a warning in a successful answer.
type pullSetup struct {
	provider gitprovider.Provider
	repo     gitprovider.RepoRef
	policy   policy.Policy
	log      redactedLog
}

func (c *creation) setup() pullSetup {
	return pullSetup{c.evidence.resolution.Provider, c.evidence.snapshot.Repo, c.rules.Policy, c.log}
}

// setUpPull does that for a pull request that was just opened.
func (s pullSetup) setUpPull(ctx context.Context, pr gitprovider.PullRequest) (warnings []string) {
	return sideBySide(s.log,
		func() string { return s.label(ctx, pr) },
		func() string { return s.assign(ctx, pr, s.policy.Pulls.Reviewers, s.policy.Pulls.Assignees) },
	)
}

// sideBySide runs the steps together and returns the warnings that they end with, if they are not "".
func sideBySide(log redactedLog, steps ...func() (warning string)) []string {
	warnings := make([]string, len(steps))
	var all sync.WaitGroup
	for i, step := range steps {
		all.Go(func() {
			defer caught(log, func() { warnings[i] = "a step after the pull request was opened failed: internal error" })
			warnings[i] = step()
		})
	}
	all.Wait()
	return slices.DeleteFunc(warnings, func(w string) bool { return w == "" })
}

// caught ends a panic in a goroutine of the pipeline, which would end the process, and then calls instead. It is to be
// deferred.
func caught(log redactedLog, instead func()) {
	if p := recover(); p != nil {
		log.Error("panic beside a creation", "panic", p, "stack", string(debug.Stack()))
		instead()
	}
}

// label adds the labels that the pull request lacks. It returns a warning, or "": without labels the pull request is
// still ours by its branch.
func (s pullSetup) label(ctx context.Context, pr gitprovider.PullRequest) (warning string) {
	missing := without(s.policy.Labels, pr.Labels)
	if len(missing) == 0 {
		return ""
	}
	err := s.provider.Label(ctx, s.repo, pr.Number, missing)
	if err == nil {
		return ""
	}
	if details, known := s.lookAgain(ctx, pr, err); known && len(without(missing, details.Labels)) == 0 {
		return ""
	}
	s.log.warn("labels not set", err, "pr", pr.Number)
	return fmt.Sprintf("not all of the labels %v could be set: %s", missing, s.log.redactedMessage(err))
}

// without gives the names that are not among the others, letter case aside: forges differ in whether it counts.
func without(names, others []string) []string {
	var out []string
	for _, name := range names {
		if !slices.ContainsFunc(others, func(other string) bool { return strings.EqualFold(other, name) }) {
			out = append(out, name)
		}
	}
	return out
}

// lookAgain reads the pull request's settings after a write with an unknown outcome. known is false after a definite
// failure, and if the read fails.
func (s pullSetup) lookAgain(ctx context.Context, pr gitprovider.PullRequest, failure error) (_ gitprovider.Details,
	known bool) {
	editor, can := s.provider.(gitprovider.Editor)
	if !can || !fault.CodeOf(failure).Ambiguous() {
		return gitprovider.Details{}, false
	}
	details, err := editor.Details(ctx, s.repo, pr.Number)
	return details, err == nil
}

// asksPeople reports whether the policy names somebody and the provider knows such things.
func (s pullSetup) asksPeople() bool {
	_, can := s.provider.(gitprovider.Assigner)
	return can && len(s.policy.Pulls.Reviewers)+len(s.policy.Pulls.Assignees) > 0
}

// notAsked lists those of the policy's people that were neither asked for a review nor gave one, and those who are not
// assigned. A team whose member has reviewed is not asked any more, so that any review counts for it.
func (s pullSetup) notAsked(d gitprovider.Details) (reviewers, assignees []string) {
	for _, name := range without(s.policy.Pulls.Reviewers, append(slices.Clone(d.Requested), d.Reviewed...)) {
		if isTeam := strings.Contains(name, "/"); !isTeam || len(d.Reviewed) == 0 {
			reviewers = append(reviewers, name)
		}
	}
	return reviewers, without(s.policy.Pulls.Assignees, d.Assignees)
}

// assign asks for the reviews and assigns the people, if the provider knows such things.
func (s pullSetup) assign(ctx context.Context, pr gitprovider.PullRequest,
	reviewers, assignees []string) (warning string) {
	provider, can := s.provider.(gitprovider.Assigner)
	if !can || len(reviewers)+len(assignees) == 0 {
		return ""
	}
	err := provider.Assign(ctx, s.repo, pr.Number, reviewers, assignees)
	if err == nil {
		return ""
	}
	if details, known := s.lookAgain(ctx, pr, err); known {
		if toReview, toAssign := s.notAsked(details); len(toReview)+len(toAssign) == 0 {
			return ""
		}
	}
	return s.peopleWarning(pr, err)
}

func (s pullSetup) peopleWarning(pr gitprovider.PullRequest, err error) string {
	s.log.warn("people not asked", err, "pr", pr.Number)
	return "not everybody could be asked for a review or assigned: " + s.log.redactedMessage(err)
}

// askAgain asks those reviewers and assignees of the policy that were not asked, as when the process ended before it
// came to that. What people have done about either since is not undone: who has reviewed is not asked again, and
// assignees are set only where there is none.
func (s pullSetup) askAgain(ctx context.Context, pr gitprovider.PullRequest) (warning string) {
	editor, can := s.provider.(gitprovider.Editor)
	if !can || !s.asksPeople() {
		return ""
	}
	details, err := editor.Details(ctx, s.repo, pr.Number)
	if err != nil {
		return s.peopleWarning(pr, err)
	}
	reviewers, assignees := s.notAsked(details)
	if len(details.Assignees) > 0 {
		assignees = nil
	}
	return s.assign(ctx, pr, reviewers, assignees)
}

// What follows takes a pull request back that turns out to be the second one on the same files: two processes with
// records of their own have opened one at the same moment. The older one stays.

// olderPulls returns the open pull requests of ours with a lower number that change one of the files.
func (s *settler) olderPulls(
	ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef, number int, paths []string,
) ([]gitprovider.PullRequest, error) {
	open, err := p.OpenOurs(ctx, repo, number)
	if err != nil {
		return nil, err
	}
	reader, err := s.marksOf(p.Name(), repo)
	return slices.DeleteFunc(open, func(other gitprovider.PullRequest) bool {
		_, isTrue := reader.firstSigned(other)
		return !isTrue && !gitprovider.ClearlyOurs(other) || len(overlap(paths, other.Paths)) == 0
	}), err
}

// withdrawSecond closes the pull request of the request with this id and removes its branch, unless the branch was
// changed.
func (s *settler) withdrawSecond(
	ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef, id string, pr gitprovider.PullRequest,
	older []gitprovider.PullRequest,
) error {
	err := s.ledger.Advance(ctx, id, record.Progress{State: record.StateCommitted, Commit: pr.HeadCommit, Undone: true})
	if err != nil {
		return err
	}
	reader, err := s.marksOf(p.Name(), repo)
	if err != nil {
		return err
	}
	err = withdraw(ctx, p, repo, reader, pr,
		fmt.Sprintf("Withdrawn by Claude Ops: #%d, opened at the same moment, changes the same files.", older[0].Number))
	if err != nil && (!fault.CodeOf(err).Ambiguous() || !isWithdrawn(ctx, p, repo, pr, reader)) {
		return err
	}
	if slices.ContainsFunc(older, func(o gitprovider.PullRequest) bool { return o.Branch == pr.Branch }) {
		return nil
	}
	if err := p.DeleteBranch(ctx, repo, pr.Branch, pr.HeadCommit); err != nil {
		s.log.warn("branch of a withdrawn pull request not removed", err, "branch", pr.Branch)
	}
	return nil
}

// isWithdrawn looks whether the pull request was withdrawn after all.
func isWithdrawn(
	ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef, pr gitprovider.PullRequest, reader markReader,
) bool {
	found, err := p.FindByHead(ctx, repo, pr.Branch)
	return err == nil && found != nil && found.Number == pr.Number && found.State == gitprovider.StateClosed &&
		reader.withdrawn(*found)
}

// mayPass reports whether a failure may be over when the same is tried later.
func mayPass(err error) bool {
	code := fault.CodeOf(err)
	return code.Ambiguous() || code == fault.RateLimited
}

// olderPulls returns the pull requests that were opened since the snapshot, by processes with records of their own.
// They are not looked for where there can be none: at a host whose pull requests are in our records, and when ours has
// the number after the highest one of the snapshot.
func (w *writer) olderPulls(ctx context.Context, pr gitprovider.PullRequest) ([]gitprovider.PullRequest, error) {
	if w.provider.Lateness() == 0 || pr.Number == w.creation.evidence.snapshot.LastNumber+1 {
		return nil, nil
	}
	return w.settler.olderPulls(ctx, w.provider, w.repo, pr.Number, w.creation.request.paths())
}

// withdrawNewer takes the pull request back that this creation has just opened, since an older one of ours changes the
// same files. The answer is that of the duplicate gate. If it cannot be taken back, it stays, and a warning says so:
// then neither a pull request nor an error is returned.
func (w *writer) withdrawNewer(ctx context.Context, pr gitprovider.PullRequest,
	olderPulls []gitprovider.PullRequest) (*sameChange, error) {
	c, older := w.creation, olderPulls[0]
	if err := w.withdraw(ctx, pr, olderPulls); err != nil {
		w.withdrawUnsettled = mayPass(err)
		c.log.warn("second pull request not withdrawn", err, "pr", pr.Number)
		advice := "close one of them"
		if w.withdrawUnsettled {
			advice = "it is tried again later, or at once by the identical call"
		}
		c.warnings = append(c.warnings,
			fmt.Sprintf("#%d, opened at the same moment, changes the same files, and this one could "+
				"not be withdrawn: %s", older.Number, advice))
		return nil, nil
	}
	c.evidence.snapshot.Open, w.creation.commit = olderPulls, ""
	if err := c.evidence.sortByOrigin(c.evidence.snapshot); err != nil {
		return nil, err
	}
	same, err := c.runGates(ctx, phasePulls)
	if err == nil && same == nil { // it has changed in between
		err = c.denyDuplicate(older.Number, older.URL, older.Title, older.Paths)
	}
	return same, err
}

// withdraw closes the pull request that this creation has opened, unless its branch was changed.
func (w *writer) withdraw(ctx context.Context, pr gitprovider.PullRequest, older []gitprovider.PullRequest) error {
	draft := w.creation.draft
	if w.creation.commit == "" || pr.HeadCommit != "" && pr.HeadCommit != w.creation.commit {
		return fault.New(fault.Conflict, "the branch %s has moved", draft.branch)
	}
	pr.Body, pr.Branch, pr.HeadCommit = draft.body, draft.branch, w.creation.commit
	return w.settler.withdrawSecond(ctx, w.provider, w.repo, w.creation.request.id, pr, older)
}

// notLookedFor notes that it is not known whether an older pull request changes the same files.
func (w *writer) notLookedFor(pr gitprovider.PullRequest, err error) {
	c := w.creation
	w.withdrawUnsettled = mayPass(err)
	c.log.warn("others' pull requests not looked for", err, "pr", pr.Number)
	advice := "look for one"
	if w.withdrawUnsettled {
		advice = "it is looked for later, or at once by the identical call, and this one is withdrawn if there is one"
	}
	c.warnings = append(c.warnings,
		"it could not be seen whether a pull request on the same files was opened at the same moment: "+advice)
}

// withdrawIfSecond ends a proposal that was left if its open pull request is the second one on its files. ended is
// false if it is not, or cannot be withdrawn for good.
func (s *settler) withdrawIfSecond(
	ctx context.Context, p gitprovider.Provider, left record.Proposal, pr gitprovider.PullRequest,
) (ended bool, err error) {
	if p.Lateness() == 0 || left.Commit == "" || pr.HeadCommit != left.Commit { // or somebody has changed its branch
		return false, nil
	}
	older, err := s.olderPulls(ctx, p, repoOf(left), pr.Number, pathsOf(left))
	older = slices.DeleteFunc(older, func(other gitprovider.PullRequest) bool { // it was judged when this one was proposed
		return other.CreatedAt.Before(left.CreatedAt.Add(-p.Lateness()))
	})
	switch {
	case err != nil && mayPass(err):
		return false, err
	case err != nil:
		s.log.warn("others' pull requests not looked for", err, "pr", pr.Number)
	}
	if len(older) == 0 {
		return false, nil
	}
	err = s.withdrawSecond(ctx, p, repoOf(left), left.ID, pr, older)
	switch {
	case err != nil && mayPass(err):
		return false, err
	case err != nil:
		s.log.warn("second pull request not withdrawn", err, "pr", pr.Number)
		return false, nil
	}
	return true, s.finishProposal(ctx, left, record.OutcomeFailed, record.Progress{State: record.StateFailed}, fmt.Sprintf(
		"settled after its process ended: #%d was withdrawn, since #%d, opened at the same moment, changes the same files",
		pr.Number, older[0].Number))
}
