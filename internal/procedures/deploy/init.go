package deploy

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"

	"go.yaml.in/yaml/v3"
)

// InitData says what a first configuration was made of.
type InitData struct {
	Path    string   `json:"path"` // of agentpack.yaml
	Modules []string `json:"modules"`
	LeftOut []string `json:"left_out"` // files that no module can be made of, and why
}

// initConfig is a configuration as it is written.
type initConfig struct {
	Version  int                               `yaml:"version"`
	Profiles map[string]initProfile            `yaml:"profiles"`
	Targets  map[fileset.TargetName]initTarget `yaml:"targets"`
	Modules  []initModule                      `yaml:"modules"`
}

type initProfile struct {
	IncludeTags []string `yaml:"include_tags"`
}

type initTarget struct {
	Mode    string         `yaml:"mode"`
	Scope   string         `yaml:"scope"`
	Options map[string]any `yaml:"options,omitempty"`
}

type initModule struct {
	ID      string               `yaml:"id"`
	Type    ModuleType           `yaml:"type"`
	Tags    []string             `yaml:"tags"`
	Targets []fileset.TargetName `yaml:"targets"`
	Source  struct {
		LocalPath LocalPath `yaml:"local_path"`
	} `yaml:"source"`
}

// initPlace is a place where files of a type may exist already.
type initPlace struct {
	target fileset.TargetName
	of     ModuleType
	path   string // of one file, or of a folder with one module in each entry
}

// sharedSkills is the folder of a project whose skills several programs read.
const sharedSkills = ".agents/skills"

func initPlaces(user bool) []initPlace {
	if user {
		return []initPlace{
			{Codex, Instructions, ".codex/AGENTS.md"}, {Codex, Prompt, ".codex/prompts"}, {Codex, Skill, ".codex/skills"},
			{ClaudeCode, Command, ".claude/commands"}, {ClaudeCode, Skill, ".claude/skills"},
		}
	}
	return []initPlace{
		{Codex, Instructions, "AGENTS.md"}, {Codex, Skill, ".codex/skills"}, {Codex, Skill, sharedSkills},
		{ClaudeCode, Command, ".claude/commands"}, {ClaudeCode, Skill, ".claude/skills"},
		{VSCode, Instructions, ".github/copilot-instructions.md"}, {VSCode, Prompt, ".github/prompts"},
	}
}

// initializer collects modules.
type initializer struct {
	config  initConfig
	files   map[string]fileset.TreeFile // of the modules, by their path in the repository
	leftOut []string
}

// Init makes the first configuration, from the files that agents read in the project, or with user in the user's
// folders: each becomes a module for the target that it was found at, so that a plan changes nothing. It writes below
// AGENTPACK_HOME/repo alone. E_CONFIG_INVALID if there is a configuration already.
func (s *Service) Init(user bool) (InitData, error) {
	if err := s.checkHome(); err != nil {
		return InitData{}, err
	}
	if why := s.engine.Closed(); why != "" {
		return InitData{}, fileset.NewError(notAllowed, "read_only", []string{"ask_operator"}, "nothing is written: %s", why)
	}
	repo := s.setup.repo("")
	name := filepath.Join(repo, configName)
	if fileset.Exists(name) {
		return InitData{}, invalidConfig("there is a configuration already: %s", name).With("path", name)
	}
	from, scope := s.setup.Places.Project, "project"
	if user {
		from, scope = s.setup.Places.Home, "user"
	}
	root, err := files.OpenDir(from)
	if err != nil {
		return InitData{}, ioError(from, err)
	}
	defer func() { _ = root.Close() }()
	i := initializer{files: map[string]fileset.TreeFile{}, config: initConfig{
		Version: 1, Profiles: map[string]initProfile{"default": {IncludeTags: []string{"base"}}},
		Targets: map[fileset.TargetName]initTarget{}, Modules: []initModule{},
	}}
	for _, p := range initPlaces(user) {
		if err := i.importModules(root, p, scope); err != nil {
			return InitData{}, invalidConfig("%s cannot be read: %s", p.path, err)
		}
	}
	if err := i.writeModules(repo, name); err != nil {
		return InitData{}, err
	}
	out := InitData{Path: name, Modules: []string{}, LeftOut: append([]string{}, i.leftOut...)}
	for _, m := range i.config.Modules {
		out.Modules = append(out.Modules, m.ID)
	}
	return out, nil
}

