// Package local is the provider for plain git repositories without a forge: bare or ordinary ones below one root
// folder, as owner/name. Branches and commits are made by git's plumbing, pull requests live in the store, and a person
// reviews and merges with a Reviewer, which the provider port does not reach.
//
// # Whose configuration counts
//
// A repository's own configuration may have been written by somebody who must not run code in this process: hooks,
// filters, merge drivers, external diffs, file system monitors, signing programs. So everything that reads or writes
// objects runs in a workspace: a private, temporary git directory with a configuration of ours, borrowing only the
// repository's object store. Only references are read and written in the repository itself, by update-ref, for-each-ref
// and symbolic-ref, of whose settings hooks alone can run a program, and those are switched off; branches that are
// plain files, loose or packed, are read without a process. Environment, system and user configuration, replace
// references and grafts never take part, and no transport is allowed.
//
// The owner of a repository's files may be another user: git's safe.directory does not apply to an explicit --git-dir,
// and need not, since nothing of the repository's that it guards against is used. New objects get the permissions that
// the repository's object folder shows, so that a shared repository stays shared.
//
// # What is in the way
//
// Before each call, and again right before each write, the git directory is checked: anything that leads git out of it,
// or to something that is not a file, is refused. See layout and docs/guides/providers.md.
//
// # How a commit is made
//
// The trees above the files are read from one git cat-file, changed in memory, and sent with the files and the commit
// as a pack to git unpack-objects, which checks each object against its hash and flushes it to disk. That does not grow
// with the repository, and costs a third of the time of git fast-import. No file is checked out, so no work tree,
// filter or line-end conversion takes part. The commit becomes visible by one reference transaction, after it was read
// back, and a comparison of its trees with those of the base has shown that it changes the approved files, to the
// approved bytes, and nothing else. What a failure leaves behind are unreachable objects, which git gc removes.
package local

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/system/files"
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
	place       rootIdentity
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
func (p *Provider) GitVersion(ctx context.Context) (string, error) { return p.git.gitVersion(ctx) }

func (g *runner) gitVersion(ctx context.Context) (string, error) {
	out, _, err := g.runGit(ctx, gitCommand{args: []string{"version"}, limit: 1 << 10})
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
	repo, err := p.openRepository(ctx, ref)
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
		"branches of pull requests", "make a clone that is not a mirror, or serve the repository that it mirrors")
	if hooks := repo.hooks(); len(hooks) > 0 {
		note(true, "its hooks do not run when pull requests are opened and merged here: "+strings.Join(hooks, ", "),
			"do not rely on them, or merge with git")
	}
	usual := base == "main" || base == "master"
	note(!repo.isBare() && !usual && have.head == base && base == repo.defaultBranch(have), "the base branch "+base+" is the one that is checked out there, and "+
		"becomes another one with the next git switch", "name it in the policy (pins), or serve a bare repository")
	return out, nil
}

// remoteSettings says where a repository comes from, by its configuration.
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

// Snapshot implements gitprovider.Provider. It changes nothing in the repository; like every look at pull requests it
// may bring their records up to date (see Provider). DefaultBranch is the branch that HEAD names, which in an ordinary
// repository is the one that is checked out; "" if there is no such branch.
func (p *Provider) Snapshot(ctx context.Context, q gitprovider.SnapshotQuery) (*gitprovider.Snapshot, error) {
	if q.FilesOnly {
		return p.readFiles(ctx, q)
	}
	repo, seen, err := p.openPulls(ctx, q.Repo)
	if err != nil {
		return nil, err
	}
	base, err := repo.baseBranch(ctx, seen.branches, q.Base)
	if err != nil {
		return nil, err
	}
	snap := &gitprovider.Snapshot{
		Repo: repo.ref, URL: repo.url(), DefaultBranch: repo.defaultBranch(seen.branches), Base: base,
		BaseCommit: seen.branches.tips[base],
		Tips:       map[string]string{},
	}
	for _, pr := range seen.open {
		switch {
		case gitprovider.MayBeOurs(pr):
			snap.Open = append(snap.Open, pr)
		case q.Foreign && pr.Base == base:
			snap.Foreign = append(snap.Foreign, pr)
		}
	}
	for _, branch := range q.Branches {
		if tip, exists := seen.branches.tips[branch]; exists {
			snap.Tips[branch] = tip
		}
	}
	if snap.Closed, err = p.pulls.closedSince(ctx, repo, q.ClosedSince); err != nil {
		return nil, err
	}
	return snap, repo.readFiles(ctx, snap, q)
}

