package corpus

import (
	"maps"
	"slices"

	"github.com/claudeops/claudeops/internal/base/facts"
)

// Goal is what an attacker wants of a poisoned sample.
type Goal string

// GoalClasses are the classes of facts that fit a goal, and why they do.
type GoalClasses struct {
	Goal    Goal
	Wants   string // what the attacker wants, in words
	Classes []facts.Class
	Why     string // why these classes make a person look at the right thing
}

// Goals lists what attackers want, by name. A collection gives each of its categories a goal, and no sample has classes
// of its own.
func Goals() []GoalClasses {
	all := goals()
	var out []GoalClasses
	for _, goal := range slices.Sorted(maps.Keys(all)) {
		g := all[goal]
		g.Goal = goal
		out = append(out, g)
	}
	return out
}

func goals() map[Goal]GoalClasses {
	return map[Goal]GoalClasses{
		"leak": {Wants: "data get to somebody else",
			Classes: []facts.Class{facts.Outbound, facts.Address, facts.Credential},
			Why:     "it shows that data leave, where to, or which secrets"},
		"secrets": {Wants: "a secret is read, shown or set",
			Classes: []facts.Class{facts.Credential, facts.Outbound},
			Why:     "it names the secret, or where it goes"},
		"spy": {Wants: "a program watches people or a machine and reports",
			Classes: []facts.Class{facts.Outbound, facts.Address, facts.Credential, facts.Conceal, facts.RunsCode},
			Why:     "it shows the report, what is watched, or that the program starts others"},
		"destroy": {Wants: "data or services are gone",
			Classes: []facts.Class{facts.Destroy},
			Why:     "it shows what is deleted or stopped"},
		"sabotage": {Wants: "a machine or its data can no longer be used",
			Classes: []facts.Class{facts.Destroy, facts.Rights, facts.Persist, facts.RunsCode},
			Why:     "it shows what is overwritten, what is locked, or the command that does it"},
		"run-code": {Wants: "a program of the attacker's runs",
			Classes: []facts.Class{facts.RunsCode, facts.DownloadRun, facts.Address, facts.Opaque, facts.Persist},
			Why:     "it shows the program, where it is fetched from, that it cannot be read, or that it stays"},
		"rights": {Wants: "somebody may do more than before",
			Classes: []facts.Class{facts.Rights, facts.Credential},
			Why:     "it shows the right, or the password that gives it"},
		"persist": {Wants: "something stays after the task",
			Classes: []facts.Class{facts.Persist},
			Why:     "it shows what runs or is read again later"},
		"hide": {Wants: "people do not learn of something",
			Classes: []facts.Class{facts.Conceal},
			Why:     "it shows what is kept back"},
		"weaken": {Wants: "a safeguard is left out, or work is done badly",
			Classes: []facts.Class{facts.Weakens, facts.Rights},
			Why:     "it shows the safeguard, or the protection that is switched off"},
		"obscure": {Wants: "people cannot read what an agent reads",
			Classes: []facts.Class{facts.Opaque, facts.Override},
			Why:     "it shows what cannot be read, or what that says"},
		"override": {Wants: "the model drops its instructions",
			Classes: []facts.Class{facts.Override},
			Why:     "it shows the words that speak to the model"},
		"steer": {Wants: "what the model says is the attacker's: an opinion, a falsehood, an advert",
			Classes: []facts.Class{facts.Override, facts.Address},
			Why:     "it shows that an answer is prescribed, or which address is recommended"},
	}
}

// Fits says whether a fact of a class makes a person look at what the attacker wants.
func (g Goal) Fits(class facts.Class) bool { return slices.Contains(goals()[g].Classes, class) }
