package local

import (
	"context"
	"os"

	"github.com/claudeops/claudeops/internal/fault"
)

// Ping implements gitprovider.Pinger: git is there and new enough, and the root is a folder.
func (p *Provider) Ping(ctx context.Context) error {
	if _, err := p.GitVersion(ctx); err != nil {
		return err
	}
	if info, err := os.Stat(p.root); err != nil || !info.IsDir() {
		return fault.Wrap(err, fault.ProviderDisabled,
			"the folder of CLAUDEOPS_LOCAL_ROOT cannot be opened; the operator has to create it or to correct the setting")
	}
	return nil
}
