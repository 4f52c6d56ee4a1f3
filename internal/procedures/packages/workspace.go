package packages

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// workspaceName is the folder of a project, and of a home, that holds what packages need.
const workspaceName = ".aam"

// maxLockBytes bounds a lock file.
const maxLockBytes = 64 << 20

// workspace is the folder .aam of a project: packages, aam-lock.yaml, config.yaml.
type workspace struct {
	Project string // absolute
}

// Lock is aam-lock.yaml: what is installed.
type Lock struct {
	Version    int               `yaml:"lockfile_version"`
	ResolvedAt string            `yaml:"resolved_at"` // RFC 3339
	Packages   map[string]Locked `yaml:"packages"`
}

// Locked is an installed package.
type Locked struct {
	Version       string            `yaml:"version"`
	Source        string            `yaml:"source"` // the registry
	Checksum      string            `yaml:"checksum"`
	Dependencies  map[string]string `yaml:"dependencies"` // constraints by name
	FileChecksums *FileChecksums    `yaml:"file_checksums"`
	SourceName    *string           `yaml:"source_name"`
	SourceCommit  *string           `yaml:"source_commit"`
	// ForOthers says that it was not requested by name: it came as a dependency.
	ForOthers bool      `yaml:"for_others,omitempty"`
	Platforms []string  `yaml:"platforms,omitempty"` // those into which it was put
	Sections  []Section `yaml:"sections,omitempty"`
}

// FileChecksums are the hashes of a package's files, in hexadecimal, by path.
type FileChecksums struct {
	Algorithm string            `yaml:"algorithm"` // sha256
	Files     map[string]string `yaml:"files"`
}

func (w workspace) dir() string      { return filepath.Join(w.Project, workspaceName) }
func (w workspace) lockFile() string { return filepath.Join(w.dir(), "aam-lock.yaml") }
func (w workspace) packages() string { return filepath.Join(w.dir(), "packages") }

// exists reports whether there is a workspace; a link that leads out of the project is none.
func (w workspace) exists() bool {
	root, err := files.OpenDir(w.Project)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(workspaceName)
	return err == nil && info.IsDir()
}

// need is AAM_NOT_INITIALIZED without a workspace.
func (w workspace) need() error {
	if w.exists() {
		return nil
	}
	return newError(NotInitialized, "%s has no workspace for packages", w.Project).Suggest("make the folder " + w.dir())
}

// Lock reads the lock file; an empty Lock if there is none. AAM_CONFIG_INVALID for one that cannot be used.
func (w workspace) Lock() (*Lock, error) {
	text, err := readBelow(w.Project, w.lockFile(), maxLockBytes)
	if err != nil {
		return nil, newError(ConfigInvalid, "%s cannot be read: %s", w.lockFile(), pathlessError(err)).Because(err)
	}
	lock, err := parseLock(text)
	if err != nil {
		return nil, newError(ConfigInvalid, "%s cannot be used: %s", w.lockFile(),
			strings.TrimPrefix(err.Error(), "yaml: ")).Because(err).
			Suggest("restore it from version control, or remove it and the folder packages beside it, and install again")
	}
	return lock, nil
}

func parseLock(text []byte) (*Lock, error) {
	lock := &Lock{Version: 1, Packages: map[string]Locked{}}
	if err := yaml.Unmarshal(text, lock); err != nil {
		return nil, err
	}
	if lock.Packages == nil {
		lock.Packages = map[string]Locked{}
	}
	for name := range lock.Packages {
		if _, err := parseName(name); err != nil {
			return nil, fmt.Errorf("%q is not a valid package name", name)
		}
	}
	return lock, nil
}

// clone returns a copy whose packages can be changed.
func (l *Lock) clone() *Lock {
	out := *l
	out.Packages = maps.Clone(l.Packages)
	return &out
}

func (l *Lock) encodeLock(now time.Time) ([]byte, error) {
	l.ResolvedAt = now.UTC().Format(time.RFC3339)
	out, err := marshal(l)
	if err != nil {
		return nil, newError(InternalError, "the lock file cannot be written").Because(err)
	}
	return out, nil
}

