// Package definitions reads and checks definitions of agents and tools, and the plugins and registries that they come
// from, in the formats of Fractary Forge: YAML files, and Markdown files with a header of YAML
// (docs/guides/definitions.md).
//
// A file becomes a tree of values that know their line and column (parse), which is held against the schema of its kind
// (check) and read into a Definition. A Catalog finds the files of a project, of the user and of registries, resolves a
// name and a range of versions to one of them, and merges what it extends. Nothing is read through a symbolic link that
// leaves its root.
package definitions

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/settings/sources"
)

// Settings say where a Service finds things.
type Settings struct {
	ConfigFile string // FRACTARY_CONFIG; "" to look in project and home
	CacheDir   string // FRACTARY_CACHE_DIR; "" for the configuration's or the default
	Project    string // absolute; the server's working folder
	Home       string // absolute; the user's; "" for none
	// Sources returns the sources that a project's file may choose from beside the operator's registries; nil for none.
	Sources   func() sources.List
	Frozen    func() bool // nothing is written now, the cache neither; nil: never
	Transport http.RoundTripper
	// Token is the value of a registry's token; "" for none. It is called for each before anything is answered, so that it
	// can see to it that no answer has the value.
	Token func(variable string) string
	Now   func() time.Time
}

// Service answers the tools. It keeps what it has read of definitions; the configuration is read anew for each call. It
// is safe for concurrent use.
type Service struct {
	settings Settings
	catalog  *Catalog // whose memory all calls share
}

// NewService makes a Service. It touches no disk.
func NewService(s Settings) *Service {
	return &Service{settings: s, catalog: newCatalog(options{Project: s.Project, Home: s.Home, Now: s.Now})}
}

// inventory is everything under the configuration as it is now.
type inventory struct {
	config     Config
	cache      *Cache
	registries *Registries
	catalog    *Catalog // of the sources that the configuration resolves names in
	files      *Catalog // of project and home, whatever the configuration says
}

// loadView reads the configuration. CONFIG_ERROR for one that cannot be read.
func (s *Service) loadView() (*inventory, error) {
	var admitted sources.List
	if s.settings.Sources != nil {
		admitted = s.settings.Sources()
	}
	config, err := loadConfig(ConfigOptions{
		File: s.settings.ConfigFile, CacheDir: s.settings.CacheDir, Project: s.settings.Project, Home: s.settings.Home,
		Sources: admitted,
	})
	if err != nil {
		return nil, err
	}
	older := ""
	if s.settings.Home != "" {
		older = filepath.Join(s.settings.Home, ".fractary", "registry", "cache")
	}
	frozen := s.settings.Frozen != nil && s.settings.Frozen()
	v := &inventory{config: config, cache: newCache(config.CacheDir, older, frozen, s.settings.Now)}
	v.registries = newRegistries(config, v.cache, s.settings.Transport, s.settings.Token)
	for _, r := range config.Registries {
		v.registries.fetcher.tokenOf(r) // from now on Token keeps it out of answers
	}
	o := options{Project: s.settings.Project, Home: s.settings.Home, Registries: v.registries, Now: s.settings.Now}
	v.files = s.catalog.withOptions(o)
	if !config.Resolution.Local {
		o.Project = ""
	}
	if !config.Resolution.Global {
		o.Home = ""
	}
	v.catalog = s.catalog.withOptions(o)
	return v, nil
}

// cacheDirs returns the folder of the cache; none if the configuration cannot be read, which the call then says.
func (s *Service) cacheDirs() []string {
	v, err := s.loadView()
	if err != nil || v.config.CacheDir == "" {
		return nil
	}
	return []string{v.config.CacheDir}
}

// notes lists the settings of the configuration that are not used, and what could not be read.
func (v *inventory) notes(problems Problems, failed []error) []string {
	return notesOf(v.config.Ignored, problems, failed)
}

// Code classifies an error, in the words of Forge's published contract.
type Code string

// The codes.
const (
	PluginNotFound   Code = "PLUGIN_NOT_FOUND"
	AgentNotFound    Code = "AGENT_NOT_FOUND"
	ToolNotFound     Code = "TOOL_NOT_FOUND"
	SkillNotFound    Code = "SKILL_NOT_FOUND" // which the contract does not have, as it has no skills
	ValidationError  Code = "VALIDATION_ERROR"
	PermissionDenied Code = "PERMISSION_DENIED"
	NetworkError     Code = "NETWORK_ERROR"
	AuthRequired     Code = "AUTH_REQUIRED"
	AuthFailed       Code = "AUTH_FAILED"
	ConfigError      Code = "CONFIG_ERROR"
	IntegrityError   Code = "INTEGRITY_ERROR"
	DependencyError  Code = "DEPENDENCY_ERROR"
	ConflictError    Code = "CONFLICT_ERROR"
)

// Error is a failure in the words of Forge's contract.
type Error = fault.ContractError[Code]

func newError(code Code, format string, args ...any) *Error {
	return fault.NewContractError(code, format, args...)
}

// notFoundCode returns the code for a definition of a kind that is not there.
func notFoundCode(kind Kind) Code {
	switch kind {
	case Tool:
		return ToolNotFound
	case Skill:
		return SkillNotFound
	}
	return AgentNotFound
}

