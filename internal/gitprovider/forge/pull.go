// Package forge holds what the adapters of GitHub and Gitea have in common: words of refusals, the ways of deleting and
// undoing a branch, of naming people and of asking again, what is remembered between calls, and reads side by side.
//
// It speaks to no forge itself. Where a rule needs one, the adapter gives it a function or fulfils a small interface.
package forge

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// RefusedNames asks for all the names at once and, if that is refused, for each alone: forges refuse a whole request
// for one name without saying which. It returns the names that are refused alone.
func RefusedNames(names []string, isRefusal func(error) bool, ask func(names ...string) error) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	err := ask(names...)
	switch {
	case !isRefusal(err):
		return nil, err
	case len(names) == 1:
		return names, nil
	}
	var refused []string
	for _, name := range names {
		switch err := ask(name); {
		case isRefusal(err):
			refused = append(refused, name)
		case err != nil:
			return nil, err
		}
	}
	return refused, nil
}

// Without gives those of the names that are not had, letter case as have compares it.
func Without(names []string, have func(name string) bool) []string {
	var out []string
	for _, name := range names {
		if !have(name) {
			out = append(out, name)
		}
	}
	return out
}

// WithdrawalFields returns the fields of a pull request to change for a withdrawal. The error says why it may not be
// withdrawn.
func WithdrawalFields(w gitprovider.Withdrawal, pr gitprovider.PullRequest) (map[string]string, error) {
	if err := w.Check(pr); err != nil {
		return nil, err
	}
	fields := map[string]string{"body": w.Body}
	if pr.State == gitprovider.StateOpen {
		fields["state"] = "closed"
	}
	return fields, nil
}

// ClosingFields returns the fields of an open pull request to change to close it.
func ClosingFields(c gitprovider.Closing) map[string]string {
	return map[string]string{"body": c.Body, "state": "closed"}
}

// Changed is a forge's answer to a change of a pull request.
type Changed struct {
	State  string `json:"state"` // open or closed
	Merged bool   `json:"merged"`
}

// PullState returns the state in the port's terms; "" if the forge did not say.
func (c Changed) PullState() gitprovider.State {
	if c.Merged {
		return gitprovider.StateMerged
	}
	return gitprovider.State(c.State)
}

// TextFields returns the fields of a pull request to change for a new title and body.
func TextFields(title, body string) map[string]string {
	fields := map[string]string{"body": body}
	if title != "" {
		fields["title"] = title
	}
	return fields
}

// SortRemarks sorts by time; of two at the same time, the one that stands first stays so.
func SortRemarks(remarks []gitprovider.Remark) {
	slices.SortStableFunc(remarks, func(a, b gitprovider.Remark) int { return a.At.Compare(b.At) })
}

// Checks returns the outcome of CI: one failing context fails, whatever the forge sums up.
func Checks(state gitprovider.ChecksState, failing []gitprovider.FailedCheck) gitprovider.Checks {
	if len(failing) > 0 {
		state = gitprovider.ChecksFailure
	}
	slices.SortStableFunc(failing, func(a, b gitprovider.FailedCheck) int { return strings.Compare(a.Name, b.Name) })
	failing = slices.CompactFunc(failing, func(a, b gitprovider.FailedCheck) bool { return a.Name == b.Name })
	out := gitprovider.Checks{State: state, Details: failing}
	for _, check := range failing {
		out.Failing = append(out.Failing, check.Name)
	}
	return out
}

// Branches is an adapter's access to branches.
type Branches interface {
	// Tip gives a branch's commit as git has it now, "" if there is none. not_found for a missing repository.
	Tip(ctx context.Context, repo gitprovider.RepoRef, branch string) (string, error)
	// Remove deletes a branch, if the forge can under the condition that its tip is the given commit.
	Remove(ctx context.Context, repo gitprovider.RepoRef, branch, tip string) error
}

// DeleteBranch keeps what gitprovider.Provider promises of its method: it looks, deletes, and looks again if that was
// refused. So the forge's words are not needed to tell why.
func DeleteBranch(ctx context.Context, b Branches, repo gitprovider.RepoRef, branch, tip string) error {
	if err := gitprovider.CheckOurs(branch); err != nil {
		return err
	}
	if tip == "" {
		return fault.New(fault.InvalidArgument, "the branch %s can only be deleted with its expected commit", branch)
	}
	have, err := b.Tip(ctx, repo, branch)
	switch {
	case err != nil || have == "":
		return err
	case have != tip:
		return branchMoved(branch)
	}
	return removeBranch(ctx, b, repo, branch, tip)
}

// removeBranch is DeleteBranch without the first look. A branch that is gone already is not an error.
func removeBranch(ctx context.Context, b Branches, repo gitprovider.RepoRef, branch, tip string) error {
	failure := b.Remove(ctx, repo, branch, tip)
	if failure == nil {
		return nil
	}
	have, err := b.Tip(ctx, repo, branch)
	switch {
	case err != nil:
		return failure
	case have == "":
		return nil
	case have != tip:
		return branchMoved(branch)
	}
	return failure
}

func branchMoved(branch string) error {
	return fault.New(fault.Conflict, "the branch %s has moved since, so it was not deleted; somebody has added to it",
		branch)
}

// undoTime bounds the removal of a branch that is not to stay. It runs also when the caller has given up.
const undoTime = 30 * time.Second

// Undo removes the request's branch, which is not to stay, if its tip is the given commit, and returns the failure for
// which it does. If a commit of ours may remain, the error says that by its code, so that somebody looks; a branch that
// somebody took before there was one is theirs.
func Undo(ctx context.Context, b Branches, req gitprovider.CommitRequest, tip string, failure error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	err := DeleteBranch(ctx, b, req.Snapshot.Repo, req.Branch, tip)
	if err == nil || fault.CodeOf(err) == fault.Conflict && tip == req.Snapshot.BaseCommit {
		return failure
	}
	return fault.Wrap(err, fault.UpstreamError, "%s; and the branch %s could not be removed again: %s",
		fault.From(failure).Message, req.Branch, fault.From(err).Message)
}

// looksAgain limits how often Settled reads again.
const looksAgain = 3

// Settled reads again what the forge is still working on: after a step, two steps and three, then it takes what it got.
func Settled[T any](ctx context.Context, value T, working func(T) bool, step time.Duration,
	sleep func(context.Context, time.Duration), read func() (T, error)) (T, error) {
	for i := 1; i <= looksAgain && working(value); i++ {
		sleep(ctx, time.Duration(i)*step)
		next, err := read()
		if err != nil {
			return value, err
		}
		value = next
	}
	return value, nil
}

// sideBySide limits the concurrent requests of one call.
const sideBySide = 8

// Together runs independent reads side by side, all of them to their end, and returns the error of the first in order
// that failed: which one is reported must not depend on which answer came first.
func Together(reads ...func() error) error {
	errs := make([]error, len(reads))
	var group sync.WaitGroup
	for i, read := range reads {
		group.Go(func() { errs[i] = read() })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Into returns a read for Together that keeps its value.
func Into[T any](value *T, read func() (T, error)) func() error {
	return func() (err error) {
		*value, err = read()
		return err
	}
}

// Each does the same for every item, sideBySide of them at a time. The first failure ends the others.
func Each[T any](ctx context.Context, items []T, do func(ctx context.Context, i int, item T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for i, item := range items {
		group.Go(func() error { return do(ctx, i, item) })
	}
	return group.Wait()
}
