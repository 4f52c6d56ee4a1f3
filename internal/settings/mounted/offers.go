package mounted

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Bounds of what is offered: working copies in all, entries of a folder that are looked at, files of one kind that one
// working copy offers.
const (
	maxRepositories = 64
	maxEntries      = 1000
	maxFiles        = 100
)

// Repository lists what one mounted working copy offers to an agent. The files are canonical paths from its root,
// sorted; their contents have not been read. Problems are sentences that hold text of the repository in quotes only.
type Repository struct {
	Folder    string               `json:"folder"` // below Dir: name or owner/name, canonical
	Manifest  gitprovider.Manifest `json:"-"`      // zero if there is none, or a broken one
	Describes bool                 `json:"manifest"`
	Checks    []string             `json:"checks"`
	Playbooks []string             `json:"playbooks"`
	Skills    []string             `json:"skills"`
	Problems  []string             `json:"problems"`
	MCP       *MCPFile             `json:"-"` // nil if it has none
}

// MCPFile is a repository's .claude-ops/mcp.json. Problem says why it was not read, "" if it was.
type MCPFile struct {
	Text    []byte
	Problem string
}

// Offers are all mounted working copies, in the order of their folders' names. Problems are those of no one working
// copy.
type Offers struct {
	Dir          string       `json:"dir"`
	Repositories []Repository `json:"repositories"`
	Problems     []string     `json:"problems"`
}

// Contributions returns the repositories' additions to the agent's MCP servers.
func (o Offers) Contributions() (out []mcpconfig.Contribution) {
	for _, r := range o.Repositories {
		if r.MCP != nil {
			out = append(out, mcpconfig.Contribution{From: r.Folder, Text: r.MCP.Text, Problem: r.MCP.Problem})
		}
	}
	return out
}

// mcpName is the path of a repository's contribution to the agent's MCP servers, maxMCPBytes how much of it is read:
// one byte more than the 64 KiB that are admitted, so that a larger one is seen to be larger.
const (
	mcpName     = ".claude-ops/mcp.json"
	maxMCPBytes = 64<<10 + 1
)

// Offers looks at every working copy below Dir. A folder counts as one if it has a manifest, .claude-ops, .git, checks
// or playbooks; folders within a working copy are not looked at. A missing Dir offers nothing. Symbolic links are not
// followed: each one where something is looked for is named as a problem.
func (r Repos) Offers() Offers {
	out := Offers{Dir: r.Dir, Repositories: []Repository{}, Problems: []string{}}
	if r.Dir == "" {
		return out
	}
	root, err := files.OpenDir(r.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return out
	}
	if err != nil {
		out.Problems = append(out.Problems, "the folder cannot be read")
		return out
	}
	defer root.Close()
	s := search{root: root, out: &out}
	for _, outer := range s.level(".") {
		if s.take(outer) {
			continue
		}
		for _, inner := range s.level(outer) {
			s.take(path.Join(outer, inner))
		}
	}
	if s.left > 0 {
		s.problem("there are %d working copies more than the %d that are looked at", s.left, maxRepositories)
	}
	slices.SortFunc(out.Repositories, func(a, b Repository) int { return strings.Compare(a.Folder, b.Folder) })
	return out
}

// search is one walk through the working copies.
type search struct {
	root *files.Dir
	out  *Offers
	seen int // folders that were looked into
	left int // working copies beyond the bound
}

func (s *search) problem(format string, args ...any) {
	s.out.Problems = say(s.out.Problems, format, args...)
}

// maxProblems bounds what is said about one working copy, and about the folder of all.
const maxProblems = 20

func say(problems []string, format string, args ...any) []string {
	switch {
	case len(problems) < maxProblems:
		return append(problems, fmt.Sprintf(format, args...))
	case len(problems) == maxProblems:
		return append(problems, "and more of the kind")
	}
	return problems
}

