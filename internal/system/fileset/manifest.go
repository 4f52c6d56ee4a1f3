package fileset

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// manifest says which files of a folder were deployed for a target, and as what: .agentpack.manifest.TARGET.json in it.
type manifest struct {
	SchemaVersion int            `json:"schema_version"`
	GeneratedAt   time.Time      `json:"generated_at"`
	Tool          TargetName     `json:"tool"`
	SnapshotID    string         `json:"snapshot_id"`
	Managed       []manifestFile `json:"managed_files"`
}

type manifestFile struct {
	Path    string   `json:"path"` // relative, with slashes
	SHA256  string   `json:"sha256"`
	Modules []string `json:"module_ids"`
}

// ManifestPath returns the path of a target's manifest in one of its folders.
func ManifestPath(root string, target TargetName) string {
	return filepath.Join(root, ".agentpack.manifest."+string(target)+".json")
}

// legacyManifest is the name that manifests had once. One is read if it is of the target.
const legacyManifest = ".agentpack.manifest.json"

// IsManifest reports whether a file's name is that of a manifest, the older form included.
func IsManifest(name string) bool {
	return strings.HasPrefix(name, ".agentpack.manifest") && strings.HasSuffix(name, ".json")
}

// readManifests adds to files the hashes of what was deployed into the roots. A manifest that cannot be used is a
// warning, and counts as missing; missing are the roots without one.
func readManifests(d disk, roots []RootDir, files map[FileKey]string) (missing []RootDir, warnings []string,
	err error) {
	for _, root := range roots {
		m, warning, err := readManifest(d, root)
		if err != nil {
			return nil, nil, err
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
		if m == nil {
			missing = append(missing, root)
			continue
		}
		for _, f := range m.Managed {
			if why := Leaves(f.Path); why != "" {
				warnings = append(warnings, fmt.Sprintf("%s: the entry %q %s; it is left out", ManifestPath(root.Dir, root.Target),
					Short(f.Path), why))
				continue
			}
			files[FileKey{root.Target, filepath.Join(root.Dir, filepath.FromSlash(f.Path))}] = f.SHA256
		}
	}
	return missing, warnings, nil
}

// readManifest returns a root's manifest; nil if there is none that can be used.
func readManifest(d disk, root RootDir) (m *manifest, warning string, err error) {
	for _, name := range []string{ManifestPath(root.Dir, root.Target), filepath.Join(root.Dir, legacyManifest)} {
		at, err := d.read(name)
		if err != nil {
			return nil, "", err
		}
		if !at.exists {
			continue
		}
		legacy := filepath.Base(name) == legacyManifest
		m = &manifest{}
		switch broken := at.what != "" || json.Unmarshal(at.content, m) != nil; {
		case broken:
			return nil, fmt.Sprintf("%s cannot be read; it is treated as missing", name), nil
		case legacy && m.Tool != root.Target:
			continue
		case m.SchemaVersion != 1 || m.Tool != root.Target:
			return nil, fmt.Sprintf("%s has another version or is for another target; it is treated as missing", name), nil
		}
		return m, "", nil
	}
	return nil, "", nil
}

// manifests returns the required contents of the manifests of a snapshot's roots, by path; "" for one to remove. A root
// without files keeps its manifest only if keep says so.
func manifests(snapshot *Snapshot, roots []RootDir, exists, keep func(RootDir) bool, now time.Time) (map[string]string,
	error) {
	out := map[string]string{}
	for _, root := range roots {
		m := manifest{SchemaVersion: 1, GeneratedAt: now.UTC(), Tool: root.Target, SnapshotID: snapshot.ID,
			Managed: []manifestFile{}}
		for _, f := range snapshot.Managed {
			if f.Owner != Agentpack || f.Target != root.Target || f.Root != root.Dir {
				continue
			}
			rel, err := filepath.Rel(root.Dir, f.Path)
			if err != nil {
				return nil, err
			}
			m.Managed = append(m.Managed, manifestFile{Path: filepath.ToSlash(rel), SHA256: f.SHA256,
				Modules: append([]string{}, f.Modules...)})
		}
		if len(m.Managed) == 0 {
			if !exists(root) {
				continue
			}
			if !keep(root) {
				out[ManifestPath(root.Dir, root.Target)] = ""
				continue
			}
		}
		slices.SortFunc(m.Managed, func(a, b manifestFile) int { return strings.Compare(a.Path, b.Path) })
		text, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			return nil, err
		}
		out[ManifestPath(root.Dir, root.Target)] = string(text) + "\n"
	}
	return out, nil
}

