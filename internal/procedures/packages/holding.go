package packages

import (
	"context"
	"maps"
	"slices"

	"github.com/claudeops/claudeops/internal/system/change"
)

// Holder is a package that has a file with a content.
type Holder struct {
	Name      string
	Version   string
	Registry  string
	Installed bool // in the project
}

// Bounds of what is looked through for holders: archives, the newest of each package, and the bytes of each.
const (
	maxHeldArchives = 100
	maxHeldBytes    = 1 << 20
)

// Holding lists the packages that have a file with one of some contents, by their SHA-256 in hexadecimal: the installed
// ones, and of small registries the newest version of each package. complete is false if some were not looked at.
func (b *Browser) Holding(ctx context.Context, hashes []string) (out []Holder, complete bool, err error) {
	v, err := b.service.open()
	if err != nil {
		return nil, false, general(err)
	}
	known := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(v.lock.Packages)) {
		have := v.lock.Packages[name]
		if have.FileChecksums == nil || !slices.ContainsFunc(slices.Collect(maps.Values(have.FileChecksums.Files)),
			func(sum string) bool { return slices.Contains(hashes, sum) }) {
			continue
		}
		known[name+"@"+have.Version] = true
		out = append(out, Holder{name, have.Version, have.Source, true})
	}
	complete = true
	looked := 0
	for _, r := range v.used() {
		found, err := search([]Registry{r}, "", "")
		if err != nil {
			complete = false
			continue
		}
		for _, m := range found {
			if ctx.Err() != nil || looked == maxHeldArchives {
				return out, false, nil
			}
			if known[m.Name+"@"+m.Latest] {
				continue
			}
			looked++
			has, read := archiveHas(r, m, hashes)
			complete = complete && read
			if has {
				out = append(out, Holder{m.Name, m.Latest, r.Name, false})
			}
		}
	}
	return out, complete, nil
}

// archiveHas reports whether the newest version of a package has a file with one of the contents; read is false if that
// cannot be read.
func archiveHas(r Registry, m match, hashes []string) (has, read bool) {
	name, err := parseName(m.Name)
	if err != nil {
		return false, false
	}
	metadata, err := r.metadata(name)
	if err != nil {
		return false, false
	}
	at := slices.IndexFunc(metadata.Versions, func(p Published) bool { return p.Version == m.Latest })
	if at < 0 || metadata.Versions[at].Size > maxHeldBytes {
		return false, false
	}
	packed, err := r.Archive(name, metadata.Versions[at])
	if err != nil {
		return false, false
	}
	return slices.ContainsFunc(packed.Files, func(f File) bool { return slices.Contains(hashes, change.Hash(f.Content)) }),
		true
}
