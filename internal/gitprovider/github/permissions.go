package github

import (
	"context"
	"net/http"

	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// impossible is no name of a branch and no object id for git, so that a request that names it can make nothing.
const impossible = ".."

// lacking gives the permissions that a proposal needs and that the token was not granted, whatever its user may do. GitHub does
// not list a fine-grained token's permissions, but it looks at them before the body of a request. So a branch and a pull request
// are asked for that cannot exist: with the permission the request is invalid (422), without it forbidden. Classic tokens say
// their scopes, and are not asked; see identity.mayWrite.
func (p *Provider) lacking(ctx context.Context, repo gitprovider.RepoRef) ([]string, error) {
	probes := []struct {
		need need
		path []string
		body any
	}{
		{needContents, []string{"git", "refs"}, map[string]string{"ref": impossible, "sha": impossible}},
		{needPulls, []string{"pulls"}, map[string]string{"title": "claudeops doctor", "head": impossible, "base": impossible}},
	}
	denied := make([]bool, len(probes))
	group, inner := errgroup.WithContext(ctx)
	for i, probe := range probes {
		group.Go(func() error {
			err := p.post(inner, p.repoURL(repo, probe.path...), probe.need, probe.body, nil)
			no := refused(err)
			if no == nil {
				return err
			}
			denied[i] = no.status == http.StatusForbidden && fault.CodeOf(no.fault) == fault.ProviderDisabled
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []string
	for i, probe := range probes {
		if denied[i] {
			out = append(out, string(probe.need))
		}
	}
	return out, nil
}