// readFiles is Snapshot of a branch without its pull requests.
func (p *Provider) readFiles(ctx context.Context, q gitprovider.SnapshotQuery) (*gitprovider.Snapshot, error) {
	repo, err := p.openRepository(ctx, q.Repo)
	if err != nil {
		return nil, err
	}
	have, err := repo.branches(ctx)
	if err != nil {
		return nil, err
	}
	branch, err := repo.baseBranch(ctx, have, q.Base)
	if err != nil {
		return nil, err
	}
	snap := &gitprovider.Snapshot{Repo: repo.ref, Base: branch, BaseCommit: have.tips[branch]}
	return snap, repo.readFiles(ctx, snap, q)
}

// readFiles fills in the tree, and the contents if they are wanted.
func (repo *repository) readFiles(ctx context.Context, snap *gitprovider.Snapshot,
	q gitprovider.SnapshotQuery) error {
	return onceMore(func() error { return repo.readTree(ctx, snap, q) })
}

func (repo *repository) readTree(ctx context.Context, snap *gitprovider.Snapshot,
	q gitprovider.SnapshotQuery) error {
	w, err := repo.workspace(snap.BaseCommit, false)
	if err != nil {
		return err
	}
	defer w.close()
	o, err := w.openObjects(ctx)
	if err != nil {
		return err
	}
	snap.Tree, err = readTrees(o, snap.BaseCommit, q.Paths, w.idLen)
	if err == nil && q.Contents {
		snap.Contents, err = readContents(o, snap.Tree, q.Paths)
	}
	return o.close(err)
}

// ListFiles implements gitprovider.FileLister.
func (p *Provider) ListFiles(ctx context.Context, at *gitprovider.Snapshot, folder string) ([]gitprovider.ListedFile,
	bool, error) {
	repo, err := p.openRepository(ctx, at.Repo)
	if err != nil {
		return nil, false, err
	}
	id, prefix := at.BaseCommit, ""
	if folder != "" {
		id, prefix = at.Tree[folder].ID, folder+"/"
	}
	if !isID(id) {
		return nil, false, fault.New(fault.NotFound, "there is no folder %.200q in %s", folder, repo.ref)
	}
	w, err := repo.workspace(id, false)
	if err != nil {
		return nil, false, err
	}
	defer w.close()
	out, _, err := w.runGit(ctx, nil, nil, "ls-tree", "-r", "-l", "-z", "--full-tree", id)
	if err != nil {
		return nil, false, err
	}
	var files []gitprovider.ListedFile
	for _, line := range splitZ(out) { // <mode> blob <id> <size>TAB<path>
		about, path, _ := strings.Cut(line, "\t")
		fields := strings.Fields(about)
		if len(fields) != 4 || newEntry(fields[0], fields[2]).Kind != gitprovider.KindFile {
			continue
		}
		size, err := strconv.ParseInt(fields[3], 10, 64)
		if err != nil {
			return nil, false, repo.explainPartial(ctx, fault.Wrap(errMissing, fault.UpstreamError,
				"git does not know how large files of the repository are; ask the operator to run git fsck"))
		}
		files = append(files, gitprovider.ListedFile{Path: prefix + path, ID: fields[2], Size: size})
	}
	sorted, complete := gitprovider.SortListed(files)
	return sorted, complete, nil
}
