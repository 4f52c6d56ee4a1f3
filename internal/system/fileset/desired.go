package fileset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/claudeops/claudeops/internal/system/files"
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
		if err := d.claimPath(key, root, ids); err != nil {
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

// claimPath holds a new path against those of other letters, and against files where it needs folders.
func (d *Desired) claimPath(key FileKey, root string, ids []string) error {
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

// Content is the content of a file. Bytes makes one of bytes; one of a file whose hash is known reads it only when its
// bytes are asked for.
type Content struct {
	hash  string
	bytes []byte
	read  func() ([]byte, error) // nil: bytes has them
}

// Bytes makes a Content.
func Bytes(b []byte) Content { return Content{hash: Hash(b), bytes: b} }

// SHA256 returns the content's hash in hexadecimal.
func (c Content) SHA256() string { return c.hash }

// Bytes returns the content's bytes. It returns an error if they do not match the hash any more.
func (c Content) Bytes() ([]byte, error) {
	if c.read == nil {
		return c.bytes, nil
	}
	b, err := c.read()
	if err == nil && Hash(b) != c.hash {
		return nil, NewError(Unexpected, "source_changed", []string{"retry_command"},
			"a module's file was changed while it was read; try again")
	}
	return b, err
}

// Hash returns the SHA-256 of bytes in hexadecimal.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// TargetName names an agent that files are made for.
type TargetName string

// Bounds of the paths of files that are put in place, in bytes: what Linux, macOS and Windows with long paths can have.
const (
	maxNameBytes = 255
	maxPathBytes = 4095
)

// Leaves says why a path does not stay below a folder; "" if it does.
func Leaves(p string) string {
	clean := path.Clean(filepath.ToSlash(p))
	switch {
	case p == "" || strings.ContainsRune(p, 0):
		return "is not a path"
	case path.IsAbs(clean) || filepath.IsAbs(p) || len(clean) > 1 && clean[1] == ':':
		return "is not relative to its folder"
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return "leads out of its folder"
	}
	return ""
}

// unusable says why a file cannot have a path below a folder on every system; "" if it can. Modules go from machine to
// machine.
func unusable(root, rel string) string {
	if why := Leaves(rel); why != "" {
		return why
	}
	if length := len(root) + 1 + len(rel); length > maxPathBytes {
		return fmt.Sprintf("makes a path of %d bytes; at most %d are possible", length, maxPathBytes)
	}
	for _, name := range strings.Split(path.Clean(rel), "/") {
		switch {
		case len(name) > maxNameBytes:
			return fmt.Sprintf("has a name of %d bytes; at most %d are possible", len(name), maxNameBytes)
		case strings.ContainsAny(name, `\:*?"<>|`) || strings.ContainsFunc(name, unicode.IsControl):
			return "has a character that file names of some systems cannot have"
		case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
			return "has a name that ends with a dot or a space, which some systems cut off"
		case files.IsDeviceName(name):
			return "has the name of a device of Windows"
		case IsManifest(name) || strings.HasPrefix(name, temporary):
			return "has a name that deployments use themselves"
		}
		if err := files.CheckName(name); err != nil {
			return err.Error()
		}
	}
	return ""
}

// Below reports whether a path is a folder or lies in it.
func Below(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return dir != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
