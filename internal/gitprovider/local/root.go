package local

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/secretfile"
)

// RootFile is the file in a root that holds its identity: 16 to 64 lower-case letters and digits, and a line break. It
// is written once and is no secret. See docs/adr/0018-a-root-has-an-identity.md.
const RootFile = ".claudeops-root"

// unknownRoot stands for the identity of a root that has one which cannot be read. No root has it, so that no record is
// taken for that root's.
const unknownRoot = "?"

const maxRootFile = 100 // bytes

// RootIdentity returns the identity of the root folder: "" if it has none yet, or if there is no such folder; one that
// no root has if it cannot be read.
func RootIdentity(root string) string {
	id, err := readRoot(root)
	switch {
	case err == nil:
		return id
	case errors.Is(err, fs.ErrNotExist):
		return ""
	}
	return unknownRoot
}

func readRoot(root string) (string, error) {
	text, _, err := files.ReadPath(filepath.Join(root, RootFile), maxRootFile)
	if err != nil {
		return "", err
	}
	id := string(bytes.TrimSpace(text))
	if !regexp.MustCompile(`^[0-9a-z]{16,64}$`).MatchString(id) {
		return "", fmt.Errorf("%q is no identity", id)
	}
	return id, nil
}

// identityOf returns the identity of the root, and gives it one if it has none: of several processes at once, one does.
func identityOf(root string) (string, error) {
	id, err := readRoot(root)
	if errors.Is(err, fs.ErrNotExist) {
		const everybodyReads = 0o644
		if err := secretfile.Create(root, RootFile, everybodyReads,
			func() (string, error) { return strings.ToLower(rand.Text()) + "\n", nil }); err != nil {
			return "", fault.Wrap(err, fault.ProviderDisabled,
				"the folder of CLAUDEOPS_LOCAL_ROOT has no identity yet, and this user cannot write one there; "+
					"let it write the folder, or make the file once: od -An -N16 -tx1 /dev/urandom | tr -d ' ' > %s",
				filepath.Join(root, RootFile))
		}
		id, err = readRoot(root)
	}
	if err != nil {
		return "", fault.Wrap(err, fault.ProviderDisabled,
			"the identity of the folder of CLAUDEOPS_LOCAL_ROOT cannot be read from %s; "+
				"restore that file, or correct its permissions", filepath.Join(root, RootFile))
	}
	return id, nil
}

// place is the root that a Provider has found, by its identity.
type place struct {
	mu sync.Mutex
	id string // "" until the first use
}

// arrive learns the identity of the root at the first use, and makes those records its own that an earlier version has
// made of its repositories. A root that is exchanged while the process runs is refused: what is recorded would be of
// another one.
func arrive(ctx context.Context, p *Provider, root string) error {
	p.place.mu.Lock()
	defer p.place.mu.Unlock()
	id, err := identityOf(root)
	switch {
	case err != nil:
		return err
	case p.place.id == id:
		return nil
	case p.place.id != "":
		return fault.New(fault.ProviderDisabled,
			"the folder of CLAUDEOPS_LOCAL_ROOT is another one than when this process began (%s); restart claudeops", RootFile)
	}
	err = p.pulls.records.Adopt(ctx, func(ctx context.Context, repo string, commits []string) (map[string]bool, error) {
		return holds(ctx, p, root, repo, commits)
	})
	if err == nil {
		p.place.id = id
	}
	return err
}

// holds reports which of the commits a repository of the root has on its branches: none if there is no such repository,
// or if it cannot be read.
func holds(ctx context.Context, p *Provider, root, name string, commits []string) (map[string]bool, error) {
	owner, repoName, _ := strings.Cut(name, "/")
	commits = slices.DeleteFunc(slices.Clone(commits), func(id string) bool { return !isID(id) })
	if gitprovider.CheckRepoPart(owner) != nil || gitprovider.CheckRepoPart(repoName) != nil || len(commits) == 0 {
		return nil, nil
	}
	repo, err := openIn(ctx, p, root, gitprovider.RepoRef{Owner: owner, Name: repoName})
	if err != nil || repo.key() != name {
		return nil, ctx.Err()
	}
	have, err := repo.branches(ctx)
	if err != nil {
		return nil, ctx.Err()
	}
	w, err := repo.workspace(commits[0], false)
	if err != nil {
		return nil, err
	}
	defer w.close()
	has, err := w.existing(ctx, commits)
	if err == nil && len(has) > 0 {
		err = w.keepReachable(ctx, has, have)
	}
	if err != nil {
		return nil, ctx.Err()
	}
	return has, nil
}

// existing are those of the objects that are commits of the repository.
func (w *workspace) existing(ctx context.Context, ids []string) (map[string]bool, error) {
	asked := strings.NewReader(strings.Join(ids, "\n") + "\n")
	out, _, err := w.run(ctx, asked, nil, "cat-file", "--batch-check=%(objectname) %(objecttype)")
	has := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if id, kind, _ := strings.Cut(strings.TrimSpace(line), " "); kind == "commit" {
			has[id] = true
		}
	}
	return has, err
}

// keepReachable takes the commits out that are on no branch: git clone copies those of a repository on this machine,
// too.
func (w *workspace) keepReachable(ctx context.Context, commits map[string]bool, have branches) error {
	var asked strings.Builder
	for id := range commits {
		asked.WriteString(id + "\n")
	}
	for _, tip := range have.tips {
		asked.WriteString("^" + tip + "\n")
	}
	out, _, err := w.run(ctx, strings.NewReader(asked.String()), nil, "rev-list", "--stdin")
	for line := range strings.Lines(string(out)) {
		delete(commits, strings.TrimSpace(line))
	}
	return err
}
