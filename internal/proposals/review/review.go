// Package review implements a person's actions on a pull request: look at it, approve it, ask for changes, comment,
// merge, close. All protocols use its operations, so that one rule applies to all.
//
// It is for pull requests of the local provider, which has no pages of its own. Those of forges are reviewed there.
package review

import (
	"context"

	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// Host serves the pull requests that are reviewed here; *local.Reviewer implements it.
type Host interface {
	List(ctx context.Context, ref gitprovider.RepoRef, state gitprovider.State) ([]gitprovider.PullRequest, error)
	Show(ctx context.Context, ref gitprovider.RepoRef, number int) (local.Detail, error)
	Approve(ctx context.Context, ref gitprovider.RepoRef, number int, n local.Note) error
	RequestChanges(ctx context.Context, ref gitprovider.RepoRef, number int, n local.Note) error
	Comment(ctx context.Context, ref gitprovider.RepoRef, number int, n local.Note) error
	Merge(ctx context.Context, ref gitprovider.RepoRef, number int, n local.MergeNote) (local.Merged, error)
	Close(ctx context.Context, ref gitprovider.RepoRef, number int, n local.Note) error
	Texts(ctx context.Context, ref gitprovider.RepoRef, head string, paths []string, maxBytes int) (map[string]string,
		error)
}

// Detail is a pull request as a person reviews it.
type Detail = local.Detail

// Records appends the end of a pull request, with its row of the audit. internal/records/store implements it.
type Records interface {
	operation.Audit
	RecordEnd(ctx context.Context, a record.Attempt, end record.PullRecord, notices ...record.Notice) error
	LiftCooldown(ctx context.Context, key record.PullKey, a record.Attempt) error
}

// Pulls are the pull requests that we opened. internal/records/store implements it.
type Pulls interface {
	FindPull(ctx context.Context, key record.PullKey) (record record.PullRecord, found bool, err error)
}

// Options configures a Service. All fields are required except Host.
type Options struct {
	Provider string // of the pull requests that are reviewed here
	Host     Host   // nil where there are none
	Disabled string // why there are none, naming the variable
	Kernel   *operation.Kernel
	Records  Records
	Pulls    Pulls
	Notifier record.Notifier // notified of actions that end a pull request
	// Ask reads a pull request at its provider, and whether it looks like one of ours; nil where the record is all that
	// there is.
	Ask func(ctx context.Context, provider, owner, name string, number int) (pr gitprovider.PullRequest, ours bool,
		err error)
	// Starters returns who started the parts of a pull request, for a policy that requires two persons; nil where that is
	// not known.
	Starters func(ctx context.Context, key record.PullKey) ([]record.Actor, error)
	// NewestChange returns the newest proposal of a pull request that changes files, for a policy that has facts
	// confirmed; nil where that is not known.
	NewestChange func(ctx context.Context, key record.PullKey) (p record.Proposal, found bool, err error)
	// Look updates the record of a pull request from its host after a review; nil where nothing does so.
	Look func(ctx context.Context, key record.PullKey, by record.Door) error
}

// Service is the use case. It is safe for concurrent use.
type Service struct{ Options }

// New makes a Service.
func New(o Options) *Service { return &Service{o} }

// Request is a person's decision about a pull request.
type Request struct {
	Provider string `json:"provider"`
	Owner    string `json:"owner"`
	Name     string `json:"name"`
	Number   int    `json:"number"`
	Verb     string `json:"verb"` // the name of one of Verbs
	Comment  string `json:"comment"`
	Head     string `json:"head"` // commit that the person looked at; "" takes the branch as it is
	// merge although changes were requested, the head has moved, or something was not shown
	Force    bool                      `json:"force"`
	Comments []gitprovider.LineComment `json:"comments"`
	// Acknowledged are the classes of facts that the person confirms to have seen; see policy.FactRules.Confirm
	Acknowledged []facts.Class `json:"acknowledged"`
	// what of the change the person was not shown, where that is known; it takes Force to merge then
	Unseen string           `json:"unseen"`
	By     operation.Caller `json:"-"`
}

// Outcome is the result of a decision.
type Outcome struct {
	Number   int      `json:"number"`
	Done     string   `json:"done"`
	Commit   string   `json:"commit,omitempty"` // of a merge
	Warnings []string `json:"warnings,omitempty"`
}

// Reviews reports whether the pull requests of the provider are reviewed here.
func (s *Service) Reviews(provider string) bool { return s.Host != nil && provider == s.Provider }

// Do does what a person decides, and records it, a refusal too.
//
// Errors: invalid_argument for a provider that is reviewed elsewhere and for an unknown verb, provider_disabled where
// there is no Host, read_only and repo_not_allowed by the operator's rules, and those of local.Reviewer.
func (s *Service) Do(ctx context.Context, r Request) (Outcome, error) {
	out, err := s.decision(r).Handle(ctx, operation.Call{Caller: r.By, Input: r})
	return out.(Outcome), err
}

// Refused records a decision that could not be understood, or that the caller has not the scope for. It returns the
// error with the request id of the row.
func (s *Service) Refused(ctx context.Context, r Request, why error) error {
	return s.decision(r).Reject(ctx, operation.Call{Caller: r.By, Input: r}, why)
}

// decision returns the operation of a person who has said what to do in our own words: at the terminal, or on a page.
func (s *Service) decision(r Request) operation.Operation {
	return decide(func() *Service { return s }, verbOperation("decide", r.Verb, "What a person decides about a pull request",
		operation.Route{}), func(r Request) Request { return r })
}

func (s *Service) decide(ctx context.Context, call operation.Call, r Request) (out Outcome, err error) {
	defer s.Notifier.Kick(ctx)
	r.By = call.Caller
	verb, known := verbNamed(r.Verb)
	if r.Verb == LiftCooldown {
		return Outcome{Number: r.Number, Done: r.Verb}, s.liftCooldown(ctx, r, call)
	}
	if err := s.reviewable(r.Provider); err != nil {
		return out, err
	}
	if !known {
		return out, UnknownVerb()
	}
	if err := s.fourEyes(ctx, verb, r); err != nil {
		return out, err
	}
	confirmed, err := s.confirmFacts(ctx, verb, &r)
	if err != nil {
		return out, err
	}
	if verb.Force && !r.Force && r.Unseen != "" {
		return out, fault.New(fault.Conflict, "%s Look at all of it, or say that you merge it all the same.", r.Unseen)
	}
	note := local.MergeNote{Note: local.Note{Who: r.By.String(), Account: r.By.Account(), Body: r.Comment,
		Head: r.Head, Comments: r.Comments, Admitted: r.By.Admitted}, Force: r.Force, Writes: s.inScope}
	if out, err = verb.act(ctx, s.Host, gitprovider.RepoRef{Owner: r.Owner, Name: r.Name}, r.Number, note); err != nil {
		return out, err
	}
	out.Number, out.Done = r.Number, verb.Name
	if err := s.recordAction(context.WithoutCancel(ctx), verb, call.Done(confirmed)); err != nil {
		out.Warnings = append(out.Warnings, "not recorded in the audit: "+fault.From(err).Message)
	}
	if err := s.recordReviews(context.WithoutCancel(ctx), verb, call.Done("")); err != nil {
		out.Warnings = append(out.Warnings, "lists show the review once the pull request is looked at again: "+
			fault.From(err).Message)
	}
	return out, nil
}

// inScope refuses a merge that writes to a file which no agent may propose any more, at whatever tier: the policy may
// have been narrowed since.
func (s *Service) inScope(paths []string) error {
	scope := s.Kernel.CurrentAuthority().Policy.Scope.At(gitprovider.TierRemediate)
	var outside []fault.Violation
	for _, path := range paths {
		if v := scope.Check(path).Reason; v != nil {
			v.Suggestion = "close the pull request, or have the operator widen the scope of the policy; " +
				"a person can still merge it with git"
			outside = append(outside, *v)
		}
	}
	if len(outside) == 0 {
		return nil
	}
	return fault.Refusal(outside)
}

// confirmFacts refuses a decision that lets a change pass while facts of it are not confirmed which the policy has
// people confirm. It returns what the record has of those that are. What is confirmed is bound to a commit, so that
// nothing passes that came after the look: r.Head, which becomes the commit that was read where none was given.
func (s *Service) confirmFacts(ctx context.Context, verb Verb, r *Request) (string, error) {
	rules := s.Kernel.CurrentAuthority().Policy.Facts
	if !verb.Passes || !rules.Asks() {
		return "", nil
	}
	if s.NewestChange == nil {
		return "", fault.New(fault.Forbidden,
			"the policy has facts confirmed (facts: acknowledge), and those of this pull request are not known here")
	}
	p, _, err := s.NewestChange(ctx, record.PullKey{Provider: r.Provider, Owner: r.Owner, Repo: r.Name, Number: r.Number})
	if err != nil {
		return "", err
	}
	given, read := r.Head, p.Facts
	if r.Head == "" {
		r.Head = p.Commit
	} else if r.Head != p.Commit {
		if err := s.stillAt(ctx, *r); err != nil {
			return "", err
		}
	}
	if r.Head == "" || r.Head != p.Commit {
		read = facts.Reading{} // somebody else has added to what was read
	}
	confirmed, err := rules.Confirm(p.FactTier(), read, r.Acknowledged)
	if err == nil && len(confirmed) > 0 && given == "" {
		err = fault.Refusal([]fault.Violation{{
			Code: fault.InvalidArgument, Path: "head", Rule: "facts:" + string(confirmed[0]),
			Message:    "facts are confirmed of the commit that you looked at, and none is named",
			Suggestion: "pass it as head over REST, or --head at the command line; review show has it",
		}})
	}
	return policy.Confirmed(confirmed), err
}

// stillAt refuses a decision about a commit that is not the head of the pull request any more.
func (s *Service) stillAt(ctx context.Context, r Request) error {
	now, err := s.Host.Show(ctx, gitprovider.RepoRef{Owner: r.Owner, Name: r.Name}, r.Number)
	if err == nil && now.HeadCommit != r.Head {
		err = fault.New(fault.Conflict, "the branch %s has moved since you looked at it; look at the pull request again",
			now.Branch)
	}
	return err
}

// fourEyes refuses people that the policy keeps from approving and merging: those who started what led to the pull
// request.
func (s *Service) fourEyes(ctx context.Context, verb Verb, r Request) error {
	if !s.Kernel.CurrentAuthority().Policy.People.FourEyes || !verb.Passes {
		return nil
	}
	if s.Starters == nil {
		return fault.New(fault.Forbidden,
			"the policy wants two persons (review.four_eyes), and it is not known here who started this")
	}
	starters, err := s.Starters(ctx, record.PullKey{Provider: r.Provider, Owner: r.Owner, Repo: r.Name, Number: r.Number})
	if err != nil {
		return err
	}
	if len(starters) == 0 {
		ref := gitprovider.RepoRef{Owner: r.Owner, Name: r.Name}
		if _, err := s.Host.Show(ctx, ref, r.Number); err != nil { // an invented number is a mistake, and not forbidden
			return err
		}
		// Its process was killed before it could record that it had opened it.
		return fault.New(fault.Forbidden,
			"the policy wants two persons (review.four_eyes), and the record does not say who started this pull request")
	}
	for _, starter := range starters {
		if why := r.By.SecondTo(starter); why != "" {
			return fault.New(fault.Forbidden,
				"the policy wants two persons (review.four_eyes): %s started this pull request, and %s; somebody else has to %s it",
				starter, why, verb.Name)
		}
	}
	return nil
}

// liftCooldown notes that the files of a pull request may be proposed again although it was closed. One that is closed
// again later is not lifted.
func (s *Service) liftCooldown(ctx context.Context, r Request, call operation.Call) error {
	key, state, err := s.stateOf(ctx, record.PullKey{Provider: r.Provider, Owner: r.Owner, Repo: r.Name, Number: r.Number})
	switch {
	case err != nil:
		return err
	case state == "":
		return fault.New(fault.NotFound, "there is no pull request of ours with the number %d in %s/%s at %s", r.Number,
			r.Owner, r.Name, r.Provider)
	case state == gitprovider.StateMerged:
		return fault.New(fault.Conflict, "#%d was merged, so it has no cooldown", r.Number)
	case state == gitprovider.StateOpen:
		return fault.New(fault.Conflict, "#%d is open, so it has no cooldown; one begins when it is closed without merging",
			r.Number)
	}
	return s.Records.LiftCooldown(ctx, key, call.Done(r.Comment))
}

// stateOf returns the state of a pull request of ours; "" if there is none. The provider is asked: the record may be
// older, or of another state folder. Where it cannot be asked, a record of an end counts.
func (s *Service) stateOf(ctx context.Context, key record.PullKey) (record.PullKey, gitprovider.State, error) {
	pull, found, err := s.Pulls.FindPull(ctx, key)
	if err != nil {
		return key, "", err
	}
	if found {
		key = pull.PullKey
	}
	if s.Ask == nil {
		return key, pull.State, nil
	}
	pr, ours, err := s.Ask(ctx, key.Provider, key.Owner, key.Repo, key.Number)
	switch {
	case fault.CodeOf(err) == fault.NotFound && !found:
		return key, "", nil
	case err != nil && found && !pull.Open():
		return key, pull.State, nil
	case err != nil:
		return key, "", err
	case !found && !ours:
		return key, "", nil
	}
	return key, pr.State, nil
}

// Show returns one pull request with its reviews and its difference. repo_not_allowed for a repository that is not on
// the allowlist, and the errors of local.Reviewer.
func (s *Service) Show(ctx context.Context, provider string, ref gitprovider.RepoRef, number int) (Detail, error) {
	if err := s.readable(provider, ref); err != nil {
		return Detail{}, err
	}
	return s.Host.Show(ctx, ref, number)
}

// Texts returns the contents of files as the head commit has them, of those that have at most maxBytes. Errors are
// those of Show.
func (s *Service) Texts(ctx context.Context, provider string, ref gitprovider.RepoRef, head string, paths []string,
	maxBytes int) (map[string]string, error) {
	if err := s.readable(provider, ref); err != nil {
		return nil, err
	}
	return s.Host.Texts(ctx, ref, head, paths, maxBytes)
}

// List returns the pull requests of a repository in a state, "" for all, oldest first. Errors are those of Show.
func (s *Service) List(ctx context.Context, provider string, ref gitprovider.RepoRef, state gitprovider.State) (
	[]gitprovider.PullRequest, error,
) {
	if err := s.readable(provider, ref); err != nil {
		return nil, err
	}
	return s.Host.List(ctx, ref, state)
}

func (s *Service) readable(provider string, ref gitprovider.RepoRef) error {
	if err := s.reviewable(provider); err != nil {
		return err
	}
	return s.Kernel.CurrentAuthority().Reads(provider, ref.Owner, ref.Name)
}

// reviewable returns nil for a provider whose pull requests are reviewed here.
func (s *Service) reviewable(provider string) error {
	switch {
	case provider != s.Provider:
		return fault.New(fault.InvalidArgument, "pull requests of this provider are reviewed and merged there, not here")
	case s.Host == nil:
		return fault.New(fault.ProviderDisabled, "there are no local repositories to review: %s", s.Disabled)
	}
	return nil
}

// recordAction appends a person's action to the audit, and an end to the record of the pull request. If the poll saw
// the end first, it has already sent the notification, and none is sent twice.
func (s *Service) recordAction(ctx context.Context, verb Verb, row record.Attempt) error {
	if verb.event == "" {
		return s.Records.Record(ctx, row, nil)
	}
	end := record.PullRecord{
		PullKey: record.PullKey{Provider: row.Provider, Owner: row.Owner, Repo: row.Repo, Number: row.PRNumber},
		State:   verb.state, SeenBy: row.Door, EndedAt: row.Time, EndedBy: row.Caller,
	}
	told := row // the record of the pull request has its title, and a notice stands alone
	if pull, found, err := s.Pulls.FindPull(ctx, end.PullKey); err == nil && found {
		told.Title, told.PRURL = s.Kernel.Redact(pull.Title), pull.URL
	}
	return s.Records.RecordEnd(ctx, row, end, s.Notifier.Notices(verb.event, told)...)
}

// recordReviews has the record say what reviews there are now. An end has been recorded already.
func (s *Service) recordReviews(ctx context.Context, verb Verb, row record.Attempt) error {
	if s.Look == nil || verb.event != "" {
		return nil
	}
	return s.Look(ctx, record.PullKey{Provider: row.Provider, Owner: row.Owner, Repo: row.Repo, Number: row.PRNumber},
		row.Door)
}
