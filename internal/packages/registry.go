package packages

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/filelock"
)

// Registry is a folder with packages: registry.yaml, index.yaml, and packages/NAME with metadata.yaml and versions/V.aam. Whoever
// publishes writes the archive first, then the package's metadata, then the index, each at once, under a lock that ends with its process:
// readers believe metadata alone, so a publication that was cut off has never been, or is whole. The next publication mends the index.
type Registry struct {
	Name string
	Dir  string // absolute
}

// registryFile is registry.yaml.
type registryFile struct {
	Name        string `yaml:"name"`
	Type        string `yaml:"type"`
	Description string `yaml:"description"`
	APIVersion  int    `yaml:"api_version"`
	CreatedAt   string `yaml:"created_at"`
}

// Index is index.yaml.
type Index struct {
	Packages []IndexEntry `yaml:"packages"`
}

// IndexEntry is a package in the index.
type IndexEntry struct {
	Name          string   `yaml:"name"`
	Description   string   `yaml:"description"`
	Author        string   `yaml:"author,omitempty"`
	Latest        string   `yaml:"latest"`
	Keywords      []string `yaml:"keywords"`
	ArtifactTypes []string `yaml:"artifact_types"` // singular
	UpdatedAt     string   `yaml:"updated_at"`
}

// Metadata is a package's metadata.yaml.
type Metadata struct {
	Name          string            `yaml:"name"`
	Description   string            `yaml:"description"`
	Author        string            `yaml:"author"`
	License       string            `yaml:"license"`
	Repository    string            `yaml:"repository"`
	Keywords      []string          `yaml:"keywords"`
	ArtifactTypes []string          `yaml:"artifact_types,omitempty"`
	DistTags      map[string]string `yaml:"dist_tags"`
	Versions      []Published       `yaml:"versions"`
}

// Published is one version of a package.
type Published struct {
	Version      string            `yaml:"version"`
	Published    string            `yaml:"published"` // RFC 3339
	Checksum     string            `yaml:"checksum"`
	Size         int64             `yaml:"size"`
	Dependencies map[string]string `yaml:"dependencies"`
}

// Reachable reports whether the registry is there; AAM_REGISTRY_UNREACHABLE names it.
func (r Registry) Reachable() error {
	info, err := os.Stat(r.Dir)
	if err == nil && !info.IsDir() {
		err = errors.New("it is no folder")
	}
	if err != nil {
		return newError(RegistryUnreachable, "the registry %q at %s cannot be read: %s", r.Name, r.Dir, reason(err)).because(err).
			hint("check the path, or remove the registry from the configuration")
	}
	return nil
}

// Index reads the index; without an index.yaml there is nothing in it. AAM_REGISTRY_UNREACHABLE as with Reachable.
func (r Registry) Index() (Index, error) {
	var index Index
	if err := r.Reachable(); err != nil {
		return index, err
	}
	return index, r.read("index.yaml", &index)
}

// Metadata reads what is known of a package. AAM_PACKAGE_NOT_FOUND if the registry does not have it; another package whose folder
// has the same name is not it.
func (r Registry) Metadata(name Name) (*Metadata, error) {
	if err := r.Reachable(); err != nil {
		return nil, err
	}
	var m Metadata
	if err := r.read(filepath.Join("packages", name.folder(), "metadata.yaml"), &m); err != nil {
		return nil, err
	}
	if m.Name != name.String() {
		return nil, newError(PackageNotFound, "the registry %q has no package %s", r.Name, name).with("registry", r.Name)
	}
	return &m, nil
}

// maxRegistryFile bounds index.yaml and metadata.yaml, in bytes.
const maxRegistryFile = 64 << 20

// read parses a file of the registry; one that does not exist leaves into as it is.
func (r Registry) read(name string, into any) error {
	root, err := os.OpenRoot(r.Dir)
	if err != nil {
		return newError(RegistryUnreachable, "the registry %q at %s cannot be read: %s", r.Name, r.Dir, reason(err)).because(err)
	}
	defer func() { _ = root.Close() }()
	text, err := readFile(root, name, maxRegistryFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = yaml.NewDecoder(bytes.NewReader(text)).Decode(into)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return newError(RegistryUnreachable, "the registry %q: %s is broken: %s", r.Name, name, reason(err)).because(err)
	}
	return nil
}

