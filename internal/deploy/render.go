package deploy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// RootDir is a folder that a target has files in.
type RootDir struct {
	Target     TargetName
	Dir        string // absolute
	ScanExtras bool   // files that nobody has deployed are reported
}

// DesiredFile is a file that should be there.
type DesiredFile struct {
	Content    []byte
	Executable bool
	Modules    []string // ids, sorted
}

// fileKey names a file of a target.
type fileKey struct {
	target TargetName
	path   string // absolute
}

// Desired are the files that should be there, and the folders that they lie in.
type Desired struct {
	Files map[fileKey]DesiredFile
	Roots []RootDir
}

// Places are the folders of users and projects.
type Places struct {
	Home      string // of the user
	CodexHome string // CODEX_HOME; "" for ~/.codex
	Project   string
}

// rendered is a module with its files.
type rendered struct {
	Module
	tree Tree
}

// render says which files a target should have. modules are those that are meant for it, by id.
func render(d *Desired, name TargetName, conf TargetConf, modules []rendered, p Places) error {
	r := renderer{desired: d, target: name, conf: conf, modules: modules}
	switch name {
	case Codex:
		return r.codex(p)
	case ClaudeCode:
		return r.claude(p)
	case Cursor:
		return r.cursor(p)
	case VSCode:
		return r.vscode(p)
	}
	return unsupportedTarget(name)
}

type renderer struct {
	desired *Desired
	target  TargetName
	conf    TargetConf
	modules []rendered
}

func (r *renderer) of(t ModuleType) []rendered {
	return slices.DeleteFunc(slices.Clone(r.modules), func(m rendered) bool { return m.Type != t })
}

// when runs a part of the target if its option is on.
func (r *renderer) when(option string, otherwise bool, part func() error) error {
	on, err := r.conf.flag(option, otherwise)
	if err != nil || !on {
		return err
	}
	return part()
}

func (r *renderer) root(dir string, scan bool) string {
	r.desired.Roots = append(r.desired.Roots, RootDir{r.target, dir, scan})
	return dir
}

// add wants a file. Two modules may want the same bytes; E_DESIRED_STATE_CONFLICT otherwise.
func (r *renderer) add(root, rel string, f TreeFile, ids ...string) error {
	if leaves(rel) != "" {
		return invalidConfig("the module %s would write %q, which %s", ids[0], rel, leaves(rel)).with("module_id", ids[0])
	}
	key := fileKey{r.target, filepath.Join(root, filepath.FromSlash(rel))}
	known, ok := r.desired.Files[key]
	if !ok {
		r.desired.Files[key] = DesiredFile{Content: f.Content, Executable: f.Executable, Modules: ids}
		return nil
	}
	if hashOf(known.Content) != hashOf(f.Content) {
		return newError(DesiredStateConflict, "desired_state_conflict", []string{"resolve_desired_state_conflict", "retry_command"},
			"two modules want different contents of %s: %s and %s", key.path, strings.Join(known.Modules, ", "), strings.Join(ids, ", ")).
			with("target", r.target).with("path", key.path).with("existing", map[string]any{"sha256": hashOf(known.Content), "module_ids": known.Modules}).
			with("new", map[string]any{"sha256": hashOf(f.Content), "module_ids": ids})
	}
	known.Modules = slices.Compact(slices.Sorted(slices.Values(slices.Concat(known.Modules, ids))))
	known.Executable = known.Executable || f.Executable
	r.desired.Files[key] = known
	return nil
}

// instructions is one file of all modules of instructions: a single one as it is, several in marks that name them.
func (r *renderer) instructions(root, rel string) error {
	modules := r.of(Instructions)
	if len(modules) == 0 {
		return nil
	}
	var parts, ids []string
	for _, m := range modules {
		text := string(m.tree["AGENTS.md"].Content)
		ids = append(ids, m.ID)
		if len(modules) > 1 {
			text = fmt.Sprintf("<!-- agentpack:module=%s -->\n%s<!-- /agentpack -->", m.ID, withNewline(text))
		}
		parts = append(parts, text)
	}
	return r.add(root, rel, TreeFile{Content: []byte(strings.Join(parts, "\n\n---\n\n"))}, ids...)
}

