package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// FactRule says what facts of a class do to a proposal. A later rule is stricter.
type FactRule int

// The rules.
const (
	ShowFact        FactRule = iota // people see it; the default
	AcknowledgeFact                 // who approves the pull request here confirms that they have seen it
	RefuseFact                      // the proposal is refused
)

// factRules are the rules as the policy file has them, by FactRule.
func factRules() []string { return []string{"show", "acknowledge", "refuse"} }

// String returns the rule as the policy file has it.
func (r FactRule) String() string { return factRules()[r] }

// FactRules holds what the policy says about facts of proposals. The zero value shows all.
type FactRules struct {
	Classes map[facts.Class]FactRule
	// Tiers holds what a tier has beside; the stricter rule holds.
	Tiers map[gitprovider.Tier]map[facts.Class]FactRule
}

// For returns the rule for a class of facts in a proposal of the tier; for a tier that is not known, 0, the strictest
// one.
func (r FactRules) For(t gitprovider.Tier, class facts.Class) FactRule {
	rule := max(r.Classes[class], r.Tiers[t][class])
	for _, classes := range r.Tiers {
		if t == 0 {
			rule = max(rule, classes[class])
		}
	}
	return rule
}

// Chosen returns the classes in a reading that have the rule at the tier, in the order of Reading.Found.
func (r FactRules) Chosen(t gitprovider.Tier, in facts.Reading, rule FactRule) (out []facts.Class) {
	for _, class := range in.Found() {
		if r.For(t, class) == rule {
			out = append(out, class)
		}
	}
	return out
}

// Asks reports whether people confirm facts of any class.
func (r FactRules) Asks() bool { return len(r.Asked(0, facts.Reading{})) > 0 }

// Asked returns the classes that people confirm, for a change with the facts that an agent of the tier proposed: those
// which were found, and all where the change was not read.
func (r FactRules) Asked(t gitprovider.Tier, in facts.Reading) []facts.Class {
	if in.WasRead() {
		return r.Chosen(t, in, AcknowledgeFact)
	}
	any := map[facts.Class]int{}
	for _, classes := range append(slices.Collect(maps.Values(r.Tiers)), r.Classes) {
		for class := range classes {
			any[class] = 1
		}
	}
	return r.Chosen(t, facts.Reading{Counts: any}, AcknowledgeFact)
}

// Confirmed says for the record which classes were confirmed; "" for none.
func Confirmed(classes []facts.Class) string {
	if len(classes) == 0 {
		return ""
	}
	return "confirmed facts: " + JoinClasses(classes)
}

// Confirm returns those of the classes that people confirmed which the policy asks for, for a change with the facts
// that an agent of the tier proposed. All doors at which a change is approved, merged or opened ask it. Error:
// invalid_argument, which names the classes that were not confirmed.
func (r FactRules) Confirm(t gitprovider.Tier, in facts.Reading, confirmed []facts.Class) ([]facts.Class, error) {
	wanted := r.Asked(t, in)
	missing := slices.DeleteFunc(slices.Clone(wanted), func(c facts.Class) bool { return slices.Contains(confirmed, c) })
	if len(missing) == 0 {
		return wanted, nil
	}
	message := fmt.Sprintf("the change %s, and the policy asks you to confirm that you have seen it", FactWords(missing))
	if !in.WasRead() {
		message = "Claude Ops did not read this change, and the policy asks you to confirm that you have looked whether it " +
			FactWords(missing)
	}
	return nil, fault.Refusal([]fault.Violation{{
		Code: fault.InvalidArgument, Path: "acknowledged", Rule: "facts:" + string(missing[0]), Message: message,
		Suggestion: fmt.Sprintf("look at these lines; then tick the box of the page, pass acknowledged with %s over REST, or "+
			"--acknowledge %[1]s at the command line", JoinClasses(wanted)),
	}})
}

// JoinClasses returns the names of classes with commas between, as SplitClasses reads them.
func JoinClasses(classes []facts.Class) string {
	var names []string
	for _, class := range classes {
		names = append(names, string(class))
	}
	return strings.Join(names, ",")
}

// SplitClasses returns the classes that a text names, with commas between.
func SplitClasses(text string) (out []facts.Class) {
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, facts.Class(name))
		}
	}
	return out
}

// FactWords returns classes as words that follow the change as their subject: "deletes and sends data out".
func FactWords(classes []facts.Class) string {
	var words []string
	for _, class := range classes {
		words = append(words, class.Words())
	}
	if last := len(words) - 1; last > 0 {
		return strings.Join(words[:last], ", ") + " and " + words[last]
	}
	return strings.Join(words, "")
}

// fileForm returns the rules as the policy file would have them, for people and programs.
func (r FactRules) fileForm() map[string]string {
	out := map[string]string{}
	for class, rule := range r.Classes {
		out[string(class)] = rule.String()
	}
	for tier, classes := range r.Tiers {
		for class, rule := range classes {
			out["tiers."+tier.String()+"."+string(class)] = rule.String()
		}
	}
	return out
}

func (f policyFile) facts(p *Policy) (err error) {
	if p.Facts.Classes, err = p.parseFactRules("facts", f.Facts); err != nil || f.Tiers == nil {
		return err
	}
	p.Facts.Tiers = map[gitprovider.Tier]map[facts.Class]FactRule{}
	for tier, rules := range map[gitprovider.Tier]*tierRules{
		gitprovider.TierInvestigate: f.Tiers.Tier2, gitprovider.TierRemediate: f.Tiers.Tier3,
	} {
		if rules == nil || rules.Facts == nil {
			continue
		}
		if p.Facts.Tiers[tier], err = p.parseFactRules("tiers."+tier.String()+".facts", rules.Facts); err != nil {
			return err
		}
	}
	return nil
}

func (p Policy) parseFactRules(key string, named map[string]string) (map[facts.Class]FactRule, error) {
	if len(named) == 0 {
		return nil, nil
	}
	out := map[facts.Class]FactRule{}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if !slices.Contains(p.factClasses(), name) {
			return nil, fmt.Errorf("%s: %q is not a class of facts; there are %s", key, name,
				strings.Join(p.factClasses(), ", "))
		}
		at := slices.Index(factRules(), named[name])
		if at < 0 {
			return nil, fmt.Errorf("%s.%s: %q is not one of %s", key, name, named[name], strings.Join(factRules(), ", "))
		}
		out[facts.Class(name)] = FactRule(at)
	}
	return out, nil
}

// factClasses lists the classes of facts, and those of the checkers.
func (p Policy) factClasses() (out []string) {
	for _, class := range facts.Classes() {
		out = append(out, string(class))
	}
	return append(out, p.checkerNames()...)
}

func (p Policy) checkerNames() []string {
	out := []string{}
	for _, c := range p.Checkers {
		out = append(out, c.Name)
	}
	return out
}
