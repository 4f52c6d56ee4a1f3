package definitions

import (
	"cmp"
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Masterminds/semver/v3"
	"golang.org/x/sync/errgroup"
)

// options say where definitions are.
type options struct {
	Project string // absolute; the folder with .fractary. "" for none
	Home    string // the user's home; "" for none
	// Registries is asked for what neither project nor home has; nil: nothing is asked.
	Registries *Registries
	// ListTimeout bounds how long a list waits for registries; default 5 s.
	ListTimeout time.Duration
	Now         func() time.Time
}

// listTime returns a context for asking registries for a list.
func (c *Catalog) listTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, cmp.Or(c.opts.ListTimeout, listTimeout))
}

// Catalog finds definitions and knows what it has read. Files are looked at anew by every call, and read only if they
// changed. It is safe for concurrent use.
type Catalog struct {
	opts      options
	validator *Validator
	memory    *memory
}

// memory caches what catalogs that use the same files have read of them.
type memory struct {
	mu   sync.Mutex
	read map[string]Summary // by path
}

// newCatalog makes a catalog. It touches no disk.
func newCatalog(o options) *Catalog {
	return &Catalog{opts: o, validator: newValidator(), memory: &memory{read: map[string]Summary{}}}
}

// withOptions returns a catalog with other options that shares what this one has read.
func (c *Catalog) withOptions(o options) *Catalog {
	return &Catalog{opts: o, validator: c.validator, memory: c.memory}
}

// Summary is a definition in a list.
type Summary struct {
	Kind        Kind
	Format      Format
	Name        string
	Version     string
	Description string
	Tags        []string
	Extends     string
	Source      Source
	Registry    string // that it comes from; "" for a definition of this machine
	Path        string
	Errors      int // problems of the file alone
	Warnings    int

	file     stamp
	misnamed bool // the file says another name than its own
}

// Folder returns the folder of the programs that read a skill, such as .agents, which a Reference to it may have as its
// range; "" for other definitions.
func (s Summary) Folder() string {
	if s.Kind != Skill {
		return ""
	}
	return filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(s.Path)))) // .agents/skills/NAME/SKILL.md
}

// stamp is a file's size and time, and when it was read.
type stamp struct {
	size     int64
	modified time.Time
	readAt   time.Time
}

// holds reports whether a file is as it was when it was read.
func (s stamp) holds(f definitionFile) bool {
	return s.size == f.info.Size() && s.modified.Equal(f.info.ModTime()) && s.readAt.Sub(s.modified) > settled
}

// places returns the folders of definitions on this machine, in the order of resolution.
func (c *Catalog) places() []definitionRoot {
	var out []definitionRoot
	if c.opts.Project != "" {
		out = append(out, definitionRoot{source: Local, root: c.opts.Project, below: ".fractary"},
			definitionRoot{source: Local, root: c.opts.Project, below: claudeFolder},
			definitionRoot{source: Local, root: c.opts.Project, below: agentsFolder})
	}
	if c.opts.Home != "" {
		out = append(out, definitionRoot{source: Global, root: filepath.Join(c.opts.Home, ".fractary", "registry")})
		if c.opts.Home != c.opts.Project {
			out = append(out, definitionRoot{source: Global, root: c.opts.Home, below: claudeFolder},
				definitionRoot{source: Global, root: c.opts.Home, below: agentsFolder})
		}
	}
	return out
}

// List returns the definitions of a kind by name, those of one name in the order of resolution, and from the highest
// version down, and what kept others from being listed. source "" is every one. Files that cannot be read as a
// definition with a name and a version are problems.
func (c *Catalog) List(ctx context.Context, kind Kind, source Source) ([]Summary, Problems, error) {
	var out []Summary
	var problems Problems
	for _, p := range c.places() {
		if source != "" && source != p.source {
			continue
		}
		files, unread, err := p.definitionFiles(kind, "")
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, unread...)
		summaries, unread, err := c.summaries(ctx, files)
		if err != nil {
			return nil, nil, err
		}
		out, problems = append(out, summaries...), append(slices.Concat(problems, twins(summaries)), unread...)
	}
	if c.opts.Registries != nil && kind != Skill && (source == "" || source == Stockyard) {
		asking, cancel := c.listTime(ctx)
		defer cancel()
		listed, unread := c.opts.Registries.components(asking, kind)
		out, problems = append(out, listed...), append(problems, unread...)
	}
	slices.SortStableFunc(out, func(a, b Summary) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), slices.Index(Sources(), a.Source)-slices.Index(Sources(), b.Source),
			-compareVersions(a.Version, b.Version))
	})
	return out, problems.sorted(), nil
}

