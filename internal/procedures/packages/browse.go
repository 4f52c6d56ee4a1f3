package packages

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// Integrity is the result of checking the files of an installed package.
type Integrity string

// The findings. A package that is not installed has none of them.
const (
	Whole      Integrity = "whole"      // all files are as they were installed
	Altered    Integrity = "changed"    // some were changed, or are missing
	Unrecorded Integrity = "unrecorded" // nothing was recorded to hold them against
)

// Offer is a package that a registry has, or that is installed, as a person looks at it.
type Offer struct {
	Name        string
	Description string
	Types       []string    // of its artifacts, in the singular
	Registry    string      // that has it, or that it came from; "" if none has it any more
	Latest      string      // "" if no registry has it
	Versions    []Published // newest first
	Installed   string      // its version; "" if it is not installed
	Integrity   Integrity
	Why         string   // it is changed
	Dependants  []string // installed packages that need it, directly or indirectly
}

// PackageListPage is a part of the packages that there are.
type PackageListPage struct {
	Offers     []Offer
	Total      int      // that fit, on all pages
	Registries []string // the configured ones
	Problems   []string // registries that cannot be read, each with the reason
	Workspace  bool     // the project has one
}

// Browsing says which packages to look at. Limit is of those that are given, 0 for none.
type Browsing struct {
	Text          string // of name, keyword or description; "" for all
	Offset, Limit int
	Compare       func(a, b Listed) int // orders them; nil for by name
}

// Listed is what packages are sorted by.
type Listed struct{ Name, Installed string }

// Browser looks at packages for people. Make it with NewBrowser.
type Browser struct{ service *Service }

// NewBrowser makes a Browser. It touches nothing.
func NewBrowser(s *Service) *Browser { return &Browser{s} }

// Browse lists the packages of all registries, and those that are installed, by name. A registry that cannot be read is
// a problem of the answer; a configuration or a lock file that cannot be used is an error, which is a fault.
func (b *Browser) Browse(_ context.Context, q Browsing) (PackageListPage, error) {
	v, err := b.service.loadView()
	if err != nil {
		return PackageListPage{}, general(err)
	}
	out := PackageListPage{Workspace: v.workspace.exists()}
	entries := map[string]match{}
	out.Problems = v.unused()
	for _, r := range v.used() {
		out.Registries = append(out.Registries, r.Name)
		found, err := searchIndexes([]Registry{r}, q.Text, "")
		if err != nil {
			out.Problems = append(out.Problems, messageOf(err))
		}
		for _, m := range found {
			if _, has := entries[m.Name]; !has {
				entries[m.Name] = m
			}
		}
	}
	query := strings.ToLower(strings.TrimSpace(q.Text))
	for name := range v.lock.Packages {
		if _, has := entries[name]; !has && (IndexEntry{Name: name}).score(query) > 0 {
			entries[name] = match{IndexEntry: IndexEntry{Name: name}}
		}
	}
	names := slices.Sorted(maps.Keys(entries))
	if q.Compare != nil {
		listed := func(name string) Listed { return Listed{name, v.lock.Packages[name].Version} }
		slices.SortStableFunc(names, func(a, b string) int { return q.Compare(listed(a), listed(b)) })
	}
	out.Total = len(names)
	from := min(q.Offset, len(names))
	for _, name := range names[from:min(from+q.Limit, len(names))] {
		out.Offers = append(out.Offers, v.offer(entries[name]))
	}
	return out, nil
}

// Offered returns one package; fault.NotFound if neither a registry nor the project has it.
func (b *Browser) Offered(_ context.Context, name string) (Offer, error) {
	n, err := parseName(name)
	if err != nil {
		return Offer{}, general(err)
	}
	v, err := b.service.loadView()
	if err != nil {
		return Offer{}, general(err)
	}
	for _, r := range v.used() {
		index, err := r.Index()
		if i := slices.IndexFunc(index.Packages, func(e IndexEntry) bool { return e.Name == n.String() }); err == nil &&
			i >= 0 {
			return v.offer(match{IndexEntry: index.Packages[i], Registry: r.Name}), nil
		}
	}
	if _, installed := v.lock.Packages[n.String()]; installed {
		return v.offer(match{IndexEntry: IndexEntry{Name: n.String()}}), nil
	}
	return Offer{}, fault.New(fault.NotFound, "no registry has the package %s, and it is not installed", n)
}

// offer adds to what the index has what the package's metadata and the lock file know.
func (v *inventory) offer(m match) Offer {
	out := Offer{Name: m.Name, Description: m.Description, Types: m.ArtifactTypes, Registry: m.Registry, Latest: m.Latest,
		Dependants: v.lock.dependents(m.Name)}
	name, err := parseName(m.Name)
	if err != nil {
		out.Why = messageOf(err)
		return out
	}
	for _, r := range v.used() {
		if known, err := r.readMetadata(name); r.Name == m.Registry && err == nil {
			out.Versions = slices.Clone(known.Versions)
			slices.SortStableFunc(out.Versions, func(a, b Published) int { return compareVersions(b.Version, a.Version) })
		}
	}
	locked, installed := v.lock.Packages[m.Name]
	if !installed {
		return out
	}
	out.Installed, out.Registry, out.Integrity = locked.Version, cmp.Or(out.Registry, locked.Source), Whole
	_, manifest, err := installedTree(v.workspace, name, locked)
	switch {
	case err != nil:
		out.Integrity, out.Why = Altered, messageOf(err)
	case locked.FileChecksums == nil || locked.Checksum == "":
		out.Integrity = Unrecorded
	}
	if out.Description == "" && manifest != nil {
		out.Description = manifest.Description
	}
	return out
}

// general returns an error as pages take it: a fault of the program's own codes.
func general(err error) error {
	var e *Error
	if !asError(err, &e) {
		return err
	}
	return fault.Wrap(e, e.Code.general(), "%s", e.Message)
}

// messageOf returns an error as a person reads it beside others.
func messageOf(err error) string {
	var e *Error
	if asError(err, &e) {
		return e.Message
	}
	return err.Error()
}

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
	v, err := b.service.loadView()
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
		found, err := searchIndexes([]Registry{r}, "", "")
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
	metadata, err := r.readMetadata(name)
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
	return slices.ContainsFunc(packed.Files, func(f File) bool {
			return slices.Contains(hashes,
				fileset.Hash(f.Content))
		}),
		true
}
