package fakegithub

import (
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// statuses returns the statuses of a commit: those of the settings, and those of memhost for the pull requests that
// have it as their head. Of several of one context only the newest counts.
func (p *place) statuses(commit string) []Status {
	var out []Status
	for _, st := range p.set.CI.Statuses[commit] {
		if !slices.ContainsFunc(out, func(have Status) bool { return have.Context == st.Context }) {
			out = append(out, st)
		}
	}
	for _, pr := range p.repo.PRs {
		if pr.HeadCommit != commit {
			continue
		}
		for _, name := range pr.Checks.Failing {
			out = append(out, Status{Context: name, State: "failure"})
		}
		switch pr.Checks.State {
		case gitprovider.ChecksPending:
			out = append(out, Status{Context: "ci", State: "pending"})
		case gitprovider.ChecksSuccess:
			out = append(out, Status{Context: "ci", State: "success"})
		}
	}
	return out
}

// runs returns the check runs of a commit.
func (p *place) runs(commit string) []CheckRun {
	out := slices.Clone(p.set.CI.CheckRuns[commit])
	for i := range out {
		if out[i].Status == "" {
			out[i].Status = "completed"
		}
		if out[i].Started.IsZero() {
			out[i].Started = epoch()
		}
	}
	return out
}

// combined returns the state of all statuses together, in REST's words.
func combined(statuses []Status) string {
	state := "success"
	for _, st := range statuses {
		switch st.State {
		case "failure", "error":
			return "failure"
		case "pending":
			state = "pending"
		}
	}
	if len(statuses) == 0 {
		return "pending"
	}
	return state
}

// rollup returns the state of all statuses and check runs together, in GraphQL's words; "" if there are none.
func (p *place) rollup(commit string) string {
	statuses, runs := p.statuses(commit), p.runs(commit)
	if len(statuses)+len(runs) == 0 {
		return ""
	}
	state := "SUCCESS"
	if len(statuses) > 0 {
		state = strings.ToUpper(combined(statuses))
	}
	for _, run := range runs {
		switch {
		case state == "FAILURE" || slices.Contains(harmless(), run.Conclusion):
		case run.Status != "completed":
			state = "PENDING"
		default:
			state = "FAILURE"
		}
	}
	return state
}

// harmless returns the conclusions of check runs that are not failures.
func harmless() []string { return []string{"success", "neutral", "skipped"} }
