package packages

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/system/change"
	"github.com/claudeops/claudeops/internal/system/files"
)

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
		if err := e.remove(name, c.before.Packages[name].Sections, stays); err != nil {
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
			wanted, err := place(c.models[name], platform, c.trees[name])
			if err != nil {
				return nil, nil, err
			}
			for _, p := range wanted {
				if p.section == "" {
					continue
				}
				s, err := e.add(p)
				if err != nil {
					return nil, nil, err
				}
				locked.Sections = append(locked.Sections, s)
			}
		}
		c.after.Packages[name] = locked
	}
	for _, name := range slices.Sorted(maps.Keys(e.now)) {
		if !same(e.before[name], e.now[name]) {
			edits = append(edits, textEdit{name, e.before[name], e.now[name]})
		}
	}
	return edits, e.notes, nil
}

// open reads a file of the project, and gives its path without links; one that leads out of the project is refused.
func (e *editing) open(name string) (string, error) {
	target := real(filepath.Join(e.project, filepath.FromSlash(name)))
	rel, err := filepath.Rel(real(e.project), target)
	if err != nil || !change.Below(real(e.project), target) {
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
		return "", newError(PermissionDenied, "%s cannot be read: %s", name, reason(err)).Because(err)
	case text == nil:
		text = []byte{}
	}
	e.before[rel], e.now[rel] = text, text
	return rel, nil
}

// remove takes the sections of a package out.
func (e *editing) remove(pkg string, sections []Section, replaced bool) error {
	for _, s := range sections {
		name, err := e.open(s.Path)
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

// add puts a section into its file.
func (e *editing) add(p placed) (Section, error) {
	name, err := e.open(p.path)
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
