package packages

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Registry is a folder with packages: registry.yaml, index.yaml, and packages/NAME with metadata.yaml and
// versions/V.aam. A publisher writes the archive first, then the package's metadata, then the index, each atomically,
// under a lock that ends with its process. Readers trust only metadata, so an interrupted publication is either
// invisible or complete. The next publication repairs the index.
type Registry struct {
	Name string
	Dir  string // absolute

	settings RegistryConfig
	unusable string      // why it cannot be used; "" if it can
	unused   string      // why it is not used: only a file of the project names it; "" if it is
	within   string      // the folder in which it has to lie, whatever links there are; "" where the operator named it
	cache    *indexCache // of indexes; nil for none
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

// open opens the registry's folder. AAM_REGISTRY_UNREACHABLE if that cannot be, AAM_PERMISSION_DENIED for a registry
// that is not used: such a folder is not looked at.
func (r Registry) open() (*files.Dir, error) {
	root, err := r.openWriting()
	if err != nil {
		return nil, err
	}
	return &root.Dir, nil
}

// openWriting is open for writing a registry.
func (r Registry) openWriting() (root *files.Writing, err error) {
	switch {
	case r.unused != "":
		return nil, newError(PermissionDenied, "the registry %q is %s", r.Name, r.unused)
	case r.unusable != "":
		err = errors.New(r.unusable)
	default:
		root, err = openFolder(r.Dir, r.within)
	}
	if err != nil {
		return nil, newError(RegistryUnreachable, "the registry %q at %s cannot be read: %s", r.Name, r.Dir,
			reason(err)).Because(err).
			Suggest("check the path, or remove the registry from the configuration")
	}
	return root, nil
}

// reachable reports whether the registry is there; the errors are AAM_REGISTRY_UNREACHABLE, which names it, and
// AAM_PERMISSION_DENIED.
func (r Registry) reachable() error {
	root, err := r.open()
	if err != nil {
		return err
	}
	return root.Close()
}

// Index reads the index; without an index.yaml there is nothing in it. AAM_REGISTRY_UNREACHABLE as with Reachable.
func (r Registry) Index() (Index, error) {
	if err := r.reachable(); err != nil {
		return Index{}, err
	}
	return r.cache.get(r, func() (index Index, err error) { return index, r.read("index.yaml", &index) })
}

// metadata reads what is known of a package. AAM_PACKAGE_NOT_FOUND if the registry does not have it; another package
// whose folder has the same name is not it.
func (r Registry) metadata(name Name) (*Metadata, error) {
	if err := r.reachable(); err != nil {
		return nil, err
	}
	var m Metadata
	if err := r.read(metadataPath(name), &m); err != nil {
		return nil, err
	}
	if m.Name != name.String() {
		return nil, newError(PackageNotFound, "the registry %q has no package %s", r.Name, name).With("registry", r.Name)
	}
	return &m, nil
}

// maxRegistryFile bounds index.yaml and metadata.yaml, in bytes.
const maxRegistryFile = 64 << 20

// read parses a file of the registry; one that does not exist leaves into as it is.
func (r Registry) read(name string, into any) error {
	root, err := r.open()
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	text, _, err := root.Read(name, maxRegistryFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = strictyaml.Decode(text, into, strictyaml.Options{Unknown: true})
	}
	if err != nil {
		return newError(RegistryUnreachable, "the registry %q: %s is broken: %s", r.Name, name, reason(err)).Because(err)
	}
	return nil
}

// latest returns the version that the tag latest names, or else the highest that is not a prerelease, or else the
// highest.
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

// version returns a version by its text; nil if it is not there.
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
