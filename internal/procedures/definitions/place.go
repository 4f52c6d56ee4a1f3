package definitions

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/system/files"
)

// definitionRoot is a folder below which definitions lie. Every access goes through a files.Dir, which follows no
// symbolic link out of it.
type definitionRoot struct {
	source Source
	root   string // absolute
	below  string // where the folders of kinds lie, from the root
}

// definitionFile is a file that should hold a definition.
type definitionFile struct {
	place   definitionRoot
	kind    Kind
	name    string // of the definition, as folder or file is named
	version string // of the folder, in the global registry
	rel     string // from the place's root, with slashes
	info    fs.FileInfo
}

// path returns the file's absolute path.
func (f definitionFile) path() string { return filepath.Join(f.place.root, filepath.FromSlash(f.rel)) }

// extensions returns the endings of definitions, the preferred one first.
func extensions() []string { return []string{".md", ".yaml", ".yml"} }

// isPrograms reports whether the place has what programs read by themselves: agents of Claude Code, each in a file of
// Markdown, and skills, each in a folder.
func (p definitionRoot) isPrograms() bool { return p.below == claudeFolder || p.below == agentsFolder }

// mayHave reports whether the place may have definitions of a kind.
func (p definitionRoot) mayHave(kind Kind) bool {
	switch p.below {
	case claudeFolder:
		return kind != Tool
	case agentsFolder:
		return kind == Skill
	}
	return kind != Skill
}

// open opens the place's root; nil if it does not exist.
func (p definitionRoot) open() (*files.Dir, error) {
	root, err := files.OpenDir(p.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return root, err
}

// definitionFiles lists the files of a kind, those of one name if only is not "", and what cannot be read. A folder
// without a definition is not a problem. More than maxDefinitions entries are a *limitError.
func (p definitionRoot) definitionFiles(kind Kind, only string) (found []definitionFile, problems Problems, err error) {
	if !p.mayHave(kind) {
		return nil, nil, nil
	}
	root, err := p.open()
	if err != nil {
		return nil, Problems{unreachable(p.root, err)}, nil
	}
	if root == nil {
		return nil, nil, nil
	}
	defer func() { _ = root.Close() }()
	folder := path.Join(p.below, kind.folderName())
	entries, complete, err := root.Entries(folder, maxDefinitions)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, Problems{unreachable(filepath.Join(p.root, folder), err)}, nil
	}
	if !complete {
		return nil, nil, &limitError{What: filepath.Join(p.root, folder), Most: maxDefinitions}
	}
	near, err := root.Folder(folder) // spares the way from the root for each file
	if err != nil {
		return nil, Problems{unreachable(filepath.Join(p.root, folder), err)}, nil
	}
	defer func() { _ = near.Close() }()
	seen := map[string]string{}
	for _, e := range entries {
		if only != "" && p.nameOf(e) != only || isHidden(e) {
			continue
		}
		f, problem := p.inspectEntry(root, near, kind, folder, e)
		if problem != nil {
			problems = append(problems, *problem)
		}
		if f == nil {
			continue
		}
		key := f.name + "@" + f.version
		if other, twice := seen[key]; twice {
			problems = append(problems, duplicate(f, other))
		}
		seen[key] = f.path()
		found = append(found, *f)
	}
	return found, problems, nil
}

func duplicate(f *definitionFile, other string) Problem {
	return Problem{
		File: f.path(), Severity: SeverityWarning, Message: fmt.Sprintf("defines the same name as %s", other),
		Suggestion: "keep one of the two files",
	}
}

func unreachable(name string, err error) Problem {
	var of *fs.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	return Problem{
		File: name, Severity: SeverityError, Message: "cannot be read: " + readProblem(err),
		Suggestion: "a symbolic link may not lead out of the folder; otherwise look at the permissions",
	}
}

// nameOf returns the name of the definition that an entry may hold.
func (p definitionRoot) nameOf(e fs.DirEntry) string {
	name := e.Name()
	if ext := path.Ext(name); knownExtension(ext) {
		name = strings.TrimSuffix(name, ext)
	}
	if at := strings.LastIndex(name, "@"); p.source == Global && at > 0 {
		name = name[:at]
	}
	return name
}

