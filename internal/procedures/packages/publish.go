package packages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// Publish adds a version and points the tag to it; the first version is tagged latest as well. AAM_VERSION_EXISTS if it
// is there already, AAM_NAME_CONFLICT if another package has the folder.
func (r Registry) Publish(ctx context.Context, m *Manifest, archive []byte, tag string, now time.Time) (Published,
	error) {
	if _, err := r.checkPublishable(m, tag); err != nil {
		return Published{}, err
	}
	lock, err := r.lockPublishing(ctx)
	if err != nil {
		return Published{}, err
	}
	defer lock.close()
	known, err := r.checkPublishable(m, tag) // others may have published meanwhile
	if err != nil {
		return Published{}, err
	}
	p := published(m, archive, now)
	folder, err := lock.publishArchive(known, m, p, archive, tag)
	if err != nil {
		return Published{}, err
	}
	if err := lock.updateIndex(now, append(lock.unfinished, folder)...); err != nil {
		return Published{}, err
	}
	return p, lock.writeUnfinished()
}

// wouldPublish is Publish without writing.
func (r Registry) wouldPublish(_ context.Context, m *Manifest, archive []byte, tag string, now time.Time) (Published,
	error) {
	_, err := r.checkPublishable(m, tag)
	return published(m, archive, now), err
}

func published(m *Manifest, archive []byte, now time.Time) Published {
	p := Published{
		Version: m.Version, Published: now.UTC().Format(time.RFC3339), Checksum: checksum(archive), Size: int64(len(archive)),
		Dependencies: m.Dependencies,
	}
	if p.Dependencies == nil {
		p.Dependencies = map[string]string{}
	}
	return p
}

// checkPublishable says whether a version can be published, and what is known of the package.
func (r Registry) checkPublishable(m *Manifest, tag string) (known Metadata, err error) {
	if err := r.reachable(); err != nil {
		return known, err
	}
	name, err := parseName(m.Name)
	if err != nil {
		return known, err
	}
	if !validTag(tag) {
		return known, newError(InvalidArgument, "%q is not a tag",
			tag).Suggest("a tag is a word such as latest or beta, and no version")
	}
	if err := r.decodeFile(metadataPath(name), &known); err != nil {
		return known, err
	}
	if known.Name != "" && known.Name != m.Name {
		return known, newError(NameConflict, "the registry %q keeps %s in the folder that %s would have", r.Name, known.Name,
			m.Name).
			With("packages", []string{known.Name, m.Name}).Suggest("choose another name")
	}
	if known.findVersion(m.Version) != nil {
		return known, newError(VersionExists, "%s %s is published in the registry %q already", m.Name, m.Version, r.Name).
			Suggest("give it a new version; what is published does not change")
	}
	return known, nil
}

// publishArchive writes the archive, then the metadata.
func (p *publishing) publishArchive(known Metadata, m *Manifest, one Published, archive []byte,
	tag string) (folder string,
	err error) {
	name, err := parseName(m.Name)
	if err != nil {
		return "", err
	}
	if err := p.replaceFile(archivePath(name, m.Version), archive); err != nil {
		return "", err
	}
	if err := p.writeUnfinished(append(p.unfinished, name.folderName())...); err != nil {
		return "", err
	}
	known.Name, known.Description, known.Author, known.License = m.Name, m.Description, m.Author, m.License
	known.Repository, known.Keywords = m.Repository, append([]string{}, m.Keywords...)
	known.ArtifactTypes = typesOf(m)
	known.Versions = append(known.Versions, one)
	slices.SortFunc(known.Versions, func(a, b Published) int { return compareVersions(a.Version, b.Version) })
	if known.DistTags == nil {
		known.DistTags = map[string]string{"latest": m.Version}
	}
	known.DistTags[tag] = m.Version
	return name.folderName(), p.writeYAML(metadataPath(name), known)
}

func metadataPath(name Name) string {
	return filepath.Join("packages", name.folderName(), "metadata.yaml")
}

