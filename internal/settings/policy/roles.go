package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Role is the role of a person who signs in at a provider of identities.
type Role string

// The roles, from the lowest. Each may do what those before it may.
const (
	RoleViewer   Role = "viewer"   // sees
	RoleReviewer Role = "reviewer" // reviews, lifts cooldowns, opens dry runs
	RoleOperator Role = "operator" // sessions, deployments, tokens, connected agents
)

// Roles lists them, from the lowest.
func Roles() []Role { return []Role{RoleViewer, RoleReviewer, RoleOperator} }

// RoleRule gives a role to the persons of one provider named by exactly one of User, Subject and Group.
type RoleRule struct {
	Role     Role   `json:"role" yaml:"-" enum:"viewer,reviewer,operator"`
	Provider string `json:"provider" yaml:"provider"`         // its name in CLAUDEOPS_SIGN_IN
	User     string `json:"user,omitempty" yaml:"user"`       // name that the person signs in with there
	Subject  string `json:"subject,omitempty" yaml:"subject"` // what the provider calls the person for ever
	// as the provider names it; of GitHub an organisation, or organisation/team
	Group string `json:"group,omitempty" yaml:"group"`
}

// People holds the rules for people who sign in.
type People struct {
	Roles []RoleRule
	// FourEyes keeps who started something from approving or merging what came of it.
	FourEyes bool
}

// Known is a provider's description of a person.
type Known struct {
	Provider, Subject, User string
	Groups                  []string
}

// RoleOf returns the highest role that a rule gives to a person; "" if none does.
func (p People) RoleOf(who Known) (role Role) {
	for _, rule := range p.Roles {
		if rule.matches(who) && slices.Index(Roles(), rule.Role) > slices.Index(Roles(), role) {
			role = rule.Role
		}
	}
	return role
}

func (r RoleRule) matches(who Known) bool {
	if r.Provider != who.Provider {
		return false
	}
	return r.User != "" && r.User == who.User || r.Subject != "" && r.Subject == who.Subject ||
		r.Group != "" && slices.Contains(who.Groups, r.Group)
}

// roleSection has the rules of each role.
type roleSection struct {
	Viewer   []RoleRule `yaml:"viewer"`
	Reviewer []RoleRule `yaml:"reviewer"`
	Operator []RoleRule `yaml:"operator"`
}

// reviewSection holds the rules for reviews by people.
type reviewSection struct {
	FourEyes bool `yaml:"four_eyes"`
}

func (f policyFile) people(p *Policy) error {
	p.People.FourEyes = f.Review != nil && f.Review.FourEyes
	if f.Roles == nil {
		return nil
	}
	for role, rules := range map[Role][]RoleRule{RoleViewer: f.Roles.Viewer, RoleReviewer: f.Roles.Reviewer,
		RoleOperator: f.Roles.Operator} {
		for i, rule := range rules {
			rule.Role = role
			if err := rule.check(); err != nil {
				return fmt.Errorf("roles.%s[%d]: %w", role, i, err)
			}
			p.People.Roles = append(p.People.Roles, rule)
		}
	}
	slices.SortStableFunc(p.People.Roles, func(a, b RoleRule) int {
		return slices.Index(Roles(), b.Role) - slices.Index(Roles(), a.Role)
	})
	return nil
}

func (r RoleRule) check() error {
	if !regexp.MustCompile(`^[a-z][a-z0-9-]*$`).MatchString(r.Provider) {
		return fmt.Errorf("provider: %.30q is not a provider that CLAUDEOPS_SIGN_IN names", r.Provider)
	}
	named := 0
	for _, value := range []string{r.User, r.Subject, r.Group} {
		if value != strings.TrimSpace(value) {
			return fmt.Errorf("%.30q has spaces around it", value)
		}
		if value != "" {
			named++
		}
	}
	if named != 1 {
		return fmt.Errorf("name exactly one of user, subject and group")
	}
	return nil
}
