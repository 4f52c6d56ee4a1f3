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
)

// maxNames bounds how often a branch is tried to be made: three names, and some that vanish in between.
const maxNames = 8

// branchKind says what a branch of the name that we want holds.
type branchKind int

const (
	branchTheirs branchKind = iota // something else
	branchOurs                     // exactly our change on the base: the same tree
	branchBare                     // nothing beyond the base: somebody is between branch and commit, or has died there
)

// makerWaits returns the pauses in which another process that made the branch of the same change may still open its
// pull request. After them the branch counts as abandoned.
func makerWaits() []time.Duration {
	return []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
}

// commitBranch makes branch and commit, or finds the pull request that somebody else has made of the same change.
func (w *writer) commitBranch(ctx context.Context) (same *sameChange, err error) {
	for range maxNames {
		err = w.tryCommit(ctx)
		if fault.CodeOf(err) != fault.Conflict || w.creation.commit != "" {
			return nil, err
		}
		if same, err = w.nameTaken(ctx, err); err != nil || same != nil || w.creation.commit != "" {
			return same, err
		}
	}
	return nil, fault.New(fault.Conflict,
		"the branch %s of %s is made and removed by others again and again; try again later",
		w.creation.draft.branch, w.repo)
}

// tryCommit sets the commit when it is certain that branch and commit exist.
func (w *writer) tryCommit(ctx context.Context) error {
	message, err := w.commitMessage()
	if err != nil {
		return err
	}
	c := w.creation
	made, err := w.provider.Commit(ctx, gitprovider.CommitRequest{
		Snapshot: c.evidence.snapshot, Branch: c.draft.branch, Changes: c.request.changes, Message: message,
		Time: c.request.started,
	})
	if err == nil {
		return w.committed(ctx, made.ID)
	}
	return w.lookForBranch(ctx, err)
}

// commitMessage returns the title, where the commit comes from, and our mark.
func (w *writer) commitMessage() (string, error) {
	key, err := w.service.Proof.Key()
	if err != nil {
		return "", err
	}
	c := w.creation
	m := commitMark{
		Provider: w.provider.Name(), Repo: strings.ToLower(w.repo.String()), Branch: c.draft.branch,
		Parent: c.evidence.parent(), Content: contentDigest(c.request.changes.Changes()), Request: c.request.id,
	}
	line, err := m.sign(key)
	return fmt.Sprintf("%s\n\nProposed through Claude Ops at tier %s, request %s.\n\n%s\n", c.draft.title, c.rules.Tier,
		c.request.id, line), err
}

// committed records that the branch has our commit.
func (w *writer) committed(ctx context.Context, id string) error {
	w.creation.commit = id
	w.service.reachStep("committed")
	err := w.creation.advance(ctx, record.Progress{State: record.StateCommitted, Commit: id})
	w.service.reachStep("commit recorded")
	return err
}

// lookForBranch settles a failed Commit by looking. A definite answer stands; after an ambiguous one the branch may
// exist, and if it holds exactly our change, it is taken as made. That there is none says something only where nothing
// comes late.
func (w *writer) lookForBranch(ctx context.Context, failure error) error {
	if !fault.CodeOf(failure).Ambiguous() {
		return failure
	}
	tip, err := w.provider.BranchTip(ctx, w.repo, w.creation.draft.branch)
	if err != nil {
		return failure
	}
	kind := branchTheirs
	if tip != "" {
		kind, err = w.classifyTip(ctx, tip)
	}
	switch {
	case err != nil:
		return failure
	case kind == branchOurs:
		return w.committed(ctx, tip)
	}
	w.noEffect = kind == branchTheirs && w.provider.Lateness() == 0
	return failure
}

