package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Scope is one thing that a caller may be let do.
type Scope string

// The scopes. Each stands for itself: propose does not include read.
const (
	Propose Scope = "propose" // make proposals
	Review  Scope = "review"  // decide about them: promote a dry run, approve, merge, close
	Read    Scope = "read"    // look at everything that is recorded
	Operate Scope = "operate" // start and stop agents
)

// Scopes is a set of scopes, in the order of AllScopes.
type Scopes []Scope

// AllScopes returns every scope.
func AllScopes() Scopes { return Scopes{Propose, Review, Read, Operate} }

// ScopesOfAgent returns the scopes that an agent's token represents: a caller who lacks one of them cannot create such
// a token.
func ScopesOfAgent(tier gitprovider.Tier, readOnly bool) Scopes {
	if readOnly || tier == gitprovider.TierObserve {
		return Scopes{Read}
	}
	return Scopes{Propose, Read}
}

// Lacks returns the scopes of others that are not in the set.
func (s Scopes) Lacks(others Scopes) Scopes {
	return slices.DeleteFunc(slices.Clone(others), s.Has)
}

// Has reports whether the scope is in the set.
func (s Scopes) Has(scope Scope) bool { return slices.Contains(s, scope) }

// String returns the set as ParseScopes reads it.
func (s Scopes) String() string {
	words := make([]string, len(s))
	for i, scope := range s {
		words[i] = string(scope)
	}
	return strings.Join(words, ",")
}

// ParseScopes reads a list separated by commas. An empty list and unknown words are errors.
func ParseScopes(list string) (Scopes, error) {
	wanted := map[Scope]bool{}
	for _, word := range strings.Split(list, ",") {
		scope := Scope(strings.TrimSpace(word))
		if !AllScopes().Has(scope) {
			return nil, fmt.Errorf("%.20q is no scope; the scopes are %s", word, AllScopes())
		}
		wanted[scope] = true
	}
	return slices.DeleteFunc(AllScopes(), func(s Scope) bool { return !wanted[s] }), nil
}
