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

// complete does that for a pull request that was just opened.
func (s pullSetup) complete(ctx context.Context, pr gitprovider.PullRequest) (warnings []string) {
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
	return fmt.Sprintf("not all of the labels %v could be set: %s", missing, s.log.shown(err))
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
	return "not everybody could be asked for a review or assigned: " + s.log.shown(err)
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
