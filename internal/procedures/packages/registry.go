package packages

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
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
			pathlessError(err)).Because(err).
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
	return r.cache.get(r, func() (index Index, err error) { return index, r.decodeFile("index.yaml", &index) })
}

// readMetadata reads what is known of a package. AAM_PACKAGE_NOT_FOUND if the registry does not have it; another
// package whose folder has the same name is not it.
func (r Registry) readMetadata(name Name) (*Metadata, error) {
	if err := r.reachable(); err != nil {
		return nil, err
	}
	var m Metadata
	if err := r.decodeFile(metadataPath(name), &m); err != nil {
		return nil, err
	}
	if m.Name != name.String() {
		return nil, newError(PackageNotFound, "the registry %q has no package %s", r.Name, name).With("registry", r.Name)
	}
	return &m, nil
}

// maxRegistryFile bounds index.yaml and metadata.yaml, in bytes.
const maxRegistryFile = 64 << 20

// decodeFile parses a file of the registry; one that does not exist leaves into as it is.
func (r Registry) decodeFile(name string, into any) error {
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
		return newError(RegistryUnreachable, "the registry %q: %s is broken: %s", r.Name, name,
			pathlessError(err)).Because(err)
	}
	return nil
}

// latest returns the version that the tag latest names, or else the highest that is not a prerelease, or else the
// highest.
func (m *Metadata) latest() string {
	if v, ok := m.DistTags["latest"]; ok && m.findVersion(v) != nil {
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

// findVersion returns a version by its text; nil if it is not there.
func (m *Metadata) findVersion(text string) *Published {
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

// registries returns the configured ones. Who names a registry decides which folder it may be: the user any; the
// project's file one of the user's, one in the project, which is the project's own data, and one that the operator's
// list of sources admits. What else the project's file names is not used, and not looked at. The default one is the
// first that is marked so and used, or the first.
func (s *Service) registries(c Config) []Registry {
	own := map[string]string{} // folders of the user's registries, by name
	for _, r := range registriesOf(c.own) {
		own[r.Name], _ = s.settings.registryFolder(r.URL)
	}
	var out []Registry
	for _, r := range registriesOf(c.values["registries"].([]any)) {
		one := Registry{Name: r.Name, settings: r, cache: s.indexes}
		one.Dir, one.unusable = s.settings.registryFolder(r.URL)
		if c.sources["registries"] == SourceProject {
			s.settings.admitRegistry(&one, own)
		}
		out = append(out, one)
	}
	marked := slices.IndexFunc(out, func(r Registry) bool { return r.settings.Default && r.unused == "" })
	if marked < 0 {
		marked = slices.IndexFunc(out, func(r Registry) bool { return r.unused == "" })
	}
	for i := range out {
		out[i].settings.Default = i == marked
	}
	return out
}

// admitRegistry decides whether a registry is used that the project's file names.
func (s Settings) admitRegistry(r *Registry, own map[string]string) {
	mine, has := own[r.Name]
	switch {
	case has && mine != r.Dir:
		r.unused = fmt.Sprintf("not used: only a file of the project names %s; %q is your own registry at %s", r.Dir, r.Name,
			mine)
	case r.unusable == "" && s.inProject(r.Dir):
		r.within = s.Project
	case slices.Contains(slices.Collect(maps.Values(own)), r.Dir):
	case !s.admitted(r.Dir):
		r.unused = sources.Refusal(r.Dir)
	}
}

// admitted reports whether the operator's list of sources has a folder, also after links. An address that is not a
// folder can be on it, too.
func (s Settings) admitted(dir string) bool {
	if s.Sources == nil {
		return false
	}
	source, ok := s.Sources().Find(dir)
	if !ok || !filepath.IsAbs(dir) {
		return ok
	}
	origin, err := url.Parse(source.Origin)
	return err == nil && fileset.Below(real(filepath.FromSlash(origin.Path)), real(dir))
}

// registryFolder returns the folder of a registry's URL; why is set if there is none.
func (s Settings) registryFolder(text string) (dir, why string) {
	switch {
	case strings.HasPrefix(text, "file:"):
		u, err := url.Parse(text)
		if err != nil || u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(filepath.FromSlash(u.Path)) {
			return text, "the URL is not a file:///path"
		}
		text = u.Path
	case strings.Contains(text, "://"):
		return text, "only registries in folders are supported, given as a path or as file:///path"
	case text == "~" || strings.HasPrefix(text, "~/"):
		text = s.Home + text[1:]
	}
	text = filepath.FromSlash(text)
	if !filepath.IsAbs(text) {
		text = filepath.Join(s.Project, text)
	}
	return filepath.Clean(text), ""
}

// inProject reports whether a folder lies in the project, links followed.
func (s Settings) inProject(dir string) bool {
	return s.Project != "" && fileset.Below(real(s.Project), real(dir))
}

// Archive reads the archive of a version and holds it against its checksum and its name. AAM_INTEGRITY_ERROR if they
// differ.
func (r Registry) Archive(name Name, p Published) (*Packed, error) {
	root, err := r.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	content, _, err := root.Read(archivePath(name, p.Version), maxArchiveBytes)
	if err != nil {
		return nil, newError(IntegrityError, "the registry %q lists %s %s, and its archive cannot be read: %s", r.Name, name,
			p.Version, pathlessError(err)).Because(err)
	}
	if found := checksum(content); p.Checksum != "" && found != p.Checksum {
		return nil, newError(IntegrityError,
			"the archive of %s %s in the registry %q has another checksum than was published", name, p.Version, r.Name).
			With("expected", p.Checksum).With("actual", found).Suggest("do not use it; ask who keeps the registry")
	}
	packed, err := Unpack(content)
	if err != nil {
		return nil, err
	}
	if packed.Manifest.Name != name.String() || packed.Manifest.Version != p.Version {
		return nil, newError(IntegrityError, "the archive of %s %s in the registry %q says that it is %s %s", name, p.Version,
			r.Name,
			packed.Manifest.Name, packed.Manifest.Version)
	}
	return packed, nil
}

func archivePath(name Name, version string) string {
	return filepath.Join("packages", name.folderName(), "versions", version+".aam")
}

// Scores of a match.
const (
	scoreExact       = 100
	scorePrefix      = 80
	scoreContains    = 60
	scoreKeyword     = 50
	scoreDescription = 30
)

// match is a package that a search has found.
type match struct {
	IndexEntry
	Registry string
	Score    int
}

// searchIndexes finds packages by name, keyword and description in the indexes of registries. An empty query finds all.
// kind is a type of artifacts in the singular, "" for any. Of a package that several registries have, the first one's
// is given. The order is by score, then by name. AAM_REGISTRY_UNREACHABLE names a registry that cannot be read. The
// author is that of the metadata where the index, as other programs write it, has none; see Authored.
func searchIndexes(registries []Registry, query, kind string) ([]match, error) {
	query = strings.ToLower(strings.TrimSpace(query))
	var out []match
	seen := map[string]bool{}
	for _, r := range registries {
		index, err := r.Index()
		if err != nil {
			return nil, err
		}
		for _, e := range index.Packages {
			score := e.score(query)
			if score == 0 || seen[e.Name] || kind != "" && !slices.Contains(e.ArtifactTypes, kind) {
				continue
			}
			seen[e.Name] = true
			out = append(out, match{e, r.Name, score})
		}
	}
	slices.SortFunc(out, func(a, b match) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}

// authored adds the authors that an index lacks, from the metadata of the packages.
func authored(registries []Registry, found []match) {
	for i, m := range found {
		at := slices.IndexFunc(registries, func(r Registry) bool { return r.Name == m.Registry })
		name, err := parseName(m.Name)
		if m.Author != "" || at < 0 || err != nil {
			continue
		}
		if known,
			err := registries[at].readMetadata(name); err == nil { // a broken package is reported to those who request it
			found[i].Author = known.Author
		}
	}
}

// score says how well a package matches a query in small letters. Of several words, each has to match, and the worst
// counts.
func (e IndexEntry) score(query string) int {
	whole := e.scoreOf(query)
	words := strings.Fields(query)
	if whole > 0 || len(words) < 2 {
		return whole
	}
	least := scoreExact
	for _, word := range words {
		least = min(least, e.scoreOf(word))
	}
	return least
}

func (e IndexEntry) scoreOf(text string) int {
	name := strings.ToLower(e.Name)
	switch {
	case text == "" || name == text:
		return scoreExact
	case strings.HasPrefix(name, text):
		return scorePrefix
	case strings.Contains(name, text):
		return scoreContains
	case slices.ContainsFunc(e.Keywords, func(k string) bool { return strings.EqualFold(k, text) }):
		return scoreKeyword
	case strings.Contains(strings.ToLower(e.Description), text):
		return scoreDescription
	}
	return 0
}