func typesOf(m *Manifest) []string {
	out := []string{}
	for t := range m.Counts() {
		out = append(out, t.singular())
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

// maxPackages bounds a registry.
const maxPackages = 1 << 20

// updateIndex updates the index entries of the packages in folders, and of those missing from the index, and removes
// entries of deleted packages.
func (p *publishing) updateIndex(now time.Time, folders ...string) error {
	entries, complete, err := p.root.Entries("packages", maxPackages)
	if err == nil && !complete {
		err = fmt.Errorf("there are more than %d", maxPackages)
	}
	if err != nil {
		return newError(RegistryUnreachable, "the registry %q: its packages cannot be read: %s", p.Name,
			pathlessError(err)).Because(err)
	}
	var index Index
	if err := p.decodeFile("index.yaml", &index); err != nil {
		index = Index{} // it is made anew
	}
	known := map[string]IndexEntry{}
	for _, e := range index.Packages {
		if name, err := parseName(e.Name); err == nil {
			known[name.folderName()] = e
		}
	}
	index.Packages = make([]IndexEntry, 0, len(entries))
	for _, folder := range entries {
		before, has := known[folder.Name()]
		if has && !slices.Contains(folders, folder.Name()) {
			index.Packages = append(index.Packages, before)
			continue
		}
		var m Metadata
		if err := p.decodeFile(filepath.Join("packages", folder.Name(), "metadata.yaml"), &m); err != nil || m.Name == "" {
			continue // a broken package is reported to those who request it
		}
		index.Packages = append(index.Packages, m.indexEntry(before, now))
	}
	if err := p.writeYAML("index.yaml", index); err != nil {
		return err
	}
	if !p.root.Has("registry.yaml") {
		return p.writeYAML("registry.yaml", registryFile{Name: p.Name, Type: "local", APIVersion: 1,
			CreatedAt: now.UTC().Format(time.RFC3339)})
	}
	return nil
}

func (m *Metadata) indexEntry(before IndexEntry, now time.Time) IndexEntry {
	e := IndexEntry{
		Name: m.Name, Description: m.Description, Author: m.Author, Latest: m.latest(),
		Keywords:      append([]string{}, m.Keywords...),
		ArtifactTypes: append([]string{}, m.ArtifactTypes...), UpdatedAt: now.UTC().Format(time.RFC3339),
	}
	if before.Latest == e.Latest {
		e.UpdatedAt = before.UpdatedAt
	}
	return e
}

// publishing is a registry whose lock is held. A file of the registry holds the folders of packages whose entry in the
// index may be older than their metadata, for the next publisher if this one is killed.
type publishing struct {
	Registry
	root       *files.Writing
	file       *os.File
	unfinished []string // what other publishers left
}

// unfinishedFile is the file in which publishers note what they have begun.
const unfinishedFile = ".unfinished"

// lockPublishing keeps other publishers of the registry out until it is closed, or the process ends.
func (r Registry) lockPublishing(ctx context.Context) (*publishing, error) {
	root, err := r.openWriting()
	if err != nil {
		return nil, err
	}
	file, err := root.OpenLock(".lock")
	if err == nil {
		err = lock(ctx, file)
	}
	if err != nil {
		_, _ = file.Close(), root.Close()
		return nil, r.unlockable(err)
	}
	text, _, _ := root.Read(unfinishedFile, 1<<16) // what cannot be read names no package
	return &publishing{r, root, file, strings.Fields(string(text))}, nil
}

func (p *publishing) close() { _, _ = p.file.Close(), p.root.Close() }

// writeUnfinished keeps the names of folders.
func (p *publishing) writeUnfinished(folders ...string) error {
	if len(folders) > 0 {
		return p.replaceFile(unfinishedFile, []byte(strings.Join(folders, "\n")))
	}
	if err := p.root.Remove(unfinishedFile); err != nil {
		return p.unwritable(unfinishedFile, err)
	}
	return nil
}

// lockTime limits the wait for another process that writes.
const lockTime = time.Minute

// errBusy says that another process has held a lock all the time that this one waited.
var errBusy = errors.New("another process holds the lock")

// lock waits for a lock on the open file; errBusy if that takes too long.
func lock(ctx context.Context, file *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	err := files.Lock(ctx, file, true)
	if err != nil && errors.Is(err, ctx.Err()) {
		return errBusy
	}
	return err
}

func (r Registry) unlockable(err error) error {
	if errors.Is(err, errBusy) {
		return busy(r.Dir)
	}
	return r.unwritable("", err)
}

// busy is the answer where another process has written a folder for longer than a caller waits.
func busy(folder string) error {
	return newError(Busy, "another process has been writing %s all the time that this one waited", folder).
		Suggest("try again")
}

func (p *publishing) writeYAML(name string, v any) error {
	text, err := marshal(v)
	if err != nil {
		return newError(InternalError, "%s cannot be written", name).Because(err)
	}
	return p.replaceFile(name, text)
}

// replaceFile replaces a file of the registry at once, and makes its folder.
func (p *publishing) replaceFile(name string, content []byte) error {
	if err := p.root.Put(filepath.ToSlash(name), content, 0o644); err != nil {
		return p.unwritable(name, err)
	}
	return nil
}

func (r Registry) unwritable(name string, err error) error {
	code := RegistryUnreachable
	switch {
	case errors.Is(err, fs.ErrPermission):
		code = PermissionDenied
	case errors.Is(err, syscall.ENAMETOOLONG):
		code = InvalidArgument
	}
	return newError(code, "the registry %q: %s cannot be written: %s", r.Name, filepath.Join(r.Dir, name),
		pathlessError(err)).Because(err)
}

// Shared is a package that was published.
type Shared struct {
	Name     string
	Registry string
	Published
	Notes []string // what was left out
}

// publishPackage validates the package in the project, packs it and publishes it. AAM_MANIFEST_NOT_FOUND,
// AAM_MANIFEST_INVALID with everything that is wrong, AAM_REGISTRY_NOT_FOUND, AAM_REGISTRY_NOT_CONFIGURED,
// AAM_VERSION_EXISTS.
func (s *Service) publishPackage(ctx context.Context, registry, tag string, dryRun bool) (Shared, error) {
	v := validate(s.settings.Project, "")
	if v.Manifest == nil && !fileset.Exists(s.settings.Project+"/"+manifestName) {
		return Shared{}, newError(ManifestNotFound, "%s", v.Errors[0]).Suggest("make one with aam_create_package")
	}
	if !v.valid() {
		return Shared{}, newError(ManifestInvalid, "the package is invalid: %s", strings.Join(v.Errors, "; ")).With("errors",
			v.Errors).
			Suggest("correct it until aam_validate says that it is valid")
	}
	view, err := s.configured()
	if err != nil {
		return Shared{}, err
	}
	to, err := view.registry(registry)
	if err != nil {
		return Shared{}, err
	}
	archive, err := Pack(s.settings.Project)
	if err != nil {
		return Shared{}, err
	}
	packed, err := Unpack(archive)
	if err != nil {
		return Shared{}, err
	}
	publish := to.Publish
	if dryRun {
		publish = to.wouldPublish
	}
	p, err := publish(ctx, packed.Manifest, archive, tag, s.settings.Now())
	out := Shared{Name: packed.Manifest.Name, Registry: to.Name, Published: p}
	if fileset.Exists(filepath.Join(s.settings.Project, gitFolder)) {
		out.Notes = append(out.Notes, "git's own "+gitFolder+" in the folder was left out")
	}
	return out, err
}
