package gitea

import (
	"context"
	"slices"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// checks combines the newest status of each context on a commit. The server's own combination covers one page, so every
// page is read and combined here: a failure or an error fails, else anything unfinished or unknown is pending.
func (p *Provider) checks(ctx context.Context, repo gitprovider.RepoRef, commit string) (gitprovider.Checks, error) {
	if commit == "" {
		return gitprovider.Checks{State: gitprovider.ChecksNone}, nil
	}
	statuses, _, err := readAll(ctx, func(ctx context.Context, number int) (page[*gitea.Status], error) {
		var combined struct {
			Statuses []*gitea.Status `json:"statuses"`
		}
		header, err := p.get(ctx, p.repoURL(repo, "commits", commit, "status"), atPage(number), &combined)
		return page[*gitea.Status]{items: present(combined.Statuses), total: totalOf(header)}, err
	})
	switch {
	case isMissing(err): // the commit of a pull request whose fork is gone
		return gitprovider.Checks{State: gitprovider.ChecksNone}, nil
	case err != nil:
		return gitprovider.Checks{}, err
	}
	return combine(statuses), nil
}

func combine(statuses []*gitea.Status) gitprovider.Checks {
	checks := gitprovider.Checks{State: gitprovider.ChecksNone}
	for _, s := range statuses {
		switch s.State {
		case gitea.StatusFailure, gitea.StatusError:
			checks.State = gitprovider.ChecksFailure
			checks.Failing = append(checks.Failing, s.Context)
		case gitea.StatusSuccess, gitea.StatusWarning, "skipped":
			if checks.State == gitprovider.ChecksNone {
				checks.State = gitprovider.ChecksSuccess
			}
		default:
			if checks.State != gitprovider.ChecksFailure {
				checks.State = gitprovider.ChecksPending
			}
		}
	}
	slices.Sort(checks.Failing)
	checks.Failing = slices.Compact(checks.Failing)
	return checks
}
