package prflow

import (
	"context"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Bounds of the text about failing checks.
const (
	maxChecks       = 10
	maxCheckSummary = 500  // runes
	maxCheckLog     = 2000 // runes, the last ones
	maxCheckURL     = 500
)

// redChecks returns the failing checks that ask for a revision: those of the head as it is now. A revision makes
// another head, of which CI has said nothing yet, so that no failure asks twice.
func (r revisions) redChecks(ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef,
	pr gitprovider.PullRequest) ([]gitprovider.FailedCheck, error) {
	reader, can := p.(gitprovider.CheckReader)
	if !can || !r.policy().Revisions.OnChecks {
		return nil, nil
	}
	checks := r.checks
	if checks == nil {
		read, err := reader.Checks(ctx, repo, pr.Number, pr.HeadCommit)
		if err != nil {
			return nil, err
		}
		checks = &read
	}
	if checks.State != gitprovider.ChecksFailure {
		return nil, nil
	}
	if len(checks.Details) == 0 && len(checks.Failing) > 0 {
		return []gitprovider.FailedCheck{{Name: checks.Failing[0]}}, nil
	}
	return checks.Details, nil
}

// namesOf names checks, in quotes: the names are a forge's.
func namesOf(checks []gitprovider.FailedCheck) string {
	var names []string
	for _, check := range checks[:min(len(checks), maxChecks)] {
		names = append(names, quote(clean(check.Name, maxName)))
	}
	return strings.Join(names, ", ")
}

// checks returns the output of failing checks for an agent, without lines that look like a secret.
func (s textShower) checks(ctx context.Context, failed []gitprovider.FailedCheck) (out []CheckEntry) {
	plain := func(text string) string {
		shown, err := s.show(ctx, "check", []byte(text), true)
		if err != nil {
			return ""
		}
		return shown.text
	}
	for _, check := range failed[:min(len(failed), maxChecks)] {
		out = append(out, CheckEntry{
			Name: clean(check.Name, maxName), Summary: clean(plain(check.Summary), maxCheckSummary),
			LogEnd: clean(lastRunes(plain(check.Log), maxCheckLog), maxCheckLog), URL: clean(check.URL, maxCheckURL),
		})
	}
	return out
}

// lastRunes returns the end of a text.
func lastRunes(text string, most int) string {
	runes := []rune(text)
	return string(runes[max(0, len(runes)-most):])
}