// Selection says which definitions a person wants to see. The zero value is the first page of all.
type Selection struct {
	Kind   Kind   // "" for every kind
	Source Source // "" for every source
	Text   string // part of a name, a description or a tag, letter case aside
	Broken bool   // only those with problems
	// Compare orders them; nil for agents, tools, then skills.
	Compare func(a, b Summary) int
	Offset  int
	Limit   int // default 100, at most 1000
}

// Listing is a page of definitions.
type Listing struct {
	Entries  []Summary
	Total    int // that were selected
	Problems Problems
}

// Select lists definitions for a person: agents, tools, then skills. Problems are files that could not be read, and
// registries that did not answer.
func (s *Service) Select(ctx context.Context, sel Selection) (Listing, error) {
	return timed(ctx, func(ctx context.Context) (Listing, error) { return s.selected(ctx, sel) })
}

// timed bounds what is done for a page like a call of a tool.
func timed[Out any](ctx context.Context, do func(ctx context.Context) (Out, error)) (Out, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := limited(ctx, func() (Out, error) { return do(ctx) })
	if errors.Is(err, context.DeadlineExceeded) {
		err = faultOf(newError(NetworkError, "there was no answer within %s", callTimeout))
	}
	return out, err
}

func (s *Service) selected(ctx context.Context, sel Selection) (Listing, error) {
	v, err := s.loadView()
	if err != nil {
		return Listing{}, faultOf(err)
	}
	out := Listing{Problems: v.ignored()}
	for _, kind := range ShownKinds() {
		if sel.Kind != "" && sel.Kind != kind {
			continue
		}
		found, problems, err := v.catalog.List(ctx, kind, sel.Source)
		if err != nil {
			return Listing{}, faultOf(err)
		}
		for _, f := range found {
			if sel.selects(f) {
				out.Entries = append(out.Entries, f)
			}
		}
		out.Problems = append(out.Problems, problems...)
	}
	if sel.Compare != nil {
		slices.SortStableFunc(out.Entries, sel.Compare)
	}
	out.Total = len(out.Entries)
	limit := sel.Limit
	if limit <= 0 || limit > maxPage {
		limit = defaultPage
	}
	out.Entries = pageOf(out.Entries, sel.Offset, limit)
	return out, nil
}

// maxPage bounds a page of definitions.
const maxPage = 1000

func (sel Selection) selects(f Summary) bool {
	if sel.Broken && f.Errors+f.Warnings == 0 {
		return false
	}
	text := strings.ToLower(sel.Text)
	return text == "" || strings.Contains(strings.ToLower(f.Name+"\n"+f.Description+"\n"+strings.Join(f.Tags, "\n")), text)
}

// Forked lists the forks of this machine for a person, and which registries did not say whether upstream has changed.
func (s *Service) Forked(ctx context.Context) ([]Fork, Problems, error) {
	var problems Problems
	forks, err := timed(ctx, func(ctx context.Context) ([]Fork, error) {
		v, err := s.loadView()
		if err != nil {
			return nil, faultOf(err)
		}
		forks, err := v.catalog.Forks(ctx, Kinds()...)
		problems = append(v.ignored(), failures(v.registries.troubles())...)
		return forks, faultOf(err)
	})
	if err != nil {
		return nil, nil, err
	}
	return forks, problems, nil
}

// ignored lists the settings of the configuration that are not used.
func (v *inventory) ignored() (out Problems) {
	for _, why := range v.config.Ignored {
		out = append(out, Problem{Message: why, Severity: SeverityWarning})
	}
	return out
}

// Detail is all that a person may want to know of one definition.
type Detail struct {
	*Found
	Problems     Problems // of the file, of what it refers to, and unknown fields
	Chain        []string // from the definition itself to the one that extends nothing
	ChainProblem string   // why what it extends cannot be merged in; "" if it can
	Fork         *Fork    // nil if it is not a fork
	Diff         string   // unified, from upstream to the fork
	DiffProblem  string   // why there is none
}

// Inspect reads one definition for a person. A reference without a range is resolved as everywhere.
func (s *Service) Inspect(ctx context.Context, kind Kind, ref Reference, source Source) (Detail, error) {
	return timed(ctx, func(ctx context.Context) (Detail, error) { return s.inspect(ctx, kind, ref, source) })
}

func (s *Service) inspect(ctx context.Context, kind Kind, ref Reference, source Source) (Detail, error) {
	v, err := s.loadView()
	if err != nil {
		return Detail{}, faultOf(err)
	}
	found, err := v.catalog.resolve(ctx, kind, ref, source)
	if err != nil {
		return Detail{}, faultOf(err)
	}
	out := Detail{Found: found, Problems: v.catalog.judged(ctx, found, true).Problems}
	merged, err := v.catalog.Merge(ctx, found)
	var broken *inheritanceError
	switch {
	case errors.As(err, &broken):
		out.Chain, out.ChainProblem = broken.Chain, broken.Why
	case err != nil:
		return Detail{}, faultOf(err)
	default:
		out.Chain = merged.Chain
	}
	origin, forked := originOf(found)
	if !forked {
		return out, nil
	}
	fork := v.catalog.forkOf(ctx, found, origin)
	out.Fork = &fork
	differences, err := v.catalog.Diff(ctx, fork)
	if err == nil {
		out.Diff, err = unified(fork, differences)
	}
	if err != nil {
		out.DiffProblem = messageOf(err)
	}
	return out, nil
}
