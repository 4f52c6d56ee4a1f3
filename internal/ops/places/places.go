// Package places finds the folders of a repository that hold procedures, and writes the policy that opens them. Names
// of files are data of others: a place has a canonical path of bounded length, and what is found opens nothing until a
// person chooses it.
package places

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

const (
	// maxPlaces bounds the places that are shown: known kinds first, then those with the most files.
	maxPlaces = 20
	// maxFolder bounds the path of a place, in bytes, and maxDepth its folders.
	maxFolder = 120
	maxDepth  = 4
	// minOther is how many Markdown files make a folder of no known kind worth showing.
	minOther = 3
)

// Place is a folder with procedures.
type Place struct {
	Folder   string   `json:"folder"`
	Files    int      `json:"files"`              // that Patterns match
	Noun     string   `json:"noun"`               // of one of the files, such as "skill"
	Known    bool     `json:"known"`              // of a kind of places that --scope auto chooses
	Kind     string   `json:"kind,omitempty"`     // of scope.kinds that admits the files; "" for plain Markdown
	Small    bool     `json:"-"`                  // tier 2 may propose them, too
	Patterns []string `json:"patterns,omitempty"` // of scope.allow; none if Kind admits the files
	Example  string   `json:"example"`            // the shortest path among the files
}

// Words says what a place holds: "docs/runbooks: 14 Markdown files".
func (p Place) Words() string {
	return p.Folder + ": " + fault.Count(p.Files, p.Noun, p.Noun+"s")
}

// form is a kind of places whose files have a form of their own.
type form struct{ folder, pattern, noun, kind string }

// forms are the places that programs read by themselves.
func forms() []form {
	return []form{
		{".claude/skills", ".claude/skills/*/SKILL.md", "skill", "claude-skills"},
		{".agents/skills", ".agents/skills/*/SKILL.md", "skill", "agent-skills"},
		{".claude/agents", ".claude/agents/*.md", "agent", "claude-agents"},
		{".claude-ops/skills", ".claude-ops/skills/*/SKILL.md", "skill", ""},
	}
}

// usualNames are names of folders in which people keep procedures.
func usualNames() []string {
	return []string{"checks", "playbooks", "runbooks", "runbook", "playbook", "procedures", "operations", "ops", "sops"}
}

// List lists the plain files of the base branch of a repository, at most gitprovider.MaxListedFiles. complete is false
// if there are more. provider_disabled if the provider cannot list.
func List(ctx context.Context, at gitprovider.Resolution) (files []gitprovider.ListedFile, complete bool, err error) {
	lister, can := at.Provider.(gitprovider.FileLister)
	if !can {
		return nil, false, fault.New(fault.ProviderDisabled, "the provider %s cannot list files", at.Provider.Name())
	}
	snapshot, err := at.Provider.Snapshot(ctx, gitprovider.SnapshotQuery{Repo: at.Repo, Base: at.BaseBranch,
		FilesOnly: true})
	if err != nil {
		return nil, false, err
	}
	return lister.ListFiles(ctx, snapshot, "")
}

// Find returns the places among the files of a repository, the known ones first, then by the number of their files. In
// a repository that is named after procedures, such as acme/runbooks, the folder with most of its Markdown is known.
func Find(repo gitprovider.RepoRef, files []gitprovider.ListedFile) []Place {
	f := finder{found: map[string]*Place{}, deep: map[string]bool{}}
	f.open, _ = gitprovider.NewScope([]string{"**"}, gitprovider.DefaultDeny(), "") // whose patterns are sound
	for _, file := range files {
		f.add(file.Path)
	}
	if isOfProcedures(repo.Name) {
		f.knowLargest()
	}
	var out []Place
	for _, p := range f.found {
		if p.Known || p.Files >= minOther {
			out = append(out, f.finished(*p))
		}
	}
	slices.SortFunc(out, func(a, b Place) int {
		if a.Known != b.Known {
			return cmp.Compare(rank(a), rank(b))
		}
		return cmp.Or(b.Files-a.Files, cmp.Compare(a.Folder, b.Folder))
	})
	return out[:min(len(out), maxPlaces)]
}

func rank(p Place) int {
	if p.Known {
		return 0
	}
	return 1
}

type finder struct {
	found map[string]*Place // by folder
	deep  map[string]bool   // folders with files in folders below
	open  gitprovider.Scope // of all that the default rules do not deny
}

