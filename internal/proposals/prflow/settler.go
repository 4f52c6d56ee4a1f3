package prflow

import (
	"context"
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

// find finds the pull request of a proposal that was left, nil if there is none, and says whether we have begun to undo
// that proposal.
func (s *settler) find(ctx context.Context, p gitprovider.Provider, left record.Proposal) (
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
	m, isTrue := reader.read(pr)
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

func (s *settler) end(ctx context.Context, left record.Proposal, outcome record.Outcome, to record.Progress,
	message string) error {
	err := s.ledger.Finish(ctx, left.ID, to, s.row(left, outcome, to, message))
	if fault.CodeOf(err) == fault.Conflict { // somebody else settled it meanwhile
		return nil
	}
	return err
}

// row returns the audit row for an abandoned proposal that was settled.
func (s *settler) row(left record.Proposal, outcome record.Outcome, to record.Progress, message string) record.Attempt {
	now := s.clock.Now()
	attempt := record.Attempt{
		Time: now, RequestID: left.ID, Actor: left.Actor, Door: left.Door, Caller: left.Caller, Tier: left.Tier,
		Action: record.ActionSettle, Session: left.Session,
		Provider: left.Provider, Owner: left.Owner, Repo: left.Repo, Base: left.Base, Branch: left.Branch,
		Title: left.Title, Digest: left.Digest, Outcome: outcome, Message: message,
		Paths: pathsOf(left), PRNumber: to.PRNumber, PRURL: to.PRURL, Duration: now.Sub(left.CreatedAt),
	}
	if text := RedirectNote(left.Body); text != "" {
		attempt.Verdicts = []record.Verdict{{Gate: record.GateRepository, Ruling: record.Pass, Warnings: []string{text}}}
	}
	return attempt
}
