package deploy

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

func manifestPath(root string, target TargetName) string {
	return filepath.Join(root, ".agentpack.manifest."+string(target)+".json")
}

// isManifest reports whether a file's name is that of a manifest, the older form included.
func isManifest(name string) bool {
	return strings.HasPrefix(name, ".agentpack.manifest") && strings.HasSuffix(name, ".json")
}

// managed are the files that were deployed into the roots, by target and path. A manifest that cannot be used is a warning, and counts as
// missing; missing are the roots without one.
func readManaged(d disk, roots []RootDir) (files map[fileKey]manifestFile, missing []RootDir, warnings []string, err error) {
	files = map[fileKey]manifestFile{}
	for _, root := range roots {
		name := manifestPath(root.Dir, root.Target)
		at, err := d.look(name)
		if err != nil {
			return nil, nil, nil, err
		}
		if !at.exists {
			missing = append(missing, root)
			continue
		}
		var m manifest
		switch {
		case at.what != "" || json.Unmarshal(at.content, &m) != nil:
			warnings = append(warnings, fmt.Sprintf("%s cannot be read; it is treated as missing", name))
		case m.SchemaVersion != 1 || m.Tool != root.Target:
			warnings = append(warnings, fmt.Sprintf("%s has another version or is for another target; it is treated as missing", name))
		default:
			warnings = append(warnings, m.into(files, root)...)
			continue
		}
		missing = append(missing, root)
	}
	return files, missing, warnings, nil
}

func (m manifest) into(files map[fileKey]manifestFile, root RootDir) (warnings []string) {
	for _, f := range m.Managed {
		if leaves(f.Path) != "" {
			warnings = append(warnings, fmt.Sprintf("%s: the entry %q %s; it is left out", manifestPath(root.Dir, root.Target), f.Path, leaves(f.Path)))
			continue
		}
		files[fileKey{root.Target, filepath.Join(root.Dir, filepath.FromSlash(f.Path))}] = f
	}
	return warnings
}

// manifests are the contents of the manifests of a moment, by path. A file belongs to the deepest root of its target; roots without
// files have one only if they have one now (keep).
func manifests(snapshot Snapshot, keep func(RootDir) bool, now time.Time) (map[string]string, error) {
	out := map[string]string{}
	for _, root := range snapshot.Roots {
		m := manifest{SchemaVersion: 1, GeneratedAt: now.UTC(), Tool: root.Target, SnapshotID: snapshot.ID, Managed: []manifestFile{}}
		for _, f := range snapshot.Managed {
			if f.Target != root.Target || f.Root != root.Dir {
				continue
			}
			rel, err := filepath.Rel(root.Dir, f.Path)
			if err != nil {
				return nil, err
			}
			m.Managed = append(m.Managed, manifestFile{Path: filepath.ToSlash(rel), SHA256: f.SHA256, Modules: append([]string{}, f.Modules...)})
		}
		if len(m.Managed) == 0 && !keep(root) {
			continue
		}
		slices.SortFunc(m.Managed, func(a, b manifestFile) int { return strings.Compare(a.Path, b.Path) })
		text, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			return nil, err
		}
		out[manifestPath(root.Dir, root.Target)] = string(text) + "\n"
	}
	return out, nil
}

// rootOf is the deepest root of a target that holds a path; "" if none does.
func rootOf(roots []RootDir, target TargetName, name string) string {
	best := ""
	for _, r := range roots {
		rel, err := filepath.Rel(r.Dir, name)
		inside := err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
		if r.Target == target && inside && len(r.Dir) > len(best) {
			best = r.Dir
		}
	}
	return best
}
