package local

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/system/files"
)

// repository is a git repository below the root.
type repository struct {
	ref         gitprovider.RepoRef // as the folders are spelled
	root        string              // without links
	dir         string              // the bare repository, or the folder that holds .git
	gitDir      string
	git         *runner
	comparisons *comparisons
	page        func(ref gitprovider.RepoRef, number int) string // see Options.Page
}

// recordKey returns the repository's name in the Records.
func (repo *repository) recordKey() string { return repo.ref.String() }

// url returns the address for git clone.
func (repo *repository) url() string { return (&url.URL{Scheme: "file", Path: repo.dir}).String() }

// prURL returns the page of a pull request of the repository, where its address is known. Otherwise it names the pull
// request: the part before the # can be cloned, and claudeops review and the dashboard accept the number.
func (repo *repository) prURL(number int) string {
	if repo.page != nil {
		return repo.page(repo.ref, number)
	}
	return repo.url() + "#pr-" + strconv.Itoa(number)
}

// openRepository finds a repository below the root: owner/name.git or owner/name, letter case aside if nothing is
// spelled exactly so. Symbolic links are followed, but what they lead to must again be owner/name below the root, and
// counts under that name: every repository has one identity, and none is outside. What lies in it must not lead outside
// either; see layout.
func (p *Provider) openRepository(ctx context.Context, ref gitprovider.RepoRef) (*repository, error) {
	repo, err := p.findRepository(ctx, ref)
	if err != nil {
		return nil, err
	}
	return repo, repo.checkLayout(ctx)
}

// findRepository is openRepository for calls that read records alone: what lies in the repository is not looked at.
func (p *Provider) findRepository(ctx context.Context, ref gitprovider.RepoRef) (*repository, error) {
	if ctx.Err() != nil {
		return nil, fault.From(ctx.Err())
	}
	if gitprovider.CheckRepoPart(ref.Owner) != nil || gitprovider.CheckRepoPart(ref.Name) != nil {
		return nil, fault.New(fault.NotFound, "no repository of the local provider has such an owner or name; use plain "+
			"folder names")
	}
	root, err := files.RealPath(p.root)
	if err != nil {
		return nil, fault.Wrap(err, fault.ProviderDisabled,
			"the folder of CLAUDEOPS_LOCAL_ROOT cannot be opened; the operator has to create it or to correct the setting")
	}
	if err := arrive(p, root); err != nil {
		return nil, err
	}
	return findIn(p, root, ref)
}

// findIn is findRepository below a root without links.
func findIn(p *Provider, root string, ref gitprovider.RepoRef) (*repository, error) {
	found, err := locate(root, ref)
	if err != nil {
		return nil, err
	}
	repo, err := identify(root, found, ref)
	if err != nil {
		return nil, err
	}
	if ref.Remote != nil && !repo.isAt(ref.Remote) {
		return nil, fault.New(fault.NotFound, "clone_url does not lead to the local repository %s, which is %s; correct "+
			"it or leave it out",
			repo.ref, repo.url())
	}
	repo.root, repo.git, repo.comparisons, repo.page = root, p.git, p.comparisons, p.page
	return repo, nil
}

// locate finds the one folder that is meant.
func locate(root string, ref gitprovider.RepoRef) (string, error) {
	owner, err := entryNamed(root, ref.Owner)
	if err != nil {
		return "", err
	}
	var found []string
	if owner != "" {
		for _, candidate := range []string{ref.Name + ".git", ref.Name} {
			name, err := entryNamed(filepath.Join(root, owner), candidate)
			if err != nil {
				return "", err
			}
			if name != "" {
				found = append(found, filepath.Join(root, owner, name))
			}
		}
	}
	switch len(found) {
	case 0:
		return "", fault.New(fault.NotFound, "there is no repository %s below CLAUDEOPS_LOCAL_ROOT; check owner and name",
			ref)
	case 1:
		return found[0], nil
	}
	return "", fault.New(fault.NotFound,
		"%s is ambiguous: there are a folder %s and a folder %s.git; the operator has to rename one", ref, ref.Name, ref.Name)
}

// maxEntries bounds how many folders of the root, or of an owner, are looked at.
const maxEntries = 1_000_000