// Archive reads the archive of a version and holds it against its checksum and its name. AAM_INTEGRITY_ERROR if they differ.
func (r Registry) Archive(name Name, p Published) (*Packed, error) {
	root, err := os.OpenRoot(r.Dir)
	if err != nil {
		return nil, newError(RegistryUnreachable, "the registry %q at %s cannot be read: %s", r.Name, r.Dir, reason(err)).because(err)
	}
	defer func() { _ = root.Close() }()
	content, err := readFile(root, archivePath(name, p.Version), MaxArchiveBytes+1)
	if err != nil {
		return nil, newError(IntegrityError, "the registry %q lists %s %s, and its archive cannot be read: %s", r.Name, name, p.Version, reason(err)).because(err)
	}
	if found := Checksum(content); p.Checksum != "" && found != p.Checksum {
		return nil, newError(IntegrityError, "the archive of %s %s in the registry %q has another checksum than was published", name, p.Version, r.Name).
			with("expected", p.Checksum).with("actual", found).hint("do not use it; ask who keeps the registry")
	}
	packed, err := Unpack(content)
	if err != nil {
		return nil, err
	}
	if packed.Manifest.Name != name.String() || packed.Manifest.Version != p.Version {
		return nil, newError(IntegrityError, "the archive of %s %s in the registry %q says that it is %s %s", name, p.Version, r.Name,
			packed.Manifest.Name, packed.Manifest.Version)
	}
	return packed, nil
}

func archivePath(name Name, version string) string {
	return filepath.Join("packages", name.folder(), "versions", version+".aam")
}

// Publish adds a version and points the tag to it; the first version is tagged latest as well. AAM_VERSION_EXISTS if it is there
// already, AAM_NAME_CONFLICT if another package has the folder.
func (r Registry) Publish(m *Manifest, archive []byte, tag string, now time.Time) (Published, error) {
	if err := r.Reachable(); err != nil {
		return Published{}, err
	}
	name, err := ParseName(m.Name)
	if err != nil {
		return Published{}, err
	}
	if !validTag(tag) {
		return Published{}, newError(InvalidArgument, "%q is no tag", tag).hint("a tag is a word such as latest or beta, and no version")
	}
	unlock, err := r.lock()
	if err != nil {
		return Published{}, err
	}
	defer unlock()
	p, err := r.publish(name, m, archive, tag, now)
	if err != nil {
		return Published{}, err
	}
	return p, r.reindex(now)
}

func (r Registry) publish(name Name, m *Manifest, archive []byte, tag string, now time.Time) (Published, error) {
	var known Metadata
	file := filepath.Join("packages", name.folder(), "metadata.yaml")
	if err := r.read(file, &known); err != nil {
		return Published{}, err
	}
	if known.Name != "" && known.Name != m.Name {
		return Published{}, newError(NameConflict, "the registry %q keeps %s in the folder that %s would have", r.Name, known.Name, m.Name).
			hint("choose another name")
	}
	if slices.ContainsFunc(known.Versions, func(p Published) bool { return p.Version == m.Version }) {
		return Published{}, newError(VersionExists, "%s %s is published in the registry %q already", m.Name, m.Version, r.Name).
			hint("give it a new version; what is published does not change")
	}
	p := Published{
		Version: m.Version, Published: now.UTC().Format(time.RFC3339), Checksum: Checksum(archive), Size: int64(len(archive)),
		Dependencies: m.Dependencies,
	}
	if p.Dependencies == nil {
		p.Dependencies = map[string]string{}
	}
	if err := r.write(archivePath(name, m.Version), archive); err != nil {
		return Published{}, err
	}
	known.Name, known.Description, known.Author, known.License = m.Name, m.Description, m.Author, m.License
	known.Repository, known.Keywords = m.Repository, append([]string{}, m.Keywords...)
	known.ArtifactTypes = typesOf(m)
	known.Versions = append(known.Versions, p)
	slices.SortFunc(known.Versions, func(a, b Published) int { return compareVersions(a.Version, b.Version) })
	if known.DistTags == nil {
		known.DistTags = map[string]string{"latest": m.Version}
	}
	known.DistTags[tag] = m.Version
	return p, r.writeYAML(file, known)
}

func typesOf(m *Manifest) []string {
	out := []string{}
	for t := range m.Counts() {
		out = append(out, t.Singular())
	}
	slices.Sort(out)
	return out
}

