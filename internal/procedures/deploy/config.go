package deploy

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// configName is the configuration's file in its repository.
const configName = "agentpack.yaml"

// Bounds of a configuration.
const (
	maxConfigBytes = 4 << 20
	maxModules     = 10_000
)

// ModuleType is the kind of a module's contents.
type ModuleType string

// The types.
const (
	Instructions ModuleType = "instructions"
	Skill        ModuleType = "skill"
	Prompt       ModuleType = "prompt"
	Command      ModuleType = "command"
)

// The targets.
const (
	Codex      fileset.TargetName = "codex"
	ClaudeCode fileset.TargetName = "claude_code"
	Cursor     fileset.TargetName = "cursor"
	VSCode     fileset.TargetName = "vscode"
)

// TargetNames lists them, sorted.
func TargetNames() []fileset.TargetName {
	return []fileset.TargetName{ClaudeCode, Codex, Cursor, VSCode}
}

// Config is an agentpack.yaml. Keys that it does not know are ignored.
type Config struct {
	Version  int                               `yaml:"version"`
	Profiles map[string]Profile                `yaml:"profiles"`
	Targets  map[fileset.TargetName]TargetConf `yaml:"targets"`
	Modules  []Module                          `yaml:"modules"`
}

// Profile selects modules.
type Profile struct {
	IncludeTags    []string `yaml:"include_tags"`
	IncludeModules []string `yaml:"include_modules"`
	ExcludeModules []string `yaml:"exclude_modules"`
}

// TargetConf configures a target.
type TargetConf struct {
	Mode    string         `yaml:"mode"`  // files
	Scope   string         `yaml:"scope"` // user, project or both
	Options map[string]any `yaml:"options"`
}

// user and project report for which part of the machine the target is written.
func (t TargetConf) user() bool    { return t.Scope == "user" || t.Scope == "both" }
func (t TargetConf) project() bool { return t.Scope == "project" || t.Scope == "both" }

// flag returns an option that is on or off: a boolean, or the words true, yes, 1, false, no, 0.
func (t TargetConf) flag(name string, otherwise bool) (bool, error) {
	switch v := t.Options[name].(type) {
	case nil:
		return otherwise, nil
	case bool:
		return v, nil
	case int:
		if v == 0 || v == 1 {
			return v == 1, nil
		}
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "true", "yes", "1":
			return true, nil
		case "false", "no", "0":
			return false, nil
		}
	}
	return false, invalidConfig("the option %s is neither true nor false", name)
}

// Module is a part of the procedures.
type Module struct {
	ID      string               `yaml:"id"`
	Type    ModuleType           `yaml:"type"`
	Enabled *bool                `yaml:"enabled"` // nil: true
	Tags    []string             `yaml:"tags"`
	Targets []fileset.TargetName `yaml:"targets"` // none: all
	Source  Source               `yaml:"source"`
}

// Source says where a module's files are: exactly one of the two.
type Source struct {
	LocalPath *LocalPath `yaml:"local_path" json:"local_path,omitempty"`
	Git       *GitSource `yaml:"git" json:"git,omitempty"`
}

// LocalPath is a path in the configuration's repository.
type LocalPath struct {
	Path string `yaml:"path" json:"path"`
}

// GitSource is a folder of another repository.
type GitSource struct {
	URL     string `yaml:"url" json:"url"`
	Ref     string `yaml:"ref" json:"ref,omitempty"` // default main
	Subdir  string `yaml:"subdir" json:"subdir"`
	Shallow *bool  `yaml:"shallow" json:"-"` // nil: true
	Commit  string `yaml:"-" json:"commit,omitempty"`
	// named is URL, once the operator has named it: git asks no other address.
	named  trust.Operator[string]
	exact  bool // no server may lead on to another address
	public bool // its host may have no address of this machine or of a private network
}

// operators returns the source of a configuration of the operator's own.
func (g *GitSource) operators() *GitSource {
	out := *g
	out.named = trust.Said(g.URL)
	return &out
}

