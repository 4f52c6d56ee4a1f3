package prflow

import (
	"context"
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// maxAbove bounds how many commits that people have pushed onto a revision are looked through to find it.
const maxAbove = 20

// endRevision ends a revision that its process has left: if the branch has its commit, title, body and answer are
// completed; otherwise nothing of it remains, once the commit cannot arrive any more.
func (s *settler) endRevision(ctx context.Context, p gitprovider.Provider, left record.Proposal) error {
	if len(left.Files) == 0 {
		return s.endReplies(ctx, p, left)
	}
	commit, err := s.revisionOf(ctx, p, left)
	switch {
	case err != nil:
		return err
	case commit == "":
		if wait := s.lateFor(p, left); wait > 0 {
			return &lateError{until: s.clock.Now().Add(wait), err: stillLate(left, wait)}
		}
		return s.end(ctx, left, record.OutcomeFailed, record.Progress{State: record.StateFailed},
			fmt.Sprintf("settled after its process ended: nothing was added to #%d", left.Revises))
	case left.Commit == "":
		if err := s.ledger.Advance(ctx, left.ID, record.Progress{State: record.StateCommitted, Commit: commit}); err != nil {
			return err
		}
		left.Commit = commit
	}
	pr, err := p.FindByHead(ctx, repoOf(left), left.Branch)
	if err != nil {
		return err
	}
	to := record.Progress{State: record.StateOpened, Commit: commit, PRNumber: left.Revises, PRURL: left.PRURL}
	said := "settled after its process ended: the branch has the commit"
	if pr != nil && pr.Number == left.Revises {
		to.PRURL = pr.URL
		if pr.State != gitprovider.StateOpen {
			return s.endMissed(ctx, p, left, *pr, to)
		}
		switch state, posted, err := s.completeRevision(ctx, p, left, *pr); {
		case err != nil:
			return err
		case hasEnded(state):
			pr.State = state
			return s.endMissed(ctx, p, left, *pr, to)
		case len(left.Answers) > 0:
			said += "; " + saidPosted(posted, left.Answers)
		}
	}
	return s.end(ctx, left, record.OutcomeRevised, to, said)
}

// endMissed ends a revision whose pull request is not open any more: it was made only if its commit was part of it.
func (s *settler) endMissed(ctx context.Context, p gitprovider.Provider, left record.Proposal,
	pr gitprovider.PullRequest, to record.Progress) error {
	had := pr.HeadCommit == left.Commit
	if !had {
		var err error
		if had, err = tookIn(ctx, p, repoOf(left), pr.Base, pr.State, changesOf(left)); err != nil {
			return err
		}
	}
	if had {
		return s.end(ctx, left, record.OutcomeRevised, to, "settled after its process ended: the branch has the commit")
	}
	return s.end(ctx, left, record.OutcomeFailed, record.Progress{State: record.StateFailed, Commit: left.Commit},
		"settled after its process ended: "+missed(pr, pr.State, left.Commit).Message)
}

// revisionOf finds the commit of a revision on its branch, below what people have pushed since; "" if it is not there.
// The record may know one that somebody has removed since; only where the branch is gone it is believed.
func (s *settler) revisionOf(ctx context.Context, p gitprovider.Provider, left record.Proposal) (string, error) {
	at, err := p.BranchTip(ctx, repoOf(left), left.Branch)
	if err == nil && at == "" {
		return left.Commit, nil
	}
	for range maxAbove {
		if err != nil || at == "" || at == left.BaseCommit {
			return "", err
		}
		if at == left.Commit {
			return at, nil
		}
		info, readErr := p.ReadCommit(ctx, repoOf(left), at)
		if readErr != nil {
			return "", readErr
		}
		isIts, signErr := s.isCommitOf(left, info)
		if signErr != nil || isIts {
			return at, signErr
		}
		if len(info.Parents) == 0 {
			break
		}
		at = info.Parents[0]
	}
	return "", nil
}

// isCommitOf reports whether a commit is the one that the proposal's process has made.
func (s *settler) isCommitOf(left record.Proposal, info gitprovider.CommitInfo) (bool, error) {
	content, request, marked := readCommitMark(info)
	if !marked || request != left.ID || content != contentDigest(changesOf(left)) {
		return false, nil
	}
	// it came onto what somebody had pushed; its signature names the former head
	if !slices.Contains(info.Parents, left.BaseCommit) {
		info.Parents = []string{left.BaseCommit}
	}
	return s.signedCommit(left.Provider, repoOf(left).String(), left.Branch, info)
}

// completeRevision sets title and body, if nothing else has come onto the commit, and sees to the answers. What is
// on the branch git says: a forge's lists show the former head for a while. It returns the state of the pull request,
// if the forge told it, and answers none that has ended. posted counts the answers that are there then.
func (s *settler) completeRevision(ctx context.Context, p gitprovider.Provider, left record.Proposal,
	pr gitprovider.PullRequest) (
	state gitprovider.State, posted int, err error) {
	marks, err := s.marksOf(left.Provider, repoOf(left))
	if err != nil {
		return "", 0, err
	}
	editor, can := p.(gitprovider.Editor)
	if m, isTrue := marks.read(pr); can && (!isTrue || m.RevisedBy != left.ID) {
		tip, err := p.BranchTip(ctx, repoOf(left), left.Branch)
		if err == nil && tip == left.Commit {
			title := revisedTitle(pr.Title, left.Title)
			if len(left.Files) == 0 { // answers leave the title alone
				title = ""
			}
			state, err = editor.SetText(ctx, repoOf(left), pr.Number, title, left.Body)
		}
		switch {
		case err != nil && mayPass(err):
			return "", 0, err
		case err != nil:
			s.log.warn("text not set", err, "pr", pr.Number, "request_id", left.ID)
		case hasEnded(state):
			return state, 0, nil
		}
	}
	posted, err = s.answerOnce(ctx, p, left, pr)
	return state, posted, err
}

// answerOnce posts what of the answers is not there, once it is certain that it does not arrive any more.
func (s *settler) answerOnce(ctx context.Context, p gitprovider.Provider, left record.Proposal,
	pr gitprovider.PullRequest) (posted int, err error) {
	a := answersOf(p, left, pr)
	due, err := a.look(ctx)
	if err != nil || due.none() {
		return a.posted(due), err
	}
	if wait := s.lateFor(p, left); left.PRNumber > 0 && wait > 0 {
		return 0, &lateError{until: s.clock.Now().Add(wait), err: stillLate(left, wait)}
	}
	err = s.ledger.Advance(ctx, left.ID, record.Progress{State: record.StateCommitted, PRNumber: pr.Number, PRURL: pr.URL})
	if err != nil {
		return 0, err
	}
	due, err = a.post(ctx, due)
	if err != nil && !mayPass(err) {
		s.log.warn("review not answered", err, "pr", pr.Number, "request_id", left.ID)
		err = nil
	}
	return a.posted(due), err
}

// endReplies ends a proposal without a commit that its process has left: if it has begun to post, the rest is posted.
func (s *settler) endReplies(ctx context.Context, p gitprovider.Provider, left record.Proposal) error {
	const settled = "settled after its process ended: "
	if left.PRNumber == 0 {
		return s.end(ctx, left, record.OutcomeFailed, record.Progress{State: record.StateFailed},
			fmt.Sprintf("%snothing was answered on #%d", settled, left.Revises))
	}
	pr, err := p.FindByHead(ctx, repoOf(left), left.Branch)
	if err != nil {
		return err
	}
	state, posted := gitprovider.StateClosed, 0
	if pr != nil && pr.Number == left.Revises && pr.State == gitprovider.StateOpen {
		if state, posted, err = s.completeRevision(ctx, p, left, *pr); err != nil {
			return err
		}
	} else if pr != nil && pr.Number == left.Revises {
		state = pr.State
		there, err := answersOf(p, left, *pr).look(ctx)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return err
		}
		posted = answersOf(p, left, *pr).posted(there)
	}
	said := settled + saidPosted(posted, left.Answers)
	if hasEnded(state) {
		return s.end(ctx, left, record.OutcomeFailed, record.Progress{State: record.StateFailed},
			fmt.Sprintf("%s; #%d is %s", said, left.Revises, state))
	}
	return s.end(ctx, left, record.OutcomeRevised,
		record.Progress{State: record.StateOpened, Commit: left.Commit, PRNumber: left.Revises, PRURL: left.PRURL}, said)
}
