package packages

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// marks returns the lines between which a section stands in a file that others write, too.
func marks(words string) (begin, end string) {
	return "<!-- BEGIN AAM: " + words + " -->", "<!-- END AAM: " + words + " -->"
}

// sectionText returns a section with its marks.
func sectionText(p placed) ([]byte, error) {
	begin, end := marks(p.section)
	text, err := p.file.Content.Bytes()
	return []byte(begin + "\n" + strings.TrimRight(string(text), "\n") + "\n" + end + "\n"), err
}

// Section is a section that was put into a file.
type Section struct {
	Path   string `yaml:"path"`   // relative to the project, with slashes
	Words  string `yaml:"words"`  // of its marks
	SHA256 string `yaml:"sha256"` // of the section with its marks, sha256: and hexadecimal
	// Before is the white space that was put before it.
	Before string `yaml:"before,omitempty"`
	// Created says that the file did not exist before packages made it.
	Created bool `yaml:"created,omitempty"`
}

// addSection puts a section at the end of a text, after an empty line.
func addSection(text []byte, p placed, block []byte) ([]byte, Section) {
	before := ""
	switch {
	case len(text) == 0:
	case !bytes.HasSuffix(text, []byte("\n")):
		before = "\n\n"
	case !bytes.HasSuffix(text, []byte("\n\n")):
		before = "\n"
	}
	return slices.Concat(text, []byte(before), block), Section{Path: p.path, Words: p.section, SHA256: checksum(block),
		Before: before}
}

// findSection returns the place of a section with its marks in a text; ok is false if it is missing, or there more than
// once.
func findSection(text []byte, words string) (from, to int, ok bool) {
	begin, end := marks(words)
	from = bytes.Index(text, []byte(begin+"\n"))
	if from < 0 || from > 0 && text[from-1] != '\n' || bytes.Count(text, []byte(begin)) > 1 {
		return 0, 0, false
	}
	length := bytes.Index(text[from:], []byte("\n"+end))
	if length < 0 {
		return 0, 0, false
	}
	to = from + length + 1 + len(end)
	if to < len(text) && text[to] == '\n' {
		to++
	}
	return from, to, true
}

// removeSection takes a section out of a text, with the white space that was put before it. changed reports that a
// person has changed it, so that it stays.
func removeSection(text []byte, s Section) (out []byte, changed bool) {
	from, to, ok := findSection(text, s.Words)
	if !ok {
		return text, false // a person has removed it, or made something else of it
	}
	if checksum(text[from:to]) != s.SHA256 {
		return text, true
	}
	if bytes.HasSuffix(text[:from], []byte(s.Before)) {
		from -= len(s.Before)
	}
	return slices.Concat(text[:from], text[to:]), false
}

// maxTextBytes bounds a file that sections are put into.
const maxTextBytes = 16 << 20

// editing is the files with sections as a change makes them, by their path without links.
type editing struct {
	project string
	lock    *Lock // as it will be
	before  map[string][]byte
	now     map[string][]byte
	notes   []string
}

// sections says how a change edits the files that others write, too, and notes the sections in the new lock file.
// AAM_NAME_CONFLICT if somebody else has a section of the same name, or has changed one that has to be replaced.
func (c *changeOfPackages) sections() (edits []textEdit, notes []string, err error) {
	e := editing{c.workspace.Project, c.after, map[string][]byte{}, map[string][]byte{}, nil}
	for _, name := range c.touched {
		_, stays := c.after.Packages[name]
		if err := e.dropSections(name, c.before.Packages[name].Sections, stays); err != nil {
			return nil, nil, err
		}
	}
	for _, name := range c.touched {
		locked, stays := c.after.Packages[name]
		if !stays {
			continue
		}
		locked.Sections = nil
		for _, platform := range locked.Platforms {
			wanted, err := planArtifacts(c.models[name], platform, c.trees[name])
			if err != nil {
				return nil, nil, err
			}
			for _, p := range wanted {
				if p.section == "" {
					continue
				}
				s, err := e.insertSection(p)
				if err != nil {
					return nil, nil, err
				}
				locked.Sections = append(locked.Sections, s)
			}
		}
		c.after.Packages[name] = locked
	}
	for _, name := range slices.Sorted(maps.Keys(e.now)) {
		if !sameContent(e.before[name], e.now[name]) {
			edits = append(edits, textEdit{name, e.before[name], e.now[name]})
		}
	}
	return edits, e.notes, nil
}

