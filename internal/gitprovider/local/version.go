package local

import (
	"context"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/fault"
)

// oldestGit is the oldest release that has all that is needed: merge-tree --write-tree came with 2.38
// (git's RelNotes/2.38.0).
func oldestGit() string { return "2.38" }

// GitVersion returns the version of the git command, such as 2.39.5. provider_disabled if there is none or it is too
// old; in the latter case the version is returned as well.
func (p *Provider) GitVersion(ctx context.Context) (string, error) { return p.git.version(ctx) }

func (g *git) version(ctx context.Context) (string, error) {
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
