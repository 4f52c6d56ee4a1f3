package change

import (
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Owner says who has a file put in place. A file has one owner; no other changes or removes it.
type Owner string

// Agentpack owns what comes from an agentpack.yaml. Its files are also listed in manifests in their folders, as its
// users expect.
const Agentpack Owner = "agentpack"

// RootDir is a folder that a target has files in.
type RootDir struct {
	Target     TargetName
	Dir        string // absolute
	Base       string // absolute; no link is followed out of it
	ScanExtras bool   // files that were not deployed are reported
}

// DesiredFile is a file that should be there.
type DesiredFile struct {
	Content    Content
	Executable bool
	Modules    []string // ids of what it comes from, sorted
	root       string
}

// FileKey names a file of a target.
type FileKey struct {
	Target TargetName
	Path   string // absolute
}

func compareKeys(a, b FileKey) int {
	if a.Target != b.Target {
		return strings.Compare(string(a.Target), string(b.Target))
	}
	return strings.Compare(a.Path, b.Path)
}

// Desired are all files that an owner wants for some targets, in a project and in the user's folders. What the owner
// has there beyond them goes. NewDesired makes one.
type Desired struct {
	Owner   Owner
	Source  string // what they are made from, such as the configuration's folder
	Project string // absolute
	Targets []TargetName
	Roots   []RootDir
	Files   map[FileKey]DesiredFile
	// Modules, if there are any, say what this is about: files of the owner that come from others stay as they are.
	Modules []string
	// KeepChanged leaves files of the owner that somebody has changed since as they are, rather than replace or remove
	// them.
	KeepChanged bool

	wanted map[string]bool    // paths, for whatever target
	folded map[FileKey]string // paths, and the folders above them, by their form in small letters
}

// NewDesired wants no file yet. Applied as it is, it removes all that the owner has from this source for the targets
// and the project.
func NewDesired(owner Owner, source, project string, targets ...TargetName) *Desired {
	return &Desired{Owner: owner, Source: source, Project: project, Targets: targets, Files: map[FileKey]DesiredFile{},
		wanted: map[string]bool{}, folded: map[FileKey]string{}}
}

// AddRoot adds a folder of a target's files. base is the folder above it, or itself, out of which no link is followed.
// With scan, Status reports files there that were not deployed.
func (d *Desired) AddRoot(target TargetName, dir, base string, scan bool) {
	if root := (RootDir{Target: target, Dir: dir, Base: base, ScanExtras: scan}); !slices.Contains(d.Roots, root) {
		d.Roots = append(d.Roots, root)
	}
}

// Add wants a file. root is one of the target's folders, rel the path below it, with slashes; ids name what the file
// comes from. Two may want the same bytes. E_CONFIG_INVALID for a path that leads out, or that not every system can
// have; E_DESIRED_STATE_CONFLICT if two want different bytes, or their paths differ in small and capital letters alone.
func (d *Desired) Add(target TargetName, root, rel string, f TreeFile, ids ...string) error {
	if why := unusable(root, rel); why != "" {
		return invalidConfig("the module %s would write %q, which %s", ids[0], Short(rel), why).With("module_id", ids[0])
	}
	key := FileKey{target, filepath.Join(root, filepath.FromSlash(rel))}
	known, ok := d.Files[key]
	if !ok {
		if err := d.claim(key, root, ids); err != nil {
			return err
		}
		d.wanted[key.Path] = true
		d.Files[key] = DesiredFile{Content: f.Content, Executable: f.Executable, Modules: ids, root: root}
		return nil
	}
	if known.Content.SHA256() != f.Content.SHA256() {
		return conflict(key, known, ids, "want different contents of").
			With("existing", map[string]any{"sha256": known.Content.SHA256(), "module_ids": known.Modules}).
			With("new", map[string]any{"sha256": f.Content.SHA256(), "module_ids": ids})
	}
	known.Modules = slices.Compact(slices.Sorted(slices.Values(slices.Concat(known.Modules, ids))))
	known.Executable = known.Executable || f.Executable
	d.Files[key] = known
	return nil
}

// claim holds a new path against those of other letters, and against files where it needs folders.
func (d *Desired) claim(key FileKey, root string, ids []string) error {
	for p := key.Path; len(p) > len(root); p = filepath.Dir(p) {
		folded := FileKey{key.Target, strings.ToLower(norm.NFC.String(p))} // macOS takes both ways to write ö for one
		other, taken := d.folded[folded]
		known, isFile := d.Files[FileKey{key.Target, other}]
		if taken && (isFile || p == key.Path) {
			return conflict(key, known, ids, "want paths that cannot both be, on every system,").With("other_path", other)
		}
		if !taken {
			d.folded[folded] = p
		}
	}
	return nil
}

func conflict(key FileKey, known DesiredFile, ids []string, what string) *Error {
	return NewError(DesiredStateConflict, "desired_state_conflict",
		[]string{"resolve_desired_state_conflict", "retry_command"},
		"two modules %s %s: %s and %s", what, key.Path, strings.Join(known.Modules, ", "),
		strings.Join(ids, ", ")).With("target", key.Target).With("path", key.Path)
}

// wants reports whether a path is wanted for any target.
func (d *Desired) wants(name string) bool { return d.wanted[name] }

// keys returns the files' names, by target and path.
func (d *Desired) keys() []FileKey {
	out := make([]FileKey, 0, len(d.Files))
	for k := range d.Files {
		out = append(out, k)
	}
	slices.SortFunc(out, compareKeys)
	return out
}

// bases returns the folders out of which no link is followed.
func bases(roots []RootDir) (out []string) {
	for _, r := range roots {
		out = append(out, r.Base)
	}
	return out
}

// Short returns a text from outside as a message shows it.
func Short(text string) string {
	if len(text) > 120 {
		return text[:60] + "…" + text[len(text)-50:]
	}
	return text
}