// importModules makes modules of what is at a place.
func (i *initializer) importModules(root *files.Dir, p initPlace, scope string) error {
	tree, ok, err := fileset.ReadTree(root, p.path, nil)
	if err != nil || !ok {
		return err
	}
	others := slices.ContainsFunc(i.config.Modules, func(m initModule) bool { return m.Type == Skill })
	if p.path == sharedSkills && others {
		i.leftOut = append(i.leftOut, p.path+": .codex/skills has skills, too, and a deployment would put all into both")
		return nil
	}
	modules := map[string]fileset.Tree{}
	for _, rel := range tree.Paths() {
		name, inner, nested := strings.Cut(rel, "/")
		if p.of == Instructions {
			name, inner = string(p.target), "AGENTS.md"
		} else if p.of != Skill {
			inner = name
		}
		if fileset.IsManifest(path.Base(rel)) || nested != (p.of == Skill) {
			if !fileset.IsManifest(path.Base(rel)) {
				i.leftOut = append(i.leftOut, path.Join(p.path, rel)+": lies in no place of a "+string(p.of))
			}
			continue
		}
		if modules[name] == nil {
			modules[name] = fileset.Tree{}
		}
		modules[name][inner] = tree[rel]
	}
	options := map[string]any{}
	switch {
	case p.target == ClaudeCode:
		options = map[string]any{"write_user_skills": scope == "user", "write_repo_skills": scope == "project"}
	case p.path == sharedSkills:
		options = map[string]any{"write_shared_skills": true, "write_repo_skills": false}
	}
	for _, name := range sortedNames(modules) {
		i.addModule(p, strings.TrimSuffix(strings.TrimSuffix(name, ".md"), ".prompt"), modules[name],
			initTarget{"files", scope, options})
	}
	return nil
}

func sortedNames(modules map[string]fileset.Tree) (names []string) {
	for name := range modules {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (i *initializer) addModule(p initPlace, name string, tree fileset.Tree, target initTarget) {
	m := initModule{ID: string(p.of) + ":" + name, Type: p.of, Tags: []string{"base"},
		Targets: []fileset.TargetName{p.target}}
	same := slices.IndexFunc(i.config.Modules, func(other initModule) bool { return other.ID == m.ID })
	switch err := checkModule(Module{ID: m.ID, Type: m.Type}, tree); {
	case err != nil:
		i.leftOut = append(i.leftOut, path.Join(p.path, name)+": "+errorOf(err).Message) // checkModule makes no others
		return
	case p.of == Skill && skillName(m.ID) != name:
		i.leftOut = append(i.leftOut, path.Join(p.path, name)+": a skill cannot have this name")
		return
	case same >= 0 && i.sameFiles(i.config.Modules[same].Source.LocalPath.Path, tree):
		i.config.Modules[same].Targets = append(i.config.Modules[same].Targets, p.target)
		i.config.Targets[p.target] = target
		return
	case same >= 0:
		i.leftOut = append(i.leftOut, path.Join(p.path, name)+": another target has a "+string(p.of)+
			" of this name with other files")
		return
	}
	m.Source.LocalPath.Path = path.Join("modules", string(p.of), name)
	for rel, f := range tree {
		i.files[path.Join(m.Source.LocalPath.Path, rel)] = f
	}
	i.config.Targets[p.target] = target
	i.config.Modules = append(i.config.Modules, m)
}

func (i *initializer) sameFiles(folder string, tree fileset.Tree) bool {
	for rel, f := range tree {
		if known, ok := i.files[path.Join(folder, rel)]; !ok || known.Content.SHA256() != f.Content.SHA256() {
			return false
		}
	}
	return true
}

// writeModules writes the modules, and the configuration last.
func (i *initializer) writeModules(repo, name string) error {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(i.config); err != nil {
		return fileset.NewError(Unexpected, "", nil, "the configuration cannot be written").Because(err)
	}
	for rel, f := range i.files {
		content, err := f.Content.Bytes()
		if err != nil {
			return err
		}
		if err := fileset.WriteBelow(repo, filepath.Join(repo, filepath.FromSlash(rel)), content, f.Executable,
			"init"); err != nil {
			return err
		}
	}
	return fileset.WriteBelow(repo, name,
		append([]byte(fmt.Sprintf("# Made from %s by claudeops deploy init.\n", fault.CountFiles(len(i.files)))), text.Bytes()...), false,
		"init")
}
