package packages

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/filelock"
)

// Publish adds a version and points the tag to it; the first version is tagged latest as well. AAM_VERSION_EXISTS if it is there
// already, AAM_NAME_CONFLICT if another package has the folder.
func (r Registry) Publish(m *Manifest, archive []byte, tag string, now time.Time) (Published, error) {
	if _, err := r.judge(m, tag); err != nil {
		return Published{}, err
	}
	lock, err := r.lock()
	if err != nil {
		return Published{}, err
	}
	defer func() { _ = lock.file.Close() }()
	known, err := r.judge(m, tag) // others may have published meanwhile
	if err != nil {
		return Published{}, err
	}
	p := published(m, archive, now)
	folder, err := r.add(lock, known, m, p, archive, tag)
	if err != nil {
		return Published{}, err
	}
	if err := r.updateIndex(now, append(lock.unfinished, folder)...); err != nil {
		return Published{}, err
	}
	return p, lock.note()
}

// WouldPublish is Publish without writing.
func (r Registry) WouldPublish(m *Manifest, archive []byte, tag string, now time.Time) (Published, error) {
	_, err := r.judge(m, tag)
	return published(m, archive, now), err
}

func published(m *Manifest, archive []byte, now time.Time) Published {
	p := Published{
		Version: m.Version, Published: now.UTC().Format(time.RFC3339), Checksum: Checksum(archive), Size: int64(len(archive)),
		Dependencies: m.Dependencies,
	}
	if p.Dependencies == nil {
		p.Dependencies = map[string]string{}
	}
	return p
}

// judge says whether a version can be published, and what is known of the package.
func (r Registry) judge(m *Manifest, tag string) (known Metadata, err error) {
	if err := r.Reachable(); err != nil {
		return known, err
	}
	name, err := ParseName(m.Name)
	if err != nil {
		return known, err
	}
	if !validTag(tag) {
		return known, newError(InvalidArgument, "%q is no tag", tag).hint("a tag is a word such as latest or beta, and no version")
	}
	if err := r.read(metadataPath(name), &known); err != nil {
		return known, err
	}
	if known.Name != "" && known.Name != m.Name {
		return known, newError(NameConflict, "the registry %q keeps %s in the folder that %s would have", r.Name, known.Name, m.Name).
			with("packages", []string{known.Name, m.Name}).hint("choose another name")
	}
	if known.version(m.Version) != nil {
		return known, newError(VersionExists, "%s %s is published in the registry %q already", m.Name, m.Version, r.Name).
			hint("give it a new version; what is published does not change")
	}
	return known, nil
}

// add writes the archive, then the metadata.
func (r Registry) add(lock *publishing, known Metadata, m *Manifest, p Published, archive []byte, tag string) (folder string, err error) {
	name, err := ParseName(m.Name)
	if err != nil {
		return "", err
	}
	if err := r.write(archivePath(name, m.Version), archive); err != nil {
		return "", err
	}
	if err := lock.note(append(lock.unfinished, name.folder())...); err != nil {
		return "", err
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
	return name.folder(), r.writeYAML(metadataPath(name), known)
}

func metadataPath(name Name) string { return filepath.Join("packages", name.folder(), "metadata.yaml") }

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

// updateIndex renews what the index says of the packages in folders, of those that it does not know, and of those that are gone.
func (r Registry) updateIndex(now time.Time, folders ...string) error {
	entries, err := os.ReadDir(filepath.Join(r.Dir, "packages"))
	if err != nil {
		return newError(RegistryUnreachable, "the registry %q: its packages cannot be read: %s", r.Name, reason(err)).because(err)
	}
	var index Index
	if err := r.read("index.yaml", &index); err != nil {
		index = Index{} // it is made anew
	}
	known := map[string]IndexEntry{}
	for _, e := range index.Packages {
		if name, err := ParseName(e.Name); err == nil {
			known[name.folder()] = e
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

func (m *Metadata) entry(before IndexEntry, now time.Time) IndexEntry {
	e := IndexEntry{
		Name: m.Name, Description: m.Description, Author: m.Author, Latest: m.latest(), Keywords: append([]string{}, m.Keywords...),
		ArtifactTypes: append([]string{}, m.ArtifactTypes...), UpdatedAt: now.UTC().Format(time.RFC3339),
	}
	if before.Latest == e.Latest {
		e.UpdatedAt = before.UpdatedAt
	}
	return e
}

// publishing is the lock of a registry. Its file holds the folder of the package whose entry in the index may be older than its
// metadata, for the next publisher if this one is killed.
type publishing struct {
	file       *os.File
	unfinished []string // what other publishers left
}

// lock keeps other publishers of the registry out until the file is closed, or the process ends.
func (r Registry) lock() (*publishing, error) {
	file, err := os.OpenFile(filepath.Join(r.Dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err == nil {
		if err = waitForLock(file); err == nil {
			text, _ := io.ReadAll(io.LimitReader(file, 1<<16)) // what cannot be read names no package
			return &publishing{file, strings.Fields(string(text))}, nil
		}
		_ = file.Close()
	}
	return nil, r.unwritable("", err)
}

// note keeps the names of folders.
func (p *publishing) note(folders ...string) error {
	err := p.file.Truncate(0)
	if err == nil {
		_, err = p.file.WriteAt([]byte(strings.Join(folders, "\n")), 0)
	}
	if err = errors.Join(err, p.file.Sync()); err != nil {
		return newError(RegistryUnreachable, "%s cannot be written: %s", p.file.Name(), reason(err)).because(err)
	}
	return nil
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
	text, err := marshal(v)
	if err != nil {
		return newError(InternalError, "%s cannot be written", name).because(err)
	}
	return r.write(name, text)
}

// write replaces a file of the registry at once, and makes its folder.
func (r Registry) write(name string, content []byte) error {
	if err := writeBelow(r.Dir, filepath.Join(r.Dir, name), content); err != nil {
		return r.unwritable(name, err)
	}
	return nil
}

func (r Registry) unwritable(name string, err error) error {
	code := RegistryUnreachable
	if errors.Is(err, fs.ErrPermission) {
		code = PermissionDenied
	}
	return newError(code, "the registry %q: %s cannot be written: %s", r.Name, filepath.Join(r.Dir, name), reason(err)).because(err)
}
