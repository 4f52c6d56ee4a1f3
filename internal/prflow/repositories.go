package prflow

import (
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/record"
)

// KnownRepositories are those of the record and those that the allowlists name one by one, sorted. providerOf settles an
// entry that names no provider; see Service.ProviderOf.
func KnownRepositories(recorded []record.RepoName, rules Policy, providerOf func(owner, name string) string) []record.RepoName {
	out := slices.Clone(recorded)
	for _, pattern := range rules.AllRepositories() {
		name := record.RepoName{Provider: pattern.Provider, Owner: pattern.Owner, Name: pattern.Name}
		if strings.ContainsAny(name.Owner+name.Name, "*?[{\\") {
			continue
		}
		if name.Provider == "" {
			name.Provider = providerOf(name.Owner, name.Name)
		}
		known := func(r record.RepoName) bool { return strings.EqualFold(r.String(), name.String()) }
		if name.Provider != "" && !slices.ContainsFunc(out, known) {
			out = append(out, name)
		}
	}
	slices.SortStableFunc(out, func(a, b record.RepoName) int { return strings.Compare(a.String(), b.String()) })
	return out
}
