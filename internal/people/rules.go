package people

import (
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/policy"
)

// Action is what a person does, as the audit names it.
type Action string

// The actions of people. Promoting a dry run is not among them: it is a proposal, and passes every gate of internal/prflow.
const (
	Review         Action = "review" // of a refusal that came before it was clear which one
	Approve        Action = "review.approve"
	RequestChanges Action = "review.request-changes"
	Comment        Action = "review.comment"
	Merge          Action = "review.merge"
	Close          Action = "review.close"
	LiftCooldown   Action = "review.lift-cooldown" // of a pull request that was closed
	Resume         Action = "create_pr.resume"
	StartSession   Action = "session.start"
	StopSession    Action = "session.stop"
	CutConnection  Action = "connection.cut"
	CreateToken    Action = "token.create"
	RevokeToken    Action = "token.revoke"
	Prune          Action = "prune"
	RollBack       Action = "deploy.rollback"
)

// Rule says under which of the operator's settings an action is refused.
type Rule struct {
	Action Action
	// NoPolicy refuses it while the policy, or CLAUDEOPS_REPOS, cannot be read: a rule that nobody knows must not be replaced
	// by a wider one.
	NoPolicy bool
	// Listed refuses it for a repository that is not on the allowlist.
	Listed bool
	// ReadOnly refuses it under CLAUDEOPS_READ_ONLY.
	ReadOnly bool
	// DryRun refuses it under CLAUDEOPS_DRY_RUN. An action without it writes nothing to a repository, or has a dry run of its
	// own.
	DryRun bool
}

// Rules lists every action of people with its rule. What a person decides about a pull request is no proposal, so that a
// server that is read-only for agents lets people review.
func Rules() []Rule {
	rules := []Rule{
		{Action: Resume, NoPolicy: true, ReadOnly: true, DryRun: true},
		{Action: StartSession}, // in dry run the session is one, too, and its proposals pass the gates
		{Action: StopSession},
		{Action: CutConnection},
		{Action: CreateToken},
		{Action: RevokeToken},
		{Action: Prune}, // counts only, in dry run
		{Action: RollBack, ReadOnly: true, DryRun: true},
		{Action: LiftCooldown, NoPolicy: true, Listed: true}, // writes nothing to a repository
	}
	for _, action := range []Action{Review, Approve, RequestChanges, Comment, Merge, Close} {
		rules = append(rules, Rule{Action: action, NoPolicy: true, Listed: true, DryRun: true})
	}
	return rules
}

// Settings are what the operator has configured, as far as the rules ask for it.
type Settings struct {
	Policy policy.Policy
	// PolicyProblem says why the policy or CLAUDEOPS_REPOS cannot be read; "" if they can.
	PolicyProblem string
	ReadOnly      bool
	DryRun        bool
}

// Refuses says why the act is refused: read_only or repo_not_allowed; nil if it is not. An action without a rule is internal.
func (s Settings) Refuses(act Act) *fault.Error {
	rule, known := ruleOf(act.Action)
	switch {
	case !known:
		return fault.New(fault.Internal, "there is no rule for the action %q", act.Action)
	case rule.NoPolicy && s.PolicyProblem != "":
		return fault.New(fault.ReadOnly, "%s; nobody may decide until the operator corrects it", s.PolicyProblem)
	case rule.ReadOnly && s.ReadOnly:
		return fault.New(fault.ReadOnly, "this process is read-only (CLAUDEOPS_READ_ONLY); run the command without that")
	case rule.Listed && !s.lists(act):
		return s.notListed(act)
	case rule.DryRun && s.DryRun:
		return fault.New(fault.ReadOnly, "this process is in dry run (CLAUDEOPS_DRY_RUN) and changes nothing; do it without")
	}
	return nil
}

func ruleOf(action Action) (Rule, bool) {
	for _, rule := range Rules() {
		if rule.Action == action {
			return rule, true
		}
	}
	return Rule{}, false
}

func (s Settings) lists(act Act) bool {
	_, ok := s.Policy.AllowsRepo(act.Provider, act.Owner, act.Name)
	return ok
}

func (s Settings) list() string {
	var names []string
	for _, r := range s.Policy.AllRepositories() {
		names = append(names, r.String())
	}
	return strings.Join(names, ", ")
}

// Reads is repo_not_allowed for a repository that people may not read either; else nil.
func (s Settings) Reads(provider, owner, name string) error {
	act := Act{Provider: provider, Owner: owner, Name: name}
	if s.lists(act) {
		return nil
	}
	return s.notListed(act)
}

func (s Settings) notListed(act Act) *fault.Error {
	return fault.New(fault.RepoNotAllowed, "the repository %s/%s at %s is not on the operator's list (%s)",
		act.Owner, act.Name, act.Provider, s.list())
}
