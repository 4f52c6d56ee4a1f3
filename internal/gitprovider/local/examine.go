package local

import (
	"context"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

var _ gitprovider.Examiner = (*Provider)(nil)

// Examine implements gitprovider.Examiner: the repository is there, has the base branch, and may be written by the user that this
// process runs as. There is no token, and there are no labels to be missing.
func (p *Provider) Examine(ctx context.Context, ref gitprovider.RepoRef, base string, _ []string) (gitprovider.Access, error) {
	repo, err := p.open(ctx, ref)
	if err != nil {
		return gitprovider.Access{}, err
	}
	have, err := p.refs(ctx, repo)
	if err != nil {
		return gitprovider.Access{}, err
	}
	if base, err = p.base(ctx, repo, have, base); err != nil {
		return gitprovider.Access{}, err
	}
	for _, folder := range []string{"objects", "refs"} {
		if path := filepath.Join(repo.gitDir, folder); !writable(path) {
			return gitprovider.Access{}, fault.New(fault.RepoNotAllowed,
				"%s cannot be written, so no branch can be made; give it to the user that runs claudeops", path)
		}
	}
	push := true
	return gitprovider.Access{Base: base, CanPush: &push}, nil
}
