package gitea

import (
	"context"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Ping implements gitprovider.Pinger by GET /version, which needs no scope; a token that the server does not know is refused
// there as everywhere.
func (p *Provider) Ping(ctx context.Context) error {
	var answer struct{ Version string }
	_, err := p.get(ctx, p.endpoint("version"), nil, &answer)
	if err == nil && answer.Version == "" {
		return fault.New(fault.UpstreamError, "%s does not tell its version; check that %s is the address of a Gitea or Forgejo",
			p.base.Host, urlVariable)
	}
	return p.judge(err, gitprovider.RepoRef{}, "")
}
