package prflow

import (
	"slices"
	"strings"
)

// WithAllowed adds to repositories those that the policy's allowlists name one by one, sorted.
func (s *Service) WithAllowed(repos []RepoName) []RepoName {
	out := slices.Clone(repos)
	for _, pattern := range s.Policy.AllRepositories() {
		name := RepoName{Provider: pattern.Provider, Owner: pattern.Owner, Name: pattern.Name}
		if strings.ContainsAny(name.Owner+name.Name, "*?[{\\") {
			continue
		}
		if name.Provider == "" {
			name.Provider = s.ProviderOf(name.Owner, name.Name)
		}
		known := func(r RepoName) bool { return strings.EqualFold(r.String(), name.String()) }
		if name.Provider != "" && !slices.ContainsFunc(out, known) {
			out = append(out, name)
		}
	}
	slices.SortStableFunc(out, func(a, b RepoName) int { return strings.Compare(a.String(), b.String()) })
	return out
}