// rootOf returns the deepest root of a target that holds a path; "" if none does.
func rootOf(roots []RootDir, target TargetName, name string) string {
	best := ""
	for _, r := range roots {
		if r.Target == target && len(r.Dir) > len(best) && Below(r.Dir, name) {
			best = r.Dir
		}
	}
	return best
}

// held describes the deployed files: their owners, and which of them a deployment of this owner is responsible for.
type held struct {
	managed  map[FileKey]string // of the owner, within reach of this deployment: their hashes
	missing  []RootDir          // without a manifest
	others   map[string]FileKey // of other owners, or of targets that this deployment is not about, by path
	owners   map[string]Owner   // of those
	dropped  []RootDir          // that the owner had files in, and has no more
	warnings []string
	made     func(dir string) bool // deployments have made a folder
	original map[FileKey]*Original // what stood there before, of managed; nil of one that it is not known of
}

// readHeld asks the manifests, and the ledger where there is none.
func readHeld(d disk, desired *Desired, last *Snapshot) (h *held, err error) {
	h = &held{managed: map[FileKey]string{}, others: map[string]FileKey{}, owners: map[string]Owner{},
		made:     last.madeFolder,
		original: map[FileKey]*Original{}}
	if desired.Owner == Agentpack {
		if h.missing, h.warnings, err = readManifests(d, desired.Roots, h.managed); err != nil {
			return nil, err
		}
	}
	for _, f := range last.Managed {
		if desired.answersFor(f) {
			h.original[f.fileKey()] = f.Original
		}
		switch {
		case !desired.answersFor(f):
			h.others[f.Path], h.owners[f.Path] = f.fileKey(), f.Owner
		case desired.Owner != Agentpack || h.withoutManifest(desired, f):
			h.managed[f.fileKey()] = f.SHA256
		}
	}
	for _, r := range last.Roots {
		if !slices.ContainsFunc(desired.Roots, sameRoot(r)) && slices.ContainsFunc(last.Managed, func(f FileState) bool {
			return f.Root == r.Dir && f.Target == r.Target && desired.answersFor(f)
		}) {
			h.dropped = append(h.dropped, r)
		}
	}
	return h, nil
}

// withoutManifest reports whether no manifest lists the contents of a file's folder.
func (h *held) withoutManifest(desired *Desired, f FileState) bool {
	same := func(r RootDir) bool { return r.Target == f.Target && r.Dir == f.Root }
	return slices.ContainsFunc(h.missing, same) || !slices.ContainsFunc(desired.Roots, same)
}

func sameRoot(r RootDir) func(RootDir) bool {
	return func(other RootDir) bool { return r.Target == other.Target && r.Dir == other.Dir }
}

// answersFor reports whether a file that is in place is this owner's, and goes if it is not wanted any more: it is for
// one of the targets, and lies in one of the folders or came from the same source and project.
func (d *Desired) answersFor(f FileState) bool {
	if f.Owner != d.Owner || !slices.Contains(d.Targets, f.Target) {
		return false
	}
	if len(d.Modules) > 0 && !slices.ContainsFunc(f.Modules,
		func(id string) bool { return slices.Contains(d.Modules, id) }) {
		return false
	}
	return f.Source == d.Source && f.Project == d.Project ||
		d.Owner == Agentpack && slices.ContainsFunc(d.Roots, sameRoot(RootDir{Target: f.Target, Dir: f.Root}))
}
