package people

import "github.com/claudeops/claudeops/internal/operation"

// Action is what a person does, as the audit names it.
type Action string

// The actions of people. Promoting a dry run is not among them: it is a proposal, and passes every gate of
// internal/proposals/prflow.
const (
	Review         Action = "review" // of a refusal that came before it was clear which one
	Approve        Action = "review.approve"
	RequestChanges Action = "review.request-changes"
	Comment        Action = "review.comment"
	Merge          Action = "review.merge"
	Close          Action = "review.close"
	LiftCooldown   Action = "review.lift-cooldown" // of a pull request that was closed
	StartSession   Action = "session.start"
	StopSession    Action = "session.stop"
	AllowSource    Action = "source.allow"
	RemoveSource   Action = "source.remove"
)

// Rule says which of the operator's rules an action must meet.
type Rule struct {
	Action Action
	Needs  operation.Needs
}

// Rules lists every action of people with its rule. What a person decides about a pull request is no proposal, so that
// a server that is read-only for agents lets people review.
func Rules() []Rule {
	free := operation.Needs{Dry: operation.DryDone}
	rules := []Rule{
		{StartSession, free}, // in dry run the session is one, too, and its proposals pass the gates
		{StopSession, free},
		{AllowSource, operation.Needs{Policy: true}},
		{RemoveSource, operation.Needs{}},
		{LiftCooldown, operation.Needs{Policy: true, Listed: true, Dry: operation.DryDone}}, // writes nothing to a repository
	}
	for _, action := range []Action{Review, Approve, RequestChanges, Comment, Merge, Close} {
		rules = append(rules, Rule{action, operation.Needs{Policy: true, Listed: true}})
	}
	return rules
}

func ruleOf(action Action) (needs operation.Needs, known bool) {
	for _, rule := range Rules() {
		if rule.Action == action {
			return rule.Needs, true
		}
	}
	return needs, false
}
