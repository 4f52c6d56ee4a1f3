package packages

import (
	"path/filepath"
)

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
			p.Version, reason(err)).Because(err)
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
	return filepath.Join("packages", name.folder(), "versions", version+".aam")
}