// LoadConfig reads the configuration of a repository. E_CONFIG_MISSING, E_CONFIG_INVALID or
// E_CONFIG_UNSUPPORTED_VERSION name the file and what is wrong.
func LoadConfig(repo string) (*Config, error) { return loadConfig(repo, false) }

// loadConfig is LoadConfig; the operator's own file may be a link to anywhere.
func loadConfig(repo string, own bool) (*Config, error) {
	name := filepath.Join(repo, configName)
	text, err := readIn(repo, configName, maxConfigBytes, own)
	switch {
	case errors.Is(err, files.ErrTooLarge):
		return nil, invalidConfig("%s has more than %d bytes", name, maxConfigBytes).With("path", name)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fileset.NewError(ConfigMissing, "config_missing", []string{"run_init", "retry_command"},
			"there is no %s; a person makes one with: claudeops deploy init", name).With("path", name)
	case err != nil:
		return nil, invalidConfig("%s cannot be read: %s", name, pathlessError(err)).With("path", name).Because(err)
	}
	c, err := parseConfig(text)
	if e := errorOf(err); e != nil {
		return nil, e.With("path", name)
	}
	return c, err
}

// readIn reads a file of a repository. A link is followed as far as it stays there; of the operator's own, to anywhere.
func readIn(repo, name string, limit int64, own bool) ([]byte, error) {
	if own {
		text, _, err := files.ReadPath(filepath.Join(repo, name), limit)
		return text, err
	}
	root, err := files.OpenDir(repo)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	text, _, err := root.Read(name, limit)
	return text, err
}

func parseConfig(text []byte) (*Config, error) {
	var c Config
	empty, err := strictyaml.Decode(text, &c, strictyaml.Options{Unknown: true})
	switch {
	case err != nil:
		return nil, invalidConfig("agentpack.yaml: %s", err)
	case empty:
		return nil, invalidConfig("agentpack.yaml is empty; it needs version: 1, and a profile named default")
	}
	if c.Version != 1 {
		return nil, fileset.NewError(ConfigUnsupported, "config_unsupported_version", []string{"fix_config", "retry_command"},
			"agentpack.yaml has the version %d; 1 is supported", c.Version).With("version", c.Version).With("supported",
			[]int{1})
	}
	if _, ok := c.Profiles["default"]; !ok {
		return nil, invalidConfig("agentpack.yaml has no profile named default")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Targets)) {
		t := c.Targets[name]
		if err := t.normalize(name); err != nil {
			return nil, err
		}
		c.Targets[name] = t
	}
	if len(c.Modules) > maxModules {
		return nil, invalidConfig("agentpack.yaml has %d modules; at most %d", len(c.Modules), maxModules)
	}
	ids := map[string]bool{}
	for i := range c.Modules {
		if err := c.Modules[i].normalize(ids); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(c.Modules, func(a, b Module) int { return strings.Compare(a.ID, b.ID) })
	return &c, nil
}

func unsupportedTarget(name fileset.TargetName) *Error {
	return fileset.NewError(TargetUnsupported, "target_unsupported", []string{"fix_config", "retry_command"},
		"the target %q is not supported; %v are", name, TargetNames()).
		With("target", name).With("supported", TargetNames())
}

// normalize checks a target and fills in what it leaves out.
func (t *TargetConf) normalize(name fileset.TargetName) error {
	t.Mode, t.Scope = cmp.Or(t.Mode, "files"), cmp.Or(t.Scope, "project")
	switch {
	case !slices.Contains(TargetNames(), name):
		return unsupportedTarget(name)
	case t.Mode != "files":
		return invalidConfig("targets.%s.mode is %q; files is supported", name, t.Mode)
	case t.Scope != "user" && t.Scope != "project" && t.Scope != "both":
		return invalidConfig("targets.%s.scope is %q; user, project and both are supported", name, t.Scope)
	case (name == Cursor || name == VSCode) && t.Scope == "user":
		return invalidConfig("targets.%s.scope is user; this target has files in projects alone", name)
	}
	return nil
}

