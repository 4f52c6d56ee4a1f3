package prflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// settler ends the proposals that another process has left unfinished, or that got no clear answer. It is safe for
// concurrent use.
type settler struct {
	ledger   Ledger
	history  History
	registry *gitprovider.Registry
	key      func() ([]byte, error)
	clock    Clock
	log      redactedLog
}

func (s *Service) settler() *settler {
	return &settler{s.Ledger, s.History, s.Registry, s.Proof.Key, s.Clock, s.log()}
}

// writeTimeout bounds the time from the reservation to the last remote write. It is generous: every provider has
// tighter limits of its own.
const writeTimeout = 4 * time.Minute

// lease is the age at which a reservation counts as abandoned if the store does not know its holder. It is longer than
// writeTimeout, so a live process has finished or given up by then.
const lease = writeTimeout + 30*time.Second

// settleGrace is the wait of a settlement before it looks: writes that a killed process had just sent may still arrive.
const settleGrace = 250 * time.Millisecond

// abandoned reports whether no process works any more on a proposal that holds a reservation. A live process gives up
// within writeTimeout, so age counts only for a proposal whose holder is unknown.
func (s *settler) abandoned(p record.Proposal) bool {
	live := p.State == record.StateReserved || p.State == record.StateCommitted
	old := p.Holder == "" && s.clock.Now().Sub(p.CreatedAt) > lease
	return p.State == record.StateUnsettled || live && (p.Abandoned || old)
}

// findPull finds the pull request of a proposal that was left, nil if there is none, and says whether we have begun to
// undo that proposal.
func (s *settler) findPull(ctx context.Context, p gitprovider.Provider, left record.Proposal) (
	pr *gitprovider.PullRequest, undone bool, err error) {
	if undone, err = s.history.Undone(ctx, left.ID); err != nil {
		return nil, false, err
	}
	pr, err = p.FindByHead(ctx, repoOf(left), left.Branch)
	if err != nil || pr == nil {
		return nil, undone, err
	}
	ours, err := s.owns(left, *pr)
	if err != nil || !ours {
		return nil, undone, err
	}
	return pr, undone, nil
}

// owns reports whether a pull request with the proposal's branch is the proposal's own: by its commit, or by its mark.
// The name of the branch alone says nothing, since an earlier proposal, or one that raced, may have used it.
func (s *settler) owns(p record.Proposal, pr gitprovider.PullRequest) (bool, error) {
	if p.Commit != "" && pr.HeadCommit == p.Commit {
		return true, nil
	}
	reader, err := s.marksOf(p.Provider, repoOf(p))
	if err != nil {
		return false, err
	}
	m, isTrue := reader.firstSigned(pr)
	return isTrue && m.Request == p.ID, nil
}

func (s *settler) marksOf(provider string, repo gitprovider.RepoRef) (markReader, error) {
	key, err := s.key()
	return newMarkReader(key, provider, repo), err
}

func repoOf(p record.Proposal) gitprovider.RepoRef {
	return gitprovider.RepoRef{Owner: p.Owner, Name: p.Repo}
}

func pathsOf(p record.Proposal) (paths []string) {
	for _, f := range p.Files {
		paths = append(paths, f.Path)
	}
	return paths
}

func (s *settler) providerOf(left record.Proposal) (gitprovider.Provider, error) {
	for _, entry := range s.registry.Entries() {
		if entry.Name == left.Provider && entry.Provider != nil {
			return entry.Provider, nil
		}
	}
	return nil, fault.New(fault.ProviderDisabled,
		"a proposal left unfinished at the provider %s (request %s) holds these files, and that provider is not enabled",
		left.Provider, left.ID)
}

func (s *settler) finishProposal(ctx context.Context, left record.Proposal, outcome record.Outcome, to record.Progress,
	message string) error {
	err := s.ledger.Finish(ctx, left.ID, to, s.settledRow(left, outcome, to, message))
	if fault.CodeOf(err) == fault.Conflict { // somebody else settled it meanwhile
		return nil
	}
	return err
}

// settledRow returns the audit row for an abandoned proposal that was settled.
func (s *settler) settledRow(left record.Proposal, outcome record.Outcome, to record.Progress,
	message string) record.Attempt {
	now := s.clock.Now()
	attempt := record.Attempt{
		Time: now, RequestID: left.ID, Actor: left.Actor, Door: left.Door, Caller: left.Caller, Tier: left.Tier,
		Action: record.ActionSettle, Session: left.Session, Policy: left.Policy,
		Provider: left.Provider, Owner: left.Owner, Repo: left.Repo, Base: left.Base, Branch: left.Branch,
		Title: left.Title, Digest: left.Digest, Outcome: outcome, Message: message,
		Paths: pathsOf(left), PRNumber: to.PRNumber, PRURL: to.PRURL, Duration: now.Sub(left.CreatedAt),
	}
	if text := RedirectNote(left.Body); text != "" {
		attempt.Verdicts = []record.Verdict{{Gate: record.GateRepository, Ruling: record.Pass, Warnings: []string{text}}}
	}
	return attempt
}

