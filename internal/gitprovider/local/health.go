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
	defects, err := repo.defects(ctx, have, base)
	return gitprovider.Access{Base: base, CanPush: &push, Defects: defects}, err
}

// defects are what at a repository does not do what people expect.
func (repo *repository) defects(ctx context.Context, have branches, base string) (out []gitprovider.Defect, err error) {
	note := func(is bool, what, do string) {
		if is {
			out = append(out, gitprovider.Defect{What: what, Do: do})
		}
	}
	_, err = files.Lstat(filepath.Join(repo.gitDir, "shallow"))
	note(err == nil, "it is a shallow clone, whose history ends: pull requests from before that cannot be merged",
		"run git fetch --unshallow there")
	settings, err := repo.remoteSettings(ctx)
	if err != nil {
		return nil, err
	}
	note(settings.partial, "it is a partial clone, which lacks objects that are not fetched here",
		"make a whole clone in its place")
	note(settings.mirror, "it mirrors another repository: git remote update undoes merges there, and removes the "+
		"branches of pull requests", "make a clone that is no mirror, or serve the repository that it mirrors")
	if hooks := repo.hooks(); len(hooks) > 0 {
		note(true, "its hooks do not run when pull requests are opened and merged here: "+strings.Join(hooks, ", "),
			"do not rely on them, or merge with git")
	}
	usual := base == "main" || base == "master"
	note(!repo.isBare() && !usual && have.head == base && base == repo.defaultBranch(have), "the base branch "+base+" is the one that is checked out there, and "+
		"becomes another one with the next git switch", "name it in the policy (pins), or serve a bare repository")
	return out, nil
}

// remoteSettings are what the configuration of a repository says of where it comes from.
type remoteSettings struct{ partial, mirror bool }

func (repo *repository) remoteSettings(ctx context.Context) (out remoteSettings, err error) {
	const none = 1
	text, _, err := repo.refCommand(ctx, []int{none}, "config", "--null", "--get-regexp",
		`^(remote\..*\.(fetch|mirror|promisor)|extensions\.partialclone)$`)
	if err != nil {
		return out, err
	}
	for _, setting := range splitZ(text) {
		key, value, _ := strings.Cut(setting, "\n")
		switch key = strings.ToLower(key); {
		case strings.HasSuffix(key, ".promisor") && value != "false", key == "extensions.partialclone":
			out.partial = true
		case strings.HasSuffix(key, ".mirror") && value != "false",
			strings.HasSuffix(key, ".fetch") && strings.HasSuffix(value, ":refs/*"),
			strings.HasSuffix(key, ".fetch") && strings.HasSuffix(value, ":"+headsPrefix+"*"):
			out.mirror = true
		}
	}
	return out, nil
}

// isBare reports whether the repository has no work tree of its own.
func (repo *repository) isBare() bool { return repo.gitDir == repo.dir }

// hooks are the hooks that would run if somebody pushed or merged, and that do not run here; at most ten.
func (repo *repository) hooks() (out []string) {
	dir, err := files.OpenDir(repo.gitDir)
	if err != nil {
		return nil
	}
	defer dir.Close()
	for _, name := range []string{"pre-receive", "update", "post-receive", "post-update", "reference-transaction",
		"pre-merge-commit", "commit-msg", "post-merge"} {
		const executable = 0o111
		if info, err := dir.Stat("hooks/" + name); err == nil && info.Mode().IsRegular() && info.Mode()&executable != 0 {
			out = append(out, name)
		}
	}
	return out
}