func withNewline(text string) string {
	if strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// single are modules of one file each, under names that rename gives them.
func (r *renderer) single(root string, t ModuleType, rename func(string) string) error {
	for _, m := range r.of(t) {
		for _, rel := range m.tree.paths() {
			if err := r.add(root, rename(rel), m.tree[rel], m.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

func asIs(name string) string { return name }

func (r *renderer) skills(root string) error {
	for _, m := range r.of(Skill) {
		for _, rel := range m.tree.paths() {
			if err := r.add(root, skillName(m.ID)+"/"+rel, m.tree[rel], m.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *renderer) codex(p Places) error {
	if r.conf.user() {
		home, _ := r.conf.Options["codex_home"].(string)
		if rest, ok := strings.CutPrefix(home, "~/"); ok {
			home = filepath.Join(p.Home, rest)
		}
		home = cmp.Or(home, p.CodexHome, filepath.Join(p.Home, ".codex"))
		for _, part := range []struct {
			option string
			do     func() error
		}{
			{"write_agents_global", func() error { return r.instructions(r.root(home, false), "AGENTS.md") }},
			{"write_user_prompts", func() error { return r.single(r.root(filepath.Join(home, "prompts"), true), Prompt, asIs) }},
			{"write_user_skills", func() error { return r.skills(r.root(filepath.Join(home, "skills"), true)) }},
		} {
			if err := r.when(part.option, true, part.do); err != nil {
				return err
			}
		}
	}
	if !r.conf.project() {
		return nil
	}
	err := r.when("write_agents_repo_root", true, func() error { return r.instructions(r.root(p.Project, false), "AGENTS.md") })
	if err != nil {
		return err
	}
	return r.when("write_repo_skills", true, func() error { return r.skills(r.root(filepath.Join(p.Project, ".codex", "skills"), true)) })
}

func (r *renderer) claude(p Places) error {
	for _, part := range []struct {
		on       bool
		dir      string
		commands string
		skills   string
	}{
		{r.conf.user(), filepath.Join(p.Home, ".claude"), "write_user_commands", "write_user_skills"},
		{r.conf.project(), filepath.Join(p.Project, ".claude"), "write_repo_commands", "write_repo_skills"},
	} {
		if !part.on {
			continue
		}
		err := r.when(part.commands, true, func() error { return r.single(r.root(filepath.Join(part.dir, "commands"), true), Command, asIs) })
		if err != nil {
			return err
		}
		if err := r.when(part.skills, false, func() error { return r.skills(r.root(filepath.Join(part.dir, "skills"), true)) }); err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) cursor(p Places) error {
	return r.when("write_rules", true, func() error {
		root := r.root(filepath.Join(p.Project, ".cursor", "rules"), true)
		for _, m := range r.of(Instructions) {
			description, err := json.Marshal("agentpack: " + m.ID)
			if err != nil {
				return err
			}
			text := fmt.Sprintf("---\ndescription: %s\nglobs: []\nalwaysApply: true\n---\n\n%s", description, withNewline(string(m.tree["AGENTS.md"].Content)))
			if err := r.add(root, fsKey(m.ID)+".mdc", TreeFile{Content: []byte(text)}, m.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *renderer) vscode(p Places) error {
	github := filepath.Join(p.Project, ".github")
	err := r.when("write_instructions", true, func() error { return r.instructions(r.root(github, false), "copilot-instructions.md") })
	if err != nil {
		return err
	}
	return r.when("write_prompts", true, func() error {
		return r.single(r.root(filepath.Join(github, "prompts"), true), Prompt, func(name string) string {
			return strings.TrimSuffix(strings.TrimSuffix(name, ".md"), ".prompt") + ".prompt.md"
		})
	})
}