// settleProposal ends a proposal that its process left: if its pull request exists, it is recorded as opened; otherwise
// its branch is removed, if it still holds what that process wrote and nothing else. Only one settles at a time: nil
// also means that somebody else is at it. What cannot be settled now is left unsettled, for the next one.
func (s *settler) settleProposal(ctx context.Context, left record.Proposal) error {
	ok, err := s.ledger.Adopt(ctx, left)
	if err != nil || !ok {
		return err
	}
	err = s.endAdopted(ctx, left)
	if err != nil {
		free := s.ledger.Advance(context.WithoutCancel(ctx), left.ID, record.Progress{State: record.StateUnsettled})
		err = errors.Join(err, free)
	}
	return err
}

func (s *settler) endAdopted(ctx context.Context, left record.Proposal) error {
	provider, err := s.providerOf(left)
	if err != nil {
		return err
	}
	s.clock.Sleep(ctx, settleGrace)
	if left.Revises > 0 {
		return s.endRevision(ctx, provider, left)
	}
	pr, undone, err := s.findPull(ctx, provider, left)
	switch {
	case err != nil:
		return err
	case pr != nil && pr.State == gitprovider.StateClosed && undone:
		return s.endUndone(ctx, provider, left, *pr)
	case pr != nil && pr.State == gitprovider.StateOpen:
		if ended, err := s.withdrawIfSecond(ctx, provider, left, *pr); err != nil || ended {
			return err
		}
		return s.endOpened(ctx, left, *pr, undone)
	case pr != nil:
		return s.endOpened(ctx, left, *pr, undone)
	}
	if wait := s.lateFor(provider, left); wait > 0 && !undone {
		return &lateError{until: s.clock.Now().Add(wait), err: stillLate(left, wait)}
	}
	found, err := s.removeBranch(ctx, provider, left)
	switch {
	case err != nil:
		return err
	case found != nil && found.State == gitprovider.StateClosed:
		return s.endUndone(ctx, provider, left, *found)
	case found != nil:
		return s.endOpened(ctx, left, *found, true)
	}
	return s.finishProposal(ctx, left, record.OutcomeFailed, record.Progress{State: record.StateFailed},
		"settled after its process ended: no pull request was opened and no branch of it remains")
}

// endOpened records the pull request. undone: what we have sent to remove it may still arrive.
func (s *settler) endOpened(ctx context.Context, left record.Proposal, pr gitprovider.PullRequest, undone bool) error {
	return s.finishProposal(ctx, left, record.OutcomeOpened, record.Progress{
		State: record.StateOpened, Commit: pr.HeadCommit, PRNumber: pr.Number, PRURL: pr.URL, Undone: undone,
	}, "settled after its process ended: the pull request exists")
}

// removeBranch removes the branch of a proposal that was left, unless somebody has changed it, or it carries somebody
// else's pull request: then it is a person's now, and stays. It returns the proposal's own pull request, if that
// appeared meanwhile.
func (s *settler) removeBranch(ctx context.Context, p gitprovider.Provider,
	left record.Proposal) (*gitprovider.PullRequest, error) {
	repo := repoOf(left)
	pr, err := p.FindByHead(ctx, repo, left.Branch)
	if err != nil || pr != nil && pr.State == gitprovider.StateOpen {
		return nil, err
	}
	tip, err := p.BranchTip(ctx, repo, left.Branch)
	if err != nil || tip == "" {
		return nil, err
	}
	ours := tip == left.Commit || tip == left.BaseCommit // at the base commit it holds nothing of anybody's
	if !ours && left.Commit == "" {
		ours, err = branchHolds(ctx, p, repo, left.Branch, changesOf(left))
	}
	if err != nil || !ours {
		return nil, err
	}
	state := record.StateReserved
	if left.Commit != "" {
		state = record.StateCommitted
	}
	if err := s.ledger.Advance(ctx, left.ID, record.Progress{State: state, Commit: left.Commit,
		Undone: true}); err != nil {
		return nil, err
	}
	if err := p.DeleteBranch(ctx, repo, left.Branch, tip); err != nil && fault.CodeOf(err) != fault.Conflict {
		return nil, err
	}
	if p.Lateness() == 0 {
		return nil, nil
	}
	left.Commit = tip
	found, _, err := s.findPull(ctx, p, left)
	return found, err
}

