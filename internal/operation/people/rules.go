package people

import "github.com/claudeops/claudeops/internal/operation"

// Action is what a person does, as the audit names it.
type Action string

// The actions of people that are not operations yet.
const (
	StartSession Action = "session.start"
	StopSession  Action = "session.stop"
	AllowSource  Action = "source.allow"
	RemoveSource Action = "source.remove"
)

// Rule says which of the operator's rules an action must meet.
type Rule struct {
	Action Action
	Needs  operation.Needs
}

// Rules lists these actions with their rules.
func Rules() []Rule {
	free := operation.Needs{Dry: operation.DryDone}
	return []Rule{
		{StartSession, free}, // in dry run the session is one, too, and its proposals pass the gates
		{StopSession, free},
		{AllowSource, operation.Needs{Policy: true}},
		{RemoveSource, operation.Needs{}},
	}
}

func ruleOf(action Action) (needs operation.Needs, known bool) {
	for _, rule := range Rules() {
		if rule.Action == action {
			return rule.Needs, true
		}
	}
	return needs, false
}