// dependents lists the installed packages that need one, directly or indirectly, sorted.
func (l *Lock) dependents(name string) []string {
	found := map[string]bool{name: true}
	for grew := true; grew; {
		grew = false
		for other, locked := range l.Packages {
			for dependency := range locked.Dependencies {
				if found[dependency] && !found[other] {
					found[other], grew = true, true
				}
			}
		}
	}
	out := []string{}
	for other := range found {
		if other != name {
			out = append(out, other)
		}
	}
	slices.Sort(out)
	return out
}

// unneeded lists the installed packages that came with others, and that no requested package needs any more, directly
// or indirectly; sorted.
func (l *Lock) unneeded() (out []string) {
	needed := map[string]bool{}
	var need func(name string)
	need = func(name string) {
		locked, installed := l.Packages[name]
		if !installed || needed[name] {
			return
		}
		needed[name] = true
		for dependency := range locked.Dependencies {
			need(dependency)
		}
	}
	for name, locked := range l.Packages {
		if !locked.ForOthers {
			need(name)
		}
	}
	for name := range l.Packages {
		if !needed[name] {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// packageFolder returns the folder of an installed package.
func (w workspace) packageFolder(name Name) string {
	return filepath.Join(w.packages(), name.folderName())
}

// manifest reads the manifest of an installed package. AAM_INTEGRITY_ERROR if it is not there or broken.
func (w workspace) manifest(name Name) (*Manifest, error) {
	text, err := readBelow(w.Project, filepath.Join(w.packageFolder(name), manifestName), maxManifestBytes)
	if err == nil && text == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, newError(IntegrityError, "the manifest of the installed package %s cannot be read: %s", name,
			pathlessError(err)).Because(err).
			Suggest("install it again with force")
	}
	m, problems, _ := readManifest(text)
	if len(problems) > 0 {
		return nil, newError(IntegrityError, "the manifest of the installed package %s is broken: %s", name,
			strings.Join(problems, "; ")).
			Suggest("install it again with force")
	}
	return m, nil
}

// pathlessError returns an error without the name of its file.
func pathlessError(err error) string {
	var of *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &of):
		return of.Err.Error()
	case errors.As(err, &link):
		return link.Err.Error()
	}
	return err.Error()
}

// readBelow reads a file by its absolute path, and follows no link out of dir; nil without an error if it does not
// exist.
func readBelow(dir, name string, most int64) ([]byte, error) {
	root, rel, err := openBelow(dir, name)
	if err == nil {
		defer func() { _ = root.Close() }()
		var content []byte
		content, _, err = root.Read(rel, most)
		if err == nil {
			return content, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return nil, err
}

func openBelow(dir, name string) (root *files.Writing, rel string, err error) {
	if rel, err = filepath.Rel(dir, name); err != nil {
		return nil, "", err
	}
	root, err = files.OpenWriting(dir)
	return root, filepath.ToSlash(rel), err
}

// openFolder opens a folder by its absolute path, and with within follows no link out of that.
func openFolder(name, within string) (*files.Writing, error) {
	if within == "" {
		return files.OpenWriting(name)
	}
	return openWithin(within, name)
}

// openWithin opens a folder by its absolute path, and follows no link out of dir.
func openWithin(dir, name string) (*files.Writing, error) {
	if !fileset.Below(dir, name) { // it is written under another name of dir
		dir, name = real(dir), real(name)
	}
	root, rel, err := openBelow(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return root.Folder(rel)
}

// writeBelow replaces a file at once, on disk before it has its name, and makes its folders. It follows no link out of
// dir.
func writeBelow(dir, name string, content []byte) error {
	root, rel, err := openBelow(dir, name)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return root.Put(rel, content, 0o644)
}

// marshal returns a value as YAML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), encoder.Close()
}

// unmarshalLenient reads YAML whose other fields do not matter.
func unmarshalLenient(text []byte, into any) error { return yaml.Unmarshal(text, into) }