// readTarget reads a file of the project, and gives its path without links; one that leads out of the project is
// refused.
func (e *editing) readTarget(name string) (string, error) {
	target := real(filepath.Join(e.project, filepath.FromSlash(name)))
	rel, err := filepath.Rel(real(e.project), target)
	if err != nil || !fileset.Below(real(e.project), target) {
		return "", newError(PermissionDenied, "%s is a link that leads out of the project",
			name).Suggest("replace the link by a file")
	}
	rel = filepath.ToSlash(rel)
	if _, known := e.now[rel]; known {
		return rel, nil
	}
	root, err := files.OpenDir(e.project)
	if err != nil {
		return "", unwritable(e.project, err)
	}
	defer func() { _ = root.Close() }()
	text, _, err := root.Read(rel, maxTextBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text = nil
	case err != nil:
		return "", newError(PermissionDenied, "%s cannot be read: %s", name, pathlessError(err)).Because(err)
	case text == nil:
		text = []byte{}
	}
	e.before[rel], e.now[rel] = text, text
	return rel, nil
}

// dropSections takes the sections of a package out.
func (e *editing) dropSections(pkg string, sections []Section, replaced bool) error {
	for _, s := range sections {
		name, err := e.readTarget(s.Path)
		if err != nil {
			return err
		}
		out, changed := removeSection(e.now[name], s)
		switch {
		case changed && replaced:
			return blame(newError(NameConflict, "somebody has changed the section %q of %s, which %s has put there", s.Words,
				s.Path, pkg).
				With("path", s.Path).Suggest("move what was changed out of the section's marks, or undo it, and try again"), pkg)
		case changed:
			e.notes = append(e.notes, "the section \""+s.Words+"\" of "+s.Path+" was changed by somebody; it was left as it is")
			continue
		}
		if s.Created && len(out) == 0 {
			out = nil
		} else if s.Created {
			e.passOn(s.Path, pkg)
		}
		e.now[name] = out
	}
	return nil
}

// passOn moves to another section of a file the note that the file did not exist before packages made it.
func (e *editing) passOn(name, pkg string) {
	for _, other := range slices.Sorted(maps.Keys(e.lock.Packages)) {
		for i, s := range e.lock.Packages[other].Sections {
			if other != pkg && s.Path == name {
				e.lock.Packages[other].Sections[i].Created = true
				return
			}
		}
	}
}

// insertSection puts a section into its file.
func (e *editing) insertSection(p placed) (Section, error) {
	name, err := e.readTarget(p.path)
	if err != nil {
		return Section{}, err
	}
	block, err := sectionText(p)
	if err != nil {
		return Section{}, newError(IntegrityError, "%s cannot be read", p.pkg).Because(err)
	}
	begin, _ := marks(p.section)
	if strings.Contains(string(e.now[name]), begin) {
		if from, to, ok := findSection(e.now[name], p.section); ok && e.owner(p) == "" &&
			string(e.now[name][from:to]) == string(block) && e.linked(name, p) {
			return Section{Path: p.path, Words: p.section, SHA256: checksum(block)}, nil // two names of one file
		}
		other := e.owner(p)
		if other == "" {
			other = "somebody else"
		}
		return Section{}, blame(newError(NameConflict, "%s has a section %q of %s, and %s brings one, too", p.path, p.section,
			other, p.pkg).
			With("path", p.path).With("packages",
			[]string{other, p.pkg}).Suggest("uninstall the other package, or remove the section"), p.pkg)
	}
	created := e.now[name] == nil
	text, s := addSection(e.now[name], p, block)
	s.Created = created
	e.now[name] = text
	return s, nil
}

// owner returns the package that has put a section of the same name into the same file; "" for none.
func (e *editing) owner(p placed) string {
	for _, other := range slices.Sorted(maps.Keys(e.lock.Packages)) {
		for _, s := range e.lock.Packages[other].Sections {
			if other != p.pkg && s.Path == p.path && s.Words == p.section {
				return other
			}
		}
	}
	return ""
}

// linked reports whether the file has another name than the one that is wanted, such as CLAUDE.md for AGENTS.md.
func (e *editing) linked(name string, p placed) bool { return name != p.path }