// names lists the names of a kind's definitions, as far as they are known without looking into folders.
func (p definitionRoot) names(kind Kind) []string {
	if !p.mayHave(kind) {
		return nil
	}
	root, err := p.open()
	if err != nil || root == nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	// as many as can be read: they are suggestions
	entries, _, err := root.Entries(path.Join(p.below, kind.folderName()), maxDefinitions)
	if err != nil {
		return nil
	}
	entries = slices.DeleteFunc(entries, isHidden)
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = p.nameOf(e)
	}
	return out
}

// fileNames returns the names of the file in a definition's own folder, the preferred one first.
func (k Kind) fileNames() (out []string) {
	if k == Skill {
		return []string{skillFileName}
	}
	for _, ext := range extensions() {
		out = append(out, string(k)+ext)
	}
	return out
}

// isHidden reports whether an entry is what editors and file systems put beside a definition, such as ._x.yaml.
func isHidden(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }

// inspectEntry says which definition an entry of a kind's folder holds, if any. near is that folder.
func (p definitionRoot) inspectEntry(root, near *files.Dir, kind Kind, folder string,
	e fs.DirEntry) (*definitionFile, *Problem) {
	info, err := e.Info()
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		info, err = root.Stat(path.Join(folder, e.Name()))
	}
	if err != nil {
		problem := unreachable(filepath.Join(p.root, folder, e.Name()), err)
		return nil, &problem
	}
	f := definitionFile{place: p, kind: kind, info: info}
	if !info.IsDir() {
		ext := path.Ext(e.Name())
		if !info.Mode().IsRegular() || !knownExtension(ext) || kind == Skill || p.isPrograms() && ext != ".md" {
			return nil, nil
		}
		f.name, f.rel = strings.TrimSuffix(e.Name(), ext), path.Join(folder, e.Name())
		return &f, nil
	}
	if p.isPrograms() && kind != Skill {
		return nil, nil
	}
	f.name, f.version = e.Name(), ""
	if p.source == Global && kind != Skill {
		if at := strings.LastIndex(e.Name(), "@"); at > 0 {
			f.name, f.version = e.Name()[:at], e.Name()[at+1:]
		}
	}
	for _, name := range kind.fileNames() {
		inside := path.Join(e.Name(), name)
		rel := path.Join(folder, inside)
		info, err := near.Stat(inside)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil { // perhaps a link to another folder of the root
			info, err = root.Stat(rel)
		}
		if err != nil || !info.Mode().IsRegular() {
			problem := unreachable(filepath.Join(p.root, rel), notRegular(err))
			return nil, &problem
		}
		f.rel, f.info = rel, info
		return &f, nil
	}
	return nil, nil
}

// notRegular returns err, or says what is wrong with a file that exists.
func notRegular(err error) error {
	if err == nil {
		return errors.New("it is not a regular file")
	}
	return err
}

func knownExtension(ext string) bool {
	for _, known := range extensions() {
		if ext == known {
			return true
		}
	}
	return false
}

// read reads the file, at most maxFileBytes and one more.
func (f definitionFile) read() ([]byte, error) {
	root, err := f.place.open()
	if err != nil {
		return nil, err
	}
	if root == nil {
		return nil, fs.ErrNotExist
	}
	defer func() { _ = root.Close() }()
	opened, _, err := root.Open(f.rel)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	return io.ReadAll(io.LimitReader(opened, maxFileBytes+1))
}

// readBelow reads a regular file below a root, of at most maxFileBytes.
func readBelow(root *files.Dir, name string) ([]byte, error) {
	content, _, err := root.Read(name, maxFileBytes)
	return content, err
}

// maxDefinitions bounds the definitions of one kind in one place.
const maxDefinitions = 20_000

// limitError says that there is more than is read.
type limitError struct {
	What string
	Most int
}

// Error implements error.
func (e *limitError) Error() string {
	return fmt.Sprintf("%s has more than %d entries, which is the most that are read", e.What, e.Most)
}

// readProblem returns an error in words: those of the JSON library speak of Go types.
func readProblem(err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err.Error()
	}
	return strings.TrimSpace(fmt.Sprintf("%s is of a wrong type, %s", wrong.Field, wrong.Value))
}