// validTag reports whether a word can be a tag: not one that could be a version or a constraint.
func validTag(tag string) bool {
	if tag == "" || len(tag) > 64 || tag[0] >= '0' && tag[0] <= '9' {
		return false
	}
	return !strings.ContainsFunc(tag, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
}

// reindex makes the index anew from the packages' metadata.
func (r Registry) reindex(now time.Time) error {
	folders, err := os.ReadDir(filepath.Join(r.Dir, "packages"))
	if err != nil {
		return newError(RegistryUnreachable, "the registry %q: its packages cannot be read: %s", r.Name, reason(err)).because(err)
	}
	var before Index
	if err := r.read("index.yaml", &before); err != nil {
		before = Index{} // it is made anew
	}
	index := Index{Packages: []IndexEntry{}}
	for _, folder := range folders {
		var m Metadata
		if err := r.read(filepath.Join("packages", folder.Name(), "metadata.yaml"), &m); err != nil || m.Name == "" {
			continue // what is broken is said to whoever asks for it
		}
		index.Packages = append(index.Packages, m.entry(before, now))
	}
	if err := r.writeYAML("index.yaml", index); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(r.Dir, "registry.yaml")); errors.Is(err, fs.ErrNotExist) {
		return r.writeYAML("registry.yaml", registryFile{Name: r.Name, Type: "local", APIVersion: 1, CreatedAt: now.UTC().Format(time.RFC3339)})
	}
	return nil
}

func (m *Metadata) entry(before Index, now time.Time) IndexEntry {
	e := IndexEntry{
		Name: m.Name, Description: m.Description, Author: m.Author, Latest: m.latest(), Keywords: append([]string{}, m.Keywords...),
		ArtifactTypes: append([]string{}, m.ArtifactTypes...), UpdatedAt: now.UTC().Format(time.RFC3339),
	}
	i := slices.IndexFunc(before.Packages, func(known IndexEntry) bool { return known.Name == m.Name })
	if i >= 0 && before.Packages[i].Latest == e.Latest {
		e.UpdatedAt = before.Packages[i].UpdatedAt
	}
	return e
}

// latest is the version that the tag latest names, or else the highest that is no prerelease, or else the highest.
func (m *Metadata) latest() string {
	if v, ok := m.DistTags["latest"]; ok && m.version(v) != nil {
		return v
	}
	best := ""
	for _, p := range m.Versions {
		v, err := semver.StrictNewVersion(p.Version)
		if err == nil && (v.Prerelease() == "" || best == "") {
			best = p.Version
		}
	}
	return best
}

// version is a version by its text; nil if it is not there.
func (m *Metadata) version(text string) *Published {
	i := slices.IndexFunc(m.Versions, func(p Published) bool { return p.Version == text })
	if i < 0 {
		return nil
	}
	return &m.Versions[i]
}

// compareVersions orders versions by SemVer; what is none sorts before all that are.
func compareVersions(a, b string) int {
	left, leftErr := semver.StrictNewVersion(a)
	right, rightErr := semver.StrictNewVersion(b)
	switch {
	case leftErr == nil && rightErr == nil:
		return cmp.Or(left.Compare(right), strings.Compare(a, b))
	case leftErr == nil:
		return 1
	case rightErr == nil:
		return -1
	}
	return strings.Compare(a, b)
}

// lock keeps other publishers of the registry out until the returned function is called, or the process ends.
func (r Registry) lock() (func(), error) {
	file, err := os.OpenFile(filepath.Join(r.Dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err == nil {
		if err = waitForLock(file); err == nil {
			return func() { _ = file.Close() }, nil
		}
		_ = file.Close()
	}
	code := RegistryUnreachable
	if errors.Is(err, fs.ErrPermission) {
		code = PermissionDenied
	}
	return nil, newError(code, "the registry %q at %s cannot be written: %s", r.Name, r.Dir, reason(err)).because(err)
}

// lockTime is how long another publisher is waited for.
const lockTime = time.Minute

func waitForLock(file *os.File) error {
	for end := time.Now().Add(lockTime); ; time.Sleep(10 * time.Millisecond) {
		taken, err := filelock.Try(file, true)
		switch {
		case taken || err != nil:
			return err
		case time.Now().After(end):
			return errors.New("another process has been publishing for a minute")
		}
	}
}

func (r Registry) writeYAML(name string, v any) error {
	text, err := yaml.Marshal(v)
	if err != nil {
		return newError(InternalError, "%s cannot be written", name).because(err)
	}
	return r.write(name, text)
}

// write replaces a file of the registry at once, and makes its folder.
func (r Registry) write(name string, content []byte) error {
	if err := writeAtomically(filepath.Join(r.Dir, name), content, 0o644); err != nil {
		code := RegistryUnreachable
		if errors.Is(err, fs.ErrPermission) {
			code = PermissionDenied
		}
		return newError(code, "the registry %q: %s cannot be written: %s", r.Name, name, reason(err)).because(err)
	}
	return nil
}

// writeAtomically replaces a file at once, on disk before it has its name.
func writeAtomically(name string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return err
	}
	if dir, err := os.Open(filepath.Dir(name)); err == nil {
		_ = dir.Sync() // where a folder cannot be synced, the file is still whole or as before
		_ = dir.Close()
	}
	return nil
}
