package prflow

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/base/plural"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
)

// Bounds of lists in texts for a model, so that instructions and tools stay within 7,000 bytes whatever the operator
// configures.
const (
	maxToldBytes   = 300
	maxToldEntries = 8
)

// proposing describes create_pr to a model.
const proposing = "Propose a change to checks, playbooks, skills or manifests as one pull request with one commit, " +
	"which a person reviews and merges. For an update prefer `edits`, and give `base_sha`: an old copy undoes what others " +
	"merged. To rename a file, delete it and create it under its new name. To answer a review, pass `revises`. A refusal " +
	"names every broken rule and the next step. The same call again returns the same pull request."

// situation returns the instructions for a model: what it can do on this server, and for which files and repositories.
// No provider is asked.
func (s *Service) situation() operation.Situation {
	a := s.CurrentAuthority()
	const about = "Operational procedures (checks, playbooks, skills, the manifest) change by pull requests, which a " +
		"person reviews and merges. "
	const reading = "list_prs shows the open ones, get_pr_status state, reviews and CI of one; " +
		"claudeops://{owner}/{repo}/files?glob=checks/** lists files, .../file/{path} is one. "
	const reporting = "Put what should change, and why, into your report: "
	out := operation.Situation{Descriptions: map[string]string{}}
	switch {
	case a.ReadOnly != "":
		out.Instructions = about + reading + "This server reads only. " + reporting + "a person takes it up."
		if a.Unknown == "" { // otherwise it is unknown which files may be read
			out.Instructions += " " + s.targets(a)
		}
		out.Descriptions[ToolCreatePR] = "Takes no proposals now: this server reads only. " + reporting +
			"a person takes it up."
	case !a.mayPropose():
		out.Instructions = fmt.Sprintf(
			"%s%sThis server has tier %s, which reads. %sa session of a higher tier or a person takes it up. %s",
			about, reading, a.Tier, reporting, s.targets(a))
		out.Descriptions[ToolCreatePR] = fmt.Sprintf(
			"For higher tiers: at tier %s each call is refused. %sa session of a higher tier takes it up.",
			a.Tier, reporting)
	default:
		out.Instructions = about + reading +
			"Look at list_prs first, propose with create_pr; what it refuses, correct as it says, or report. " +
			s.limits(a) + s.targets(a)
	}
	if a.DryRun && a.takesProposals() {
		out.Instructions += " Dry run: create_pr checks everything and opens nothing; report its answer as a preview."
		out.Descriptions[ToolCreatePR] = proposing +
			" This server is in dry run: nothing is written; preview full shows body and diff."
	}
	return out
}

// limits says what may be proposed.
func (s *Service) limits(a Authority) string {
	most := a.Policy.Tiers.MaxFiles(a.Tier)
	return fmt.Sprintf("This server has tier %s: at most %s in one pull request. Paths: %s. ", a.Tier,
		plural.Files(most),
		within(a.Policy.Scope.Allow()))
}

// targets says which repositories there are, with their clone URLs.
func (s *Service) targets(a Authority) string {
	var enabled []gitprovider.Registration
	for _, e := range s.Registry.Entries() {
		if e.Provider != nil {
			enabled = append(enabled, e)
		}
	}
	if len(enabled) == 0 {
		return "No provider is configured: report that to the operator."
	}
	if listed := a.Policy.AllRepositories(); len(listed) > 0 {
		var told []string
		for _, pattern := range listed[:min(len(listed), maxToldEntries)] {
			told = append(told, s.repository(pattern.Provider, pattern.Owner, pattern.Name, enabled))
		}
		for _, pattern := range listed[len(told):] {
			told = append(told, pattern.String())
		}
		return "Repositories: " + within(told) + "."
	}
	var told []string
	for _, e := range enabled {
		told = append(told, e.CloneURL("OWNER", "NAME"))
	}
	return "Repositories, by clone_url: " + within(told) + "."
}

// repository returns an entry of the allowlist with its clone URL, as far as one is known: an entry may be a pattern,
// and may name no provider.
func (s *Service) repository(provider, owner, name string, enabled []gitprovider.Registration) string {
	text := owner + "/" + name
	if !strings.ContainsAny(text, "*?[{\\") && provider == "" {
		if found, err := s.Registry.Resolve(gitprovider.RepoRef{Owner: owner, Name: name}); err == nil {
			provider = found.Provider.Name()
		}
	}
	for _, e := range enabled {
		if e.Name == provider || len(enabled) == 1 && provider == "" {
			return text + " (clone_url " + e.CloneURL(owner, name) + ")"
		}
	}
	return text
}

// within joins texts up to maxToldBytes, at least one, and counts the rest.
func within(texts []string) string {
	out := ""
	for i, text := range texts {
		if i > 0 && (i == maxToldEntries || len(out)+len(text) > maxToldBytes) {
			return fmt.Sprintf("%s and %d more", out, len(texts)-i)
		}
		if i > 0 {
			out += ", "
		}
		out += text
	}
	return out
}