func changesOf(left record.Proposal) []gitprovider.Change { return changesIn(left.Files) }

// changesIn returns the changes of the files whose paths are canonical.
func changesIn(files []gitprovider.FileChange) []gitprovider.Change {
	var out []gitprovider.Change
	for _, f := range files {
		if path, err := gitprovider.ParsePath(f.Path); err == nil {
			out = append(out, gitprovider.Change{Path: path, Action: f.Action, Content: f.Content})
		}
	}
	return out
}

// endUndone ends a proposal whose pull request turned out to exist, and was closed because we removed its branch. Its
// body also says that it was not rejected, for installations with other records.
func (s *settler) endUndone(ctx context.Context, p gitprovider.Provider, left record.Proposal,
	pr gitprovider.PullRequest) error {
	repo := repoOf(left)
	reader, err := s.marksOf(left.Provider, repo)
	if err != nil {
		return err
	}
	if m, isTrue := reader.firstSigned(pr); !isTrue || !m.Withdrawn {
		err := withdraw(ctx, p, repo, reader, pr,
			"Closed because Claude Ops has removed its branch: the server had not answered, and nobody has rejected this.")
		if err != nil {
			s.log.warn("pull request not marked as withdrawn", err, "request_id", left.ID, "pr", pr.Number)
		}
	}
	return s.finishProposal(ctx, left, record.OutcomeFailed, record.Progress{State: record.StateFailed},
		fmt.Sprintf("settled after its process ended: #%d was closed because its branch was removed; nobody has rejected it",
			pr.Number))
}

// withdraw closes a pull request. Its body says why, in words and by the mark, for everybody who asks the gate of the
// cooldown: with these records or with others.
func withdraw(
	ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef, marks markReader, pr gitprovider.PullRequest,
	reason string,
) error {
	body, err := withdrawnBody(marks, pr, reason)
	if err != nil {
		return err
	}
	return p.Withdraw(ctx, repo, gitprovider.Withdrawal{Number: pr.Number, Branch: pr.Branch, Head: pr.HeadCommit,
		Body: body})
}

// lateFor returns the remaining time before an abandoned proposal can be undone: until then, writes of its process may
// still arrive.
func (s *settler) lateFor(p gitprovider.Provider, left record.Proposal) time.Duration {
	lateness := p.Lateness()
	if lateness == 0 {
		return 0
	}
	return left.CreatedAt.Add(writeTimeout + lateness).Sub(s.clock.Now())
}

// lateError says why a proposal is not settled yet.
type lateError struct {
	until time.Time
	err   *fault.Error
}

// Error implements error.
func (e *lateError) Error() string { return e.err.Error() }

// Unwrap gives the fault.
func (e *lateError) Unwrap() error { return e.err }

func stillLate(left record.Proposal, wait time.Duration) *fault.Error {
	e := fault.New(fault.LimitReached,
		"an earlier proposal for these files (%q, request %s) got no clear answer from its provider, and "+
			"what it sent may still arrive; it is settled in %s at the latest, or at once by the identical call",
		clean(left.Title, maxTitle), left.ID, wait.Round(time.Second))
	e.RetryAfter = wait
	return e
}

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
		return s.finishProposal(ctx, left, record.OutcomeFailed, record.Progress{State: record.StateFailed},
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
	return s.finishProposal(ctx, left, record.OutcomeRevised, to, said)
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
		return s.finishProposal(ctx, left, record.OutcomeRevised, to, "settled after its process ended: the branch has the commit")
	}
	return s.finishProposal(ctx, left, record.OutcomeFailed, record.Progress{State: record.StateFailed,
		Commit: left.Commit},
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
	if m, isTrue := marks.firstSigned(pr); can && (!isTrue || m.RevisedBy != left.ID) {
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
	due, err := a.findMissing(ctx)
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
		return s.finishProposal(ctx, left, record.OutcomeFailed, record.Progress{State: record.StateFailed},
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
		there, err := answersOf(p, left, *pr).findMissing(ctx)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return err
		}
		posted = answersOf(p, left, *pr).posted(there)
	}
	said := settled + saidPosted(posted, left.Answers)
	if hasEnded(state) {
		return s.finishProposal(ctx, left, record.OutcomeFailed, record.Progress{State: record.StateFailed},
			fmt.Sprintf("%s; #%d is %s", said, left.Revises, state))
	}
	return s.finishProposal(ctx, left, record.OutcomeRevised,
		record.Progress{State: record.StateOpened, Commit: left.Commit, PRNumber: left.Revises, PRURL: left.PRURL}, said)
}