// nameTaken decides what to do about a branch that somebody has made since the snapshot. It reveals a race that our own
// records do not show (another state folder, or one that was lost), so the gates of the pull requests are asked again.
// A branch that is exactly our change is taken over, and sets the commit; beside any other one the next name is chosen.
// With neither a pull request, an error nor a commit the caller is to try again.
func (w *writer) nameTaken(ctx context.Context, failure error) (same *sameChange, err error) {
	for _, wait := range append(makerWaits(), 0) {
		tip, err := w.provider.BranchTip(ctx, w.repo, w.creation.draft.branch)
		if err != nil {
			return nil, failure
		}
		kind, gone, err := w.classifyNew(ctx, tip)
		switch {
		case gone && !w.vanished: // its maker may have withdrawn it in between
			w.vanished = true
			return nil, nil
		case gone: // the base has moved, or a branch above or below is in the way
			return nil, failure
		case err != nil:
			return nil, err
		}
		if !w.tookOver || kind == branchTheirs {
			if same, err := w.creation.judgePullsAgain(ctx); err != nil || same != nil {
				return same, err
			}
		}
		switch {
		case kind == branchTheirs:
			return nil, w.nextBranch(ctx, failure)
		case wait == 0 || w.tookOver ||
			w.provider.Lateness() == 0: // otherwise a process working on it would hold the files in our records
			return nil, w.takeBranch(ctx, kind, tip, failure)
		}
		w.creation.call.Progress("waiting for a call that makes the same change")
		w.service.Clock.Sleep(ctx, wait)
	}
	return nil, failure
}

// classifyNew classifies a branch that somebody has made at tip. gone means that it is withdrawn by now: there is no
// tip, or what it named is not there any more.
func (w *writer) classifyNew(ctx context.Context, tip string) (kind branchKind, gone bool, err error) {
	if tip == "" {
		return branchTheirs, true, nil
	}
	kind, err = w.classifyTip(ctx, tip)
	return kind, fault.CodeOf(err) == fault.NotFound, err
}

// takeBranch takes over a branch that no process works on, unless it belongs to a pull request that has ended. A branch
// without a commit of ours is removed and created again.
func (w *writer) takeBranch(ctx context.Context, kind branchKind, tip string, failure error) error {
	branch := w.creation.draft.branch
	if kind == branchOurs {
		pr, err := w.provider.FindByHead(ctx, w.repo, branch)
		switch {
		case err != nil:
			return err
		case pr != nil && pr.State != gitprovider.StateOpen && pr.HeadCommit == tip:
			return w.nextBranch(ctx, failure)
		}
		return w.committed(ctx, tip)
	}
	err := w.provider.DeleteBranch(ctx, w.repo, branch, tip)
	if fault.CodeOf(err) == fault.Conflict { // its commit has arrived
		return nil
	}
	return err
}

// nextBranch moves on to the next name, if there is one.
func (w *writer) nextBranch(ctx context.Context, failure error) error {
	names := branchNames(&w.creation.request)
	next := slices.Index(names, w.creation.draft.branch) + 1
	if next == len(names) {
		return failure
	}
	if err := w.rename(names[next]); err != nil {
		return err
	}
	return w.creation.advance(ctx, record.Progress{State: record.StateReserved, Branch: names[next]})
}

// rename makes the draft for another branch.
func (w *writer) rename(branch string) error {
	w.tookOver = false
	return w.creation.draftOn(branch)
}

// classifyTip says what a commit at the tip of the branch is.
func (w *writer) classifyTip(ctx context.Context, tip string) (branchKind, error) {
	base, r := w.creation.evidence.parent(), &w.creation.request
	if tip == base {
		return branchBare, nil
	}
	info, err := w.provider.ReadCommit(ctx, w.repo, tip)
	if err != nil {
		return branchTheirs, err
	}
	if !slices.Equal(info.Parents, []string{base}) || !slices.Equal(info.Paths, r.paths()) {
		return branchTheirs, nil
	}
	holds, err := branchHolds(ctx, w.provider, w.repo, w.creation.draft.branch, r.changes.Changes())
	if err != nil || !holds {
		return branchTheirs, err
	}
	return branchOurs, nil
}