// level lists the folders in dir whose names are canonical, without hidden ones.
func (s *search) level(dir string) []string {
	entries, complete, err := s.root.Entries(dir, maxEntries)
	if err != nil {
		s.problem("the folder %q cannot be read", dir)
		return nil
	}
	if !complete {
		s.problem("the folder %q has more than %d entries; the others are not looked at", dir, maxEntries)
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		switch {
		case strings.HasPrefix(name, "."):
		case e.Type()&fs.ModeSymlink != 0:
			s.problem("%s is a symbolic link, which is not followed", shown(path.Join(dir, name)))
		case !e.IsDir():
		case !canonical(name):
			s.problem("the folder %s has a name that is not plain, and is left out", shown(path.Join(dir, name)))
		default:
			out = append(out, name)
		}
	}
	return out
}

// take adds the working copy in a folder and reports whether there is one.
func (s *search) take(folder string) bool {
	if s.seen++; s.seen > maxFolders {
		if s.seen == maxFolders+1 {
			s.problem("there are more than %d folders; the others are not looked at", maxFolders)
		}
		return true
	}
	if !s.isWorkingCopy(folder) {
		return false
	}
	if len(s.out.Repositories) == maxRepositories {
		s.left++
		return true
	}
	s.out.Repositories = append(s.out.Repositories, look(s.root, folder))
	return true
}

// isWorkingCopy tells a working copy from an owner's folder. An owner may have a repository that is named checks.
func (s *search) isWorkingCopy(folder string) bool {
	if marked(s.root, folder) {
		return true
	}
	return slices.ContainsFunc([]string{"checks", "playbooks"}, func(name string) bool {
		inner := path.Join(folder, name)
		_, err := s.root.Lstat(inner)
		return err == nil && !marked(s.root, inner)
	})
}

// marked reports whether a folder is a working copy by what only one has.
func marked(root *files.Dir, folder string) bool {
	return slices.ContainsFunc([]string{gitprovider.ManifestFile, ".claude-ops", ".git"}, func(name string) bool {
		_, err := root.Lstat(path.Join(folder, name))
		return err == nil
	})
}

// look collects what one working copy offers.
func look(root *files.Dir, folder string) Repository {
	r := Repository{Folder: folder, Checks: []string{}, Playbooks: []string{}, Skills: []string{}, Problems: []string{}}
	m, found, err := read(root, folder)
	if err != nil {
		r.Problems = append(r.Problems, err.Error())
	}
	r.Manifest, r.Describes = m, found
	copyRoot, err := root.Folder(folder)
	if err != nil {
		r.Problems = append(r.Problems, "the folder cannot be read")
		return r
	}
	defer copyRoot.Close()
	r.Checks = r.files(copyRoot, "checks", ".claude-ops/checks")
	r.Playbooks = r.files(copyRoot, "playbooks", ".claude-ops/playbooks")
	r.Skills = r.skills(copyRoot)
	r.MCP = readMCP(copyRoot)
	return r
}

func canonical(name string) bool {
	_, err := gitprovider.ParsePath(name)
	return err == nil
}

// shown makes a name of a repository fit for a terminal and a page.
func shown(name string) string {
	const limit = 120
	if len(name) > limit {
		return fmt.Sprintf("%+q...", name[:limit])
	}
	return fmt.Sprintf("%+q", name)
}

// plainFolder reports whether dir is a folder and no component of it is a symbolic link. A problem is "" when it is
// merely absent.
func plainFolder(root *files.Dir, dir string) (ok bool, problem string) {
	at := ""
	for _, segment := range strings.Split(dir, "/") {
		at = path.Join(at, segment)
		info, err := root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false, ""
		case err != nil:
			return false, at + " cannot be read"
		case info.Mode()&fs.ModeSymlink != 0:
			return false, at + " is a symbolic link, which is not followed"
		case !info.IsDir():
			return false, at + " is not a folder"
		}
	}
	return true, ""
}
