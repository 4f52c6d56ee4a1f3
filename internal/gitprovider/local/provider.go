package local

import (
	"cmp"
	"fmt"
	"path/filepath"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Name is the provider's name in configuration and records.
const Name = "local"

// defaultTimeout bounds one git command.
const defaultTimeout = 30 * time.Second

// Options are the settings of a Provider. The zero Options are usable.
type Options struct {
	Git         string           // path of the git command; "" looks for git in PATH when it is first needed
	TempDir     string           // where workspaces are made; "" means the system's folder for temporary files
	AuthorName  string           // author and committer of commits; "" means Claude Ops
	AuthorEmail string           // "" means claude-ops@localhost
	Now         func() time.Time // nil means time.Now
	Timeout     time.Duration    // bound of one git command; 0 means 30 s
	// Page is the address of the page of a pull request; nil where there is none that a browser could open.
	Page func(ref gitprovider.RepoRef, number int) string
}

// Provider implements gitprovider.Provider for repositories below a root folder. Looking at pull requests brings their
// records up to date with what people did with plain git: a head that the base branch contains is recorded as merged,
// a head branch that is gone as closed, with the time at which it was first noticed.
type Provider struct {
	root        string
	git         *runner
	author      identity
	comparisons *comparisons
	pulls       *pulls
	place       place
	now         func() time.Time
	page        func(ref gitprovider.RepoRef, number int) string
}

var (
	_ gitprovider.Provider     = (*Provider)(nil)
	_ gitprovider.Pinger       = (*Provider)(nil)
	_ gitprovider.Editor       = (*Provider)(nil)
	_ gitprovider.RemarkReader = (*Provider)(nil)
	_ gitprovider.Reviser      = (*Provider)(nil)
	_ gitprovider.Examiner     = (*Provider)(nil)
)

// New makes a Provider for the repositories below root, an absolute path. It touches neither disk nor git: what is
// wrong with them is reported by the first call that needs them.
func New(root string, records Records, opts Options) (*Provider, error) {
	if !filepath.IsAbs(root) {
		return nil, fmt.Errorf("the local root %q is not an absolute path", root)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Timeout <= 0 {
		opts.Timeout = defaultTimeout
	}
	author := newIdentity(cmp.Or(opts.AuthorName, "Claude Ops"), cmp.Or(opts.AuthorEmail, "claude-ops@localhost"))
	return &Provider{
		root:        filepath.Clean(root),
		git:         newRunner(opts.Git, opts.TempDir, opts.Timeout, author),
		author:      author,
		comparisons: newComparisons(),
		pulls:       &pulls{records: records, now: opts.Now},
		now:         opts.Now,
		page:        opts.Page,
	}, nil
}

// Name returns "local".
func (p *Provider) Name() string { return Name }