// twins names files that say the same name and version, beside those whose files are named alike.
func twins(all []Summary) (out Problems) {
	known := map[string]Summary{}
	for _, s := range all {
		key := s.Name + "@" + s.Version
		if other, has := known[key]; has && s.Errors == 0 && other.Errors == 0 && (s.misnamed || other.misnamed) {
			out = append(out, Problem{
				File: s.Path, Severity: SeverityWarning, Message: "says the same name as " + other.Path,
				Suggestion: "give one of the two another name",
			})
		}
		known[key] = s
	}
	return out
}

// summaries reads the files that changed since they were read last, side by side.
func (c *Catalog) summaries(ctx context.Context, files []definitionFile) ([]Summary, Problems, error) {
	out := make([]Summary, len(files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	var problems Problems
	const atOnce = 64
	for start := 0; start < len(files); start += atOnce {
		group.Go(func() error {
			for i := start; i < min(start+atOnce, len(files)); i++ {
				if err := ctx.Err(); err != nil {
					return err
				}
				summary, unread := c.summary(files[i])
				out[i] = summary
				if len(unread) > 0 {
					mu.Lock()
					problems = append(problems, unread...)
					mu.Unlock()
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	out = slices.DeleteFunc(out, func(s Summary) bool { return s.Name == "" || s.Version == "" && s.Format == "" })
	return out, problems, nil
}

// settled is the minimum age of a file, when it is read, to be identified by its size and time: a change within the
// same tick of the clock would not be seen.
const settled = 2 * time.Second

// summary returns the summary of one file, from memory if the file did not change.
func (c *Catalog) summary(f definitionFile) (Summary, Problems) {
	name := f.path()
	c.memory.mu.Lock()
	known, ok := c.memory.read[name]
	c.memory.mu.Unlock()
	if ok && known.file.holds(f) && known.Errors == 0 {
		return known, nil
	}
	readAt := c.opts.Now()
	definition, problems := c.load(f)
	s := Summary{
		Kind: f.kind, Source: f.place.source, Path: name, Errors: len(problems.Errors()), Warnings: len(problems.Warnings()),
		file: stamp{size: f.info.Size(), modified: f.info.ModTime(), readAt: readAt},
	}
	if definition != nil {
		s.Format = definition.Format
		s.Name, s.Version, s.Description, s.Tags, s.Extends = f.called(
			definition), definition.Version, definition.Description, definition.Tags, definition.Extends
	}
	s.misnamed = s.Name != "" && s.Name != f.name
	c.memory.mu.Lock()
	c.memory.read[name] = s
	c.memory.mu.Unlock()
	return s, problems.Errors()
}

// load reads and checks one file. definition is nil if nothing could be read.
func (c *Catalog) load(f definitionFile) (*Definition, Problems) {
	content, err := f.read()
	if err != nil {
		return nil, Problems{unreachable(f.path(), err)}
	}
	definition, problems := c.validator.Validate(f.kind, f.path(), content)
	return definition, append(problems, f.misnamed(definition)...)
}

// called returns the name of a definition: the one that its file says, or that of the file where it says none that can
// be one.
func (f definitionFile) called(d *Definition) string {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_:", r)
	}
	if d.Name == "" || d.Format == "" && strings.ContainsFunc(d.Name, other) {
		return f.name
	}
	return d.Name
}

// misnamed says where a definition's own name or version is another than its folder's.
func (f definitionFile) misnamed(d *Definition) Problems {
	if d == nil {
		return nil
	}
	var out Problems
	differs := func(field, own, folder string) {
		if at := d.tree.get(field); at != nil && own != "" && folder != "" && own != folder {
			out = append(out, Problem{
				File: f.path(), Line: at.line, Column: at.column, Field: field, Severity: SeverityWarning,
				Message: "is " + own + ", but its file or folder says " + folder, Suggestion: "give both the same " + field,
			})
		}
	}
	differs("name", d.Name, f.name)
	differs("version", d.Version, f.version)
	return out
}

// compareVersions orders versions; what is none sorts before all that are.
func compareVersions(a, b string) int {
	left, leftErr := semver.NewVersion(a)
	right, rightErr := semver.NewVersion(b)
	switch {
	case leftErr == nil && rightErr == nil:
		return left.Compare(right)
	case leftErr == nil:
		return 1
	case rightErr == nil:
		return -1
	}
	return strings.Compare(a, b)
}
