package local

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Ping implements gitprovider.Pinger: git is there and new enough, and the root is a folder.
func (p *Provider) Ping(ctx context.Context) error {
	if _, err := p.GitVersion(ctx); err != nil {
		return err
	}
	if info, err := files.Stat(p.root); err != nil || !info.IsDir() {
		return fault.Wrap(err, fault.ProviderDisabled,
			"the folder of CLAUDEOPS_LOCAL_ROOT cannot be opened; the operator has to create it or to correct the setting")
	}
	return nil
}

// oldestGit returns the oldest release that has all that is needed: merge-tree --write-tree came with 2.38 (git's
// RelNotes/2.38.0).
func oldestGit() string { return "2.38" }

// GitVersion returns the version of the git command, such as 2.39.5. provider_disabled if there is none or it is too
// old; in the latter case the version is returned as well.
func (p *Provider) GitVersion(ctx context.Context) (string, error) { return p.git.version(ctx) }

func (g *runner) version(ctx context.Context) (string, error) {
	out, _, err := g.run(ctx, command{args: []string{"version"}, limit: 1 << 10})
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(out))
	if len(fields) < 3 {
		return "", fault.New(fault.ProviderDisabled, "the git command does not tell its version; install git %s or later",
			oldestGit())
	}
	version := fields[2]
	if !newEnough(version) {
		return version, fault.New(fault.ProviderDisabled, "git %s is too old; install git %s or later", version, oldestGit())
	}
	return version, nil
}

func newEnough(version string) bool {
	const wantMajor, wantMinor = 2, 38
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	return errA == nil && errB == nil && (a > wantMajor || a == wantMajor && b >= wantMinor)
}

// Examine implements gitprovider.Examiner: the repository is there, has the base branch, and may be written by the user
// that this process runs as. There is no token, and there are no labels to be missing.
func (p *Provider) Examine(ctx context.Context, ref gitprovider.RepoRef, base string, _ []string) (gitprovider.Access,
	error) {
	repo, err := p.open(ctx, ref)
	if err != nil {
		return gitprovider.Access{}, err
	}
	have, err := repo.branches(ctx)
	if err != nil {
		return gitprovider.Access{}, err
	}
	if base, err = repo.baseBranch(ctx, have, base); err != nil {
		return gitprovider.Access{}, err
	}
	for _, folder := range []string{"objects", "refs"} {
		if path := filepath.Join(repo.gitDir, folder); !files.IsWritable(path) {
			return gitprovider.Access{}, fault.New(fault.RepoNotAllowed,
				"%s cannot be written, so no branch can be made; give it to the user that runs claudeops", path)
		}
	}
	push := true
	return gitprovider.Access{Base: base, CanPush: &push}, nil
}