// entryNamed returns the entry of a folder that is called name: exactly, or else the only one that differs in letter
// case. "" if there is none.
func entryNamed(dir, name string) (string, error) {
	folder, err := files.OpenDir(dir)
	if err != nil {
		return "", unreadable(err)
	}
	defer func() { _ = folder.Close() }() // opened for reading
	entries, _, err := folder.Entries(".", maxEntries)
	if err != nil {
		return "", unreadable(err)
	}
	var folded []string
	for _, entry := range entries {
		have := entry.Name()
		if have == name {
			return have, nil
		}
		if strings.EqualFold(have, name) {
			folded = append(folded, have)
		}
	}
	if len(folded) == 1 {
		return folded[0], nil
	}
	return "", nil
}

func unreadable(err error) error {
	return fault.Wrap(err, fault.UpstreamError,
		"a folder below CLAUDEOPS_LOCAL_ROOT cannot be read; the operator has to correct its permissions")
}

// identify checks that the folder is a repository of ours and gives it its name.
func identify(root, found string, ref gitprovider.RepoRef) (*repository, error) {
	dir, err := files.RealPath(found)
	if err != nil {
		return nil, fault.Wrap(err, fault.NotFound, "%s is a broken symbolic link; the operator has to correct it", ref)
	}
	rel, err := filepath.Rel(root, dir)
	parts := strings.Split(filepath.ToSlash(rel), "/")
	if err != nil || len(parts) != 2 || parts[0] == ".." {
		return nil, fault.New(fault.NotFound,
			"%s is a symbolic link that does not lead to an owner/name folder below CLAUDEOPS_LOCAL_ROOT; such repositories "+
				"are not served", ref)
	}
	repo := &repository{
		ref: gitprovider.RepoRef{Owner: parts[0], Name: strings.TrimSuffix(parts[1], ".git"), Remote: ref.Remote},
		dir: dir, gitDir: dir,
	}
	if !isGitDir(dir) {
		repo.gitDir = filepath.Join(dir, ".git")
	}
	if !isGitDir(repo.gitDir) {
		return nil, fault.New(fault.NotFound,
			"the folder %s below CLAUDEOPS_LOCAL_ROOT is not a git repository (a linked work tree or a submodule is none); "+
				"name another, or run git init there",
			repo.ref)
	}
	return repo, nil
}

// isGitDir knows a git directory by its parts. They must be real: a link or a commondir file would lead objects and
// references to some other place.
func isGitDir(dir string) bool {
	for _, sub := range []string{"", "objects", "refs"} {
		info, err := files.Lstat(filepath.Join(dir, sub))
		if err != nil || !info.IsDir() {
			return false
		}
	}
	if _, err := files.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return false
	}
	_, err := files.Lstat(filepath.Join(dir, "commondir"))
	return os.IsNotExist(err)
}

// isAt reports whether a clone URL leads to this repository. ParseRemote has cut a final ".git" off its path.
func (repo *repository) isAt(remote *gitprovider.Remote) bool {
	if remote.Host != gitprovider.HostLocal {
		return false
	}
	mine, err := files.Stat(repo.gitDir)
	if err != nil {
		return false
	}
	for _, path := range []string{remote.Path, remote.Path + ".git", remote.Path + "/.git"} {
		if theirs, err := files.Stat(path); err == nil && os.SameFile(mine, theirs) {
			return true
		}
	}
	return false
}

// RootFile is the file in a root that holds its identity: 16 to 64 lower-case letters and digits, and a line break. It
// is written once and is not secret. See docs/adr/0018-a-root-has-an-identity.md.
const RootFile = ".claudeops-root"

// unknownRoot stands for the identity of a root that has one which cannot be read. No root has it, so that no record
// matches that root.
const unknownRoot = "?"

const maxRootFile = 100 // bytes

// RootIdentity returns the identity of the root folder: "" if it has none yet or does not exist; an identity that
// matches no root if it cannot be read.
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
		return "", fmt.Errorf("%q is not an identity", id)
	}
	return id, nil
}

// identityOf returns the identity of the root, and gives it one if it has none: of several processes at once, one does.
func identityOf(root string) (string, error) {
	id, err := readRoot(root)
	if errors.Is(err, fs.ErrNotExist) {
		const everybodyReads = 0o644
		if err := files.CreateSecret(root, RootFile, everybodyReads,
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

// rootIdentity is the root that a Provider has found, by its identity.
type rootIdentity struct {
	mu sync.Mutex
	id string // "" until the first use
}

// arrive learns the identity of the root at the first use. A root that is exchanged while the process runs is refused:
// what is recorded would be of another one.
func arrive(p *Provider, root string) error {
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
	p.place.id = id
	return nil
}
