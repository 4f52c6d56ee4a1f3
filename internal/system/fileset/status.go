package fileset

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/system/files"
)

// DriftKind says how a file differs from the deployed one.
type DriftKind string

// The kinds.
const (
	Missing  DriftKind = "missing"
	Modified DriftKind = "modified"
	Extra    DriftKind = "extra" // it was not deployed, in a folder that belongs to deployment
)

// Drift is a file that is not as it was deployed.
type Drift struct {
	Target    TargetName `json:"target"`
	Root      string     `json:"root,omitempty"`
	RootPosix string     `json:"root_posix,omitempty"`
	Path      string     `json:"path"`
	PathPosix string     `json:"path_posix"`
	Expected  *string    `json:"expected" doc:"sha256:HEX; null for extra"`
	Actual    *string    `json:"actual" doc:"null if the file is missing"`
	Kind      DriftKind  `json:"kind"`
}

// maxExtras bounds the files that are reported as extra in one folder.
const maxExtras = 10_000

// Status compares the files of targets with what was deployed, by target and path. In a folder without a manifest,
// which is a warning, they are compared with what should be deployed, and nothing is extra. It changes nothing.
func (e *Engine) Status(ctx context.Context, desired *Desired) (out []Drift, warnings []string, err error) {
	said, err := e.Look(ctx, func() error {
		last, err := e.state.Last()
		if err != nil {
			return err
		}
		out, warnings, err = drift(ctx, newDisk(bases(slices.Concat(desired.Roots, last.Roots))...), e.Hashes, desired, last)
		return err
	})
	if said != "" {
		warnings = append(warnings, said)
	}
	return out, warnings, err
}

func drift(ctx context.Context, d disk, known *Hashes, desired *Desired, last *Snapshot) (out []Drift,
	warnings []string, err error) {
	looks := &looker{ctx: ctx, disk: d, hashes: known}
	defer looks.close()
	h, err := readHeld(d, desired, last)
	if err != nil {
		return nil, nil, err
	}
	expected := h.managed
	inMissing := func(target TargetName, root string) bool {
		return slices.ContainsFunc(h.missing, sameRoot(RootDir{Target: target, Dir: root}))
	}
	maps.DeleteFunc(expected, func(key FileKey, _ string) bool {
		return inMissing(key.Target, rootOf(desired.Roots, key.Target, key.Path))
	})
	for _, key := range desired.keys() {
		f := desired.Files[key]
		if inMissing(key.Target, f.root) {
			expected[key] = f.Content.SHA256()
		}
	}
	warnings = h.warnings
	for _, r := range h.missing {
		warnings = append(warnings, r.Dir+" has no manifest of "+string(r.Target)+
			": nothing was deployed there yet, or it was removed")
	}
	roots := slices.Concat(desired.Roots, h.dropped)
	for _, key := range slices.SortedFunc(maps.Keys(expected), compareKeys) {
		item, differs, err := compareDeployed(looks, roots, key, expected[key])
		if err != nil {
			return nil, nil, err
		}
		if differs {
			out = append(out, item)
		}
	}
	for _, r := range desired.Roots {
		if !r.ScanExtras || slices.ContainsFunc(h.missing, sameRoot(r)) {
			continue
		}
		extras, err := extrasIn(d, r, func(name string) bool {
			_, others := h.others[name]
			_, known := expected[FileKey{r.Target, name}]
			return others || known
		})
		if err != nil {
			return nil, nil, err
		}
		out = append(out, extras...)
	}
	slices.SortFunc(out, func(a, b Drift) int { return compareKeys(FileKey{a.Target, a.Path}, FileKey{b.Target, b.Path}) })
	return out, warnings, nil
}

func compareDeployed(looks *looker, roots []RootDir, key FileKey, hash string) (item Drift, differs bool, err error) {
	at, err := looks.lstat(key.Path)
	if err != nil {
		return Drift{}, false, err
	}
	root := rootOf(roots, key.Target, key.Path)
	expected := "sha256:" + hash
	item = Drift{
		Target: key.Target, Root: root, RootPosix: filepath.ToSlash(root), Path: key.Path,
		PathPosix: filepath.ToSlash(key.Path), Expected: &expected, Kind: Modified,
	}
	switch {
	case !at.exists:
		item.Kind = Missing
	case at.hash == hash:
		return Drift{}, false, nil
	case at.what == "":
		actual := "sha256:" + at.hash
		item.Actual = &actual
	}
	return item, true, nil
}

// extrasIn lists the files of a folder that were not deployed, without manifests.
func extrasIn(d disk, r RootDir, known func(name string) bool) (out []Drift, err error) {
	base, rel, err := d.withinFolder(r.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, IOError(r.Dir, err)
	}
	defer func() { _ = base.Close() }()
	err = fs.WalkDir(base.FS(), rel, func(p string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir() || IsManifest(e.Name()) || strings.HasPrefix(e.Name(), temporary):
			return nil
		case len(out) == maxExtras:
			return fs.SkipAll
		}
		inside, err := filepath.Rel(filepath.FromSlash(rel), filepath.FromSlash(p))
		if err != nil {
			return err
		}
		name := filepath.Join(r.Dir, inside)
		if known(name) {
			return nil
		}
		at, err := d.lstat(name)
		if err != nil {
			return err
		}
		item := Drift{Target: r.Target, Root: r.Dir, RootPosix: filepath.ToSlash(r.Dir), Path: name,
			PathPosix: filepath.ToSlash(name), Kind: Extra}
		if at.what == "" && at.exists {
			actual := "sha256:" + at.hash
			item.Actual = &actual
		}
		out = append(out, item)
		return nil
	})
	if err != nil {
		return nil, IOError(r.Dir, err)
	}
	return out, nil
}

// RootHealth is doctor's report on a folder.
type RootHealth struct {
	Target     TargetName `json:"target"`
	Root       string     `json:"root"`
	RootPosix  string     `json:"root_posix"`
	Exists     bool       `json:"exists"`
	Writable   bool       `json:"writable"`
	ScanExtras bool       `json:"scan_extras"`
	Issues     []string   `json:"issues" doc:"missing, not_a_directory, not_writable"`
	Suggestion *string    `json:"suggestion"`
}

// Health looks at a folder of what is desired, and asks the system whether it may be written.
func (d *Desired) Health(r RootDir) RootHealth { return health(newDisk(bases(d.Roots)...), r) }

func health(d disk, r RootDir) RootHealth {
	h := RootHealth{Target: r.Target, Root: r.Dir, RootPosix: filepath.ToSlash(r.Dir), ScanExtras: r.ScanExtras,
		Issues: []string{}}
	say := func(issue, suggestion string) {
		h.Issues, h.Suggestion = append(h.Issues, issue), &suggestion
	}
	base, rel, err := d.withinFolder(r.Dir)
	if err != nil {
		say("missing", "make the folder, or deploy: it is made then")
		return h
	}
	defer func() { _ = base.Close() }()
	info, err := base.Stat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		say("missing", "make the folder, or deploy: it is made then")
		return h
	case err != nil || !info.IsDir():
		h.Exists = true
		say("not_a_directory", cmp.Or(outward(r.Dir), "move away what stands there"))
		return h
	}
	h.Exists = true
	if h.Writable = files.IsWritable(r.Dir); !h.Writable {
		say("not_writable", "give the user of claudeops the right to write there")
	}
	return h
}