// normalize checks a module and fills in what it leaves out. ids are those of the modules before it.
func (m *Module) normalize(ids map[string]bool) error {
	switch {
	case strings.TrimSpace(m.ID) == "":
		return invalidConfig("a module has no id")
	case ids[m.ID]:
		return invalidConfig("two modules have the id %s", m.ID)
	case !slices.Contains([]ModuleType{Instructions, Skill, Prompt, Command}, m.Type):
		return invalidConfig("the module %s has the type %q; instructions, skill, prompt and command are known", m.ID, m.Type)
	case (m.Source.LocalPath == nil) == (m.Source.Git == nil):
		return invalidConfig("the module %s must have exactly one source, local_path or git", m.ID)
	}
	ids[m.ID] = true
	for _, t := range m.Targets {
		if !slices.Contains(TargetNames(), t) {
			return unsupportedTarget(t)
		}
	}
	if m.Source.LocalPath != nil {
		return m.Source.LocalPath.check(m.ID)
	}
	return m.Source.Git.normalize(m.ID)
}

func (p *LocalPath) check(id string) error {
	if why := fileset.Leaves(p.Path); why != "" {
		return invalidConfig("the module %s: local_path %q %s", id, p.Path, why)
	}
	return nil
}

// normalize checks the arguments for git: nothing may act as an option, or name another way to run programs.
func (g *GitSource) normalize(id string) error {
	g.Ref = cmp.Or(g.Ref, "main")
	switch scheme, _, hasScheme := strings.Cut(g.URL, "://"); {
	case g.URL == "" || strings.HasPrefix(g.URL, "-") || strings.ContainsAny(g.URL, "\n\x00") ||
		strings.Contains(g.URL, "::"):
		return invalidConfig("the module %s: git.url %q is not a repository address", id, g.URL)
	case hasScheme && !slices.Contains([]string{"https", "http", "ssh", "git", "file"}, scheme):
		return invalidConfig("the module %s: git.url has the scheme %q; https, http, ssh, git and file are supported", id,
			scheme)
	case strings.HasPrefix(g.Ref, "-") || strings.ContainsAny(g.Ref, " ~^:?*[\\\n\x00") || strings.Contains(g.Ref, ".."):
		return invalidConfig("the module %s: git.ref %q is not a branch, a tag or a commit", id, g.Ref)
	case g.Subdir != "" && fileset.Leaves(g.Subdir) != "":
		return invalidConfig("the module %s: git.subdir %q %s", id, g.Subdir, fileset.Leaves(g.Subdir))
	}
	return nil
}

// Select returns the modules of a profile, by id: enabled ones that it does not exclude, and that have one of its tags
// or are named by it.
func (c *Config) Select(profile string) ([]Module, error) {
	p, ok := c.Profiles[profile]
	if !ok {
		return nil, invalidConfig("there is no profile %q; there are %s", profile,
			strings.Join(slices.Sorted(maps.Keys(c.Profiles)), ", ")).With("profile", profile)
	}
	var out []Module
	for _, m := range c.Modules {
		tagged := slices.ContainsFunc(m.Tags, func(t string) bool { return slices.Contains(p.IncludeTags, t) })
		if (m.Enabled == nil || *m.Enabled) && !slices.Contains(p.ExcludeModules, m.ID) &&
			(tagged || slices.Contains(p.IncludeModules, m.ID)) {
			out = append(out, m)
		}
	}
	return out, nil
}

// For returns the configured targets that a call asks for, sorted; all of them for "all" and "".
func (c *Config) For(target string) ([]fileset.TargetName, error) {
	name := fileset.TargetName(target)
	switch {
	case target == "" || target == "all":
		return slices.Sorted(maps.Keys(c.Targets)), nil
	case !slices.Contains(TargetNames(), name):
		return nil, unsupportedTarget(name)
	}
	if _, ok := c.Targets[name]; !ok {
		return nil, invalidConfig("the target %s is not configured in agentpack.yaml", name).With("target", name)
	}
	return []fileset.TargetName{name}, nil
}

// pathlessError returns an error without the name of its file.
func pathlessError(err error) string {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err.Error()
	}
	return err.Error()
}
