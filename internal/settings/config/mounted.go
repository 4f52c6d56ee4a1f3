// This file finds the manifests of working copies that are mounted below one folder.

package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Bounds of a search: how many folders are looked into, and how much of a manifest is read.
const (
	maxFolders       = 512
	maxListed        = 100_000 // entries of a folder
	maxManifestBytes = 1 << 20
)

// Repos are the working copies below Dir, as Dir/name or Dir/owner/name. It implements gitprovider.Manifests and reads
// the disk at each call, so that a manifest that was changed speaks at once.
type Repos struct{ Dir string }

// Find returns the manifest of owner/name: the one whose section says so, else the one of the folder name or owner/name
// if it leaves owner and repo out. A missing Dir holds nothing. A manifest that cannot be parsed is an error only for
// the repository whose folder it is in; two that claim the same repository are an error. Symbolic links are not
// followed below Dir.
func (r Repos) Find(owner, name string) (gitprovider.Manifest, bool, error) {
	if r.Dir == "" {
		return gitprovider.Manifest{}, false, nil
	}
	root, err := files.OpenDir(r.Dir)
	if err != nil {
		return gitprovider.Manifest{}, false, nil //nolint:nilerr // nothing is mounted
	}
	defer root.Close()
	var found []string
	var result gitprovider.Manifest
	for _, folder := range folders(root) {
		m, ok, err := readMountedManifest(root, folder)
		if err != nil && isFolderOf(folder, owner, name) {
			return gitprovider.Manifest{}, false, fmt.Errorf("%s: %w", filepath.Join(r.Dir, folder), err)
		}
		if !ok || err != nil {
			continue
		}
		if m.Matches(owner, name) || m.Owner == "" && m.Repo == "" && isFolderOf(folder, owner, name) {
			found, result = append(found, folder), m
		}
	}
	if len(found) > 1 {
		return gitprovider.Manifest{}, false, fmt.Errorf("%s and %s below %s both claim to be %s/%s; correct one of them",
			found[0], found[1], r.Dir, owner, name)
	}
	return result, len(found) == 1, nil
}

func isFolderOf(folder, owner, name string) bool {
	return strings.EqualFold(folder, name) || strings.EqualFold(folder, owner+"/"+name)
}

// folders lists the folders one and two levels below the root, without hidden ones and links. What is in a working copy
// is a part of it: a manifest deeper in it speaks for no repository.
func folders(root *files.Dir) []string {
	var out []string
	for _, outer := range subfolders(root, ".") {
		out = append(out, outer)
		if marked(root, outer) {
			continue
		}
		for _, inner := range subfolders(root, outer) {
			out = append(out, outer+"/"+inner)
		}
		if len(out) > maxFolders {
			return out[:maxFolders]
		}
	}
	return out
}

func subfolders(root *files.Dir, dir string) []string {
	entries, _, err := root.Entries(dir, maxListed)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			out = append(out, e.Name())
		}
	}
	return out
}

// firstBytes returns the beginning of a regular file, at most limit bytes.
func firstBytes(root *files.Dir, name string, limit int64) ([]byte, error) {
	f, _, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

func readMountedManifest(root *files.Dir, folder string) (gitprovider.Manifest, bool, error) {
	name := folder + "/" + gitprovider.ManifestFile
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return gitprovider.Manifest{}, false, nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return gitprovider.Manifest{}, false, fmt.Errorf("%s is not a plain file", gitprovider.ManifestFile)
	}
	text, err := firstBytes(root, name, maxManifestBytes+1)
	if err != nil {
		return gitprovider.Manifest{}, false, fmt.Errorf("%s cannot be read", gitprovider.ManifestFile)
	}
	m, err := gitprovider.ParseManifest(string(text))
	return m, err == nil, err
}
