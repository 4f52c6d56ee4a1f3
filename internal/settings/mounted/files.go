package mounted

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/claudeops/claudeops/internal/system/files"
)

// files lists the Markdown files in the folders, and notes what is left out.
func (r *Repository) files(root *files.Dir, dirs ...string) []string {
	out := []string{}
	for _, dir := range dirs {
		for _, e := range r.entries(root, dir) {
			name := path.Join(dir, e.Name())
			if strings.HasSuffix(name, ".md") && r.offerable(root, name, e) {
				out = append(out, name)
			}
		}
	}
	return r.bounded(out, dirs[0])
}

// skills lists .claude-ops/skills/NAME.md and .claude-ops/skills/NAME/SKILL.md.
func (r *Repository) skills(root *files.Dir) []string {
	const dir = ".claude-ops/skills"
	out := []string{}
	for _, e := range r.entries(root, dir) {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir() && !canonical(name):
			r.problem("the folder %s has a name that is not plain, and is left out", shown(name))
		case e.IsDir():
			info, err := root.Lstat(path.Join(name, "SKILL.md"))
			if err == nil && r.offerable(root, path.Join(name, "SKILL.md"), fs.FileInfoToDirEntry(info)) {
				out = append(out, path.Join(name, "SKILL.md"))
			}
		case strings.HasSuffix(name, ".md") && r.offerable(root, name, e):
			out = append(out, name)
		}
	}
	return r.bounded(out, "skills")
}

// entries lists a folder of the repository; one that is absent is empty.
func (r *Repository) entries(root *files.Dir, dir string) []fs.DirEntry {
	ok, problem := plainFolder(root, dir)
	if problem != "" {
		r.problem("%s", problem)
	}
	if !ok {
		return nil
	}
	entries, complete, err := root.Entries(dir, maxEntries)
	if err != nil {
		r.problem("%s cannot be read", dir)
	}
	if !complete {
		r.problem("%s has more than %d entries; the others are not looked at", dir, maxEntries)
	}
	return entries
}

// offerable reports whether a file is a plain one with a canonical name that can be opened, and notes it if not.
func (r *Repository) offerable(root *files.Dir, name string, e fs.DirEntry) bool {
	switch {
	case e.Type()&fs.ModeSymlink != 0:
		r.problem("%s is a symbolic link, which is not followed", shown(name))
	case !e.Type().IsRegular():
		r.problem("%s is no plain file", shown(name))
	case !canonical(name):
		r.problem("%s has a name that is not plain, and is left out", shown(name))
	default:
		f, _, err := root.Open(name)
		if err != nil {
			r.problem("%s cannot be read", name)
			return false
		}
		return f.Close() == nil
	}
	return false
}

// bounded returns the files that are offered of one kind.
func (r *Repository) bounded(files []string, kind string) []string {
	if len(files) > maxFiles {
		r.problem("there are more than %d %s; the others are left out", maxFiles, kind)
		return files[:maxFiles]
	}
	return files
}

func (r *Repository) problem(format string, args ...any) {
	r.Problems = say(r.Problems, format, args...)
}

// readMCP reads the repository's .claude-ops/mcp.json, or returns nil if there is none. A symbolic link on the way is a
// problem of the file, not a reason to look elsewhere.
func readMCP(root *files.Dir) *MCPFile {
	ok, problem := plainFolder(root, path.Dir(mcpName))
	if !ok {
		if problem == "" {
			return nil
		}
		return &MCPFile{Problem: problem}
	}
	info, err := root.Lstat(mcpName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		return &MCPFile{Problem: mcpName + " is a symbolic link, which is not followed"}
	case err == nil && !info.Mode().IsRegular():
		return &MCPFile{Problem: mcpName + " is no plain file"}
	}
	text, err := firstBytes(root, mcpName, maxMCPBytes)
	if err != nil {
		return &MCPFile{Problem: mcpName + " cannot be read"}
	}
	return &MCPFile{Text: text}
}