func (f *finder) add(name string) {
	for _, form := range forms() {
		if fits, _ := doublestar.Match(form.pattern, name); fits && isCanonical(name) {
			p := f.place(form.folder, name)
			p.Known, p.Noun, p.Kind, p.Small = true, form.noun, form.kind, form.kind != "claude-agents"
			if form.kind == "" {
				p.Patterns = []string{form.pattern}
			}
			return
		}
	}
	if path.Ext(name) != ".md" || !f.open.Check(name).Allowed {
		return
	}
	folder, known := plainFolder(name)
	if folder == "" {
		return
	}
	p := f.place(folder, name)
	p.Known, p.Noun = known, "Markdown file"
	if path.Dir(name) != folder {
		f.deep[folder] = true
	}
}

func (f *finder) place(folder, name string) *Place {
	p := f.found[folder]
	if p == nil {
		p = &Place{Folder: folder, Example: name}
		f.found[folder] = p
	}
	p.Files++
	if len(name) < len(p.Example) {
		p.Example = name
	}
	return p
}

// isOfProcedures reports whether a part of a repository's name is that of a folder for procedures.
func isOfProcedures(name string) bool {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return slices.ContainsFunc(parts, func(part string) bool { return slices.Contains(usualNames(), part) })
}

// knowLargest makes the place known that has more than half of all Markdown files.
func (f *finder) knowLargest() {
	all := 0
	for _, p := range f.found {
		all += p.Files
	}
	for _, p := range f.found {
		p.Known = p.Known || 2*p.Files > all
	}
}

func (f *finder) finished(p Place) Place {
	if p.Kind == "" && p.Patterns == nil {
		p.Patterns = []string{p.Folder + "/*.md"}
		if f.deep[p.Folder] {
			p.Patterns = []string{p.Folder + "/**/*.md"}
		}
	}
	return p
}

// plainFolder returns the folder that makes a Markdown file part of a place: the outermost one with a usual name, which
// makes the place known, else the one at the root. It is "" for a file at the root, and where names are too long.
func plainFolder(name string) (folder string, known bool) {
	parts := strings.Split(path.Dir(name), "/")
	for i, part := range parts[:min(len(parts), maxDepth)] {
		if folder := strings.Join(parts[:i+1], "/"); slices.Contains(usualNames(), part) && len(folder) <= maxFolder {
			return folder, true
		}
	}
	if len(parts[0]) > maxFolder || parts[0] == "." || parts[0] == ".claude-ops" {
		return "", false
	}
	return parts[0], false
}

// isCanonical reports whether a path may be proposed by its form.
func isCanonical(name string) bool {
	_, err := gitprovider.ParsePath(name)
	return err == nil
}

// Choose returns the places that a person named: "auto" for all known ones, or folders with commas between. The error
// names a folder that is not among the places.
func Choose(found []Place, named string) ([]Place, error) {
	if named == "auto" {
		return slices.DeleteFunc(slices.Clone(found), func(p Place) bool { return !p.Known }), nil
	}
	var out []Place
	for name := range strings.SplitSeq(named, ",") {
		name = strings.Trim(strings.TrimSpace(name), "/")
		at := slices.IndexFunc(found, func(p Place) bool { return p.Folder == name })
		if at < 0 {
			return nil, fmt.Errorf("%.120q is not a folder with procedures there; there are %s", name, folders(found))
		}
		out = append(out, found[at])
	}
	return out, nil
}

func folders(found []Place) string {
	var out []string
	for _, p := range found {
		out = append(out, p.Folder)
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// Policy returns a policy file that opens the places to agents of a tier.
func Policy(chosen []Place, tier gitprovider.Tier) string {
	var allow, kinds, small []string
	for _, p := range chosen {
		for _, pattern := range p.Patterns {
			allow = append(allow, `"`+pattern+`"`)
		}
		if p.Kind != "" {
			kinds = append(kinds, p.Kind)
		}
		if p.Kind != "" && p.Small {
			small = append(small, p.Kind)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# What agents may propose changes of. docs/guides/policy.md has all keys.\nversion: 1\nscope:\n"+
		"  allow: [%s]\n", strings.Join(allow, ", "))
	if len(kinds) > 0 {
		fmt.Fprintf(&b, "  kinds: [%s]\n", strings.Join(kinds, ", "))
	}
	if len(small) > 0 && tier == gitprovider.TierInvestigate {
		fmt.Fprintf(&b, "tiers:\n  2: {kinds: [%s]}   # without this line they are for tier 3 alone\n", strings.Join(small, ", "))
	}
	return b.String()
}

// Describe says what a repository holds, a line for each place.
func Describe(found []Place, complete bool) string {
	var b strings.Builder
	for _, p := range found {
		b.WriteString("  " + p.Words() + "\n")
	}
	for _, usual := range []string{"checks", "playbooks"} {
		if !slices.ContainsFunc(found, func(p Place) bool { return path.Base(p.Folder) == usual }) {
			b.WriteString("  " + usual + ": none\n")
		}
	}
	if !complete {
		b.WriteString("  There are more files than the provider tells of.\n")
	}
	return b.String()
}
