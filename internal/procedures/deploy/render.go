package deploy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/fileset"
)

// Places are the folders of users and projects.
type Places struct {
	Home      string // of the user
	CodexHome string // CODEX_HOME; "" for ~/.codex
	Project   string
	Trusted   bool // the configuration is the user's own, and may name a folder of Codex anywhere
}

// rendered is a module with its files.
type rendered struct {
	Module
	tree   fileset.Tree
	commit string  // of a module of another repository
	layers []layer // what its files are made of, from the lowest; the last one's tree is tree
}

// render says which files a target should have. modules are those that are meant for it, by id.
// What is wrong with a module's files is left in bad, so that all of it is named at once.
func render(d *fileset.Desired, name fileset.TargetName, conf TargetConf, modules []rendered, p Places, t *trace,
	bad *broken) error {
	r := renderer{desired: d, target: name, conf: conf, modules: modules, trace: t, bad: bad}
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
	desired *fileset.Desired
	target  fileset.TargetName
	conf    TargetConf
	modules []rendered
	trace   *trace
	bad     *broken
}

func (r *renderer) modulesOfType(t ModuleType) []rendered {
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

// root returns a folder of the target, in the folder that holds it.
func (r *renderer) root(base, dir string, scan bool) string {
	r.desired.AddRoot(r.target, dir, base, scan)
	return dir
}

// whole puts a module's file in place as it is.
func (r *renderer) whole(root, rel string, m rendered, file string) error {
	r.trace.recordOrigin(r.target, root, rel, madeOf{parts: []filePart{{module: m, file: file}}})
	return r.bad.collectInvalid(r.desired.Add(r.target, root, rel, m.tree[file], m.ID))
}

// joined puts a text in place that is made of the texts of modules.
func (r *renderer) joined(root, rel string, of madeOf) error {
	text, err := of.content()
	if err != nil {
		return err
	}
	var ids []string
	for _, p := range of.parts {
		ids = append(ids, p.module.ID)
	}
	r.trace.recordOrigin(r.target, root, rel, of)
	return r.bad.collectInvalid(r.desired.Add(r.target, root, rel, fileset.TreeFile{Content: fileset.Bytes([]byte(text))},
		ids...))
}

// instructions writes one file of all modules of instructions: a single one unchanged, several in marks that name them.
func (r *renderer) instructions(root, rel string) error {
	modules := r.modulesOfType(Instructions)
	if len(modules) == 0 {
		return nil
	}
	if len(modules) == 1 {
		return r.joined(root, rel, madeOf{parts: []filePart{{module: modules[0], file: instructionsName}}})
	}
	var of madeOf
	for _, m := range modules {
		before := fmt.Sprintf("<!-- agentpack:module=%s -->\n", m.ID)
		if len(of.parts) > 0 {
			before = partEnd + "\n\n---\n\n" + before
		}
		of.parts = append(of.parts, filePart{module: m, file: instructionsName, before: before, line: true})
	}
	of.after = partEnd
	return r.joined(root, rel, of)
}

const (
	instructionsName = "AGENTS.md"
	partEnd          = "<!-- /agentpack -->"
)

func withNewline(text string) string {
	if strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// single writes modules of one file each, under names that rename gives them.
func (r *renderer) single(root string, t ModuleType, rename func(string) string) error {
	for _, m := range r.modulesOfType(t) {
		for _, rel := range m.tree.Paths() {
			if err := r.whole(root, rename(rel), m, rel); err != nil {
				return err
			}
		}
	}
	return nil
}

func asIs(name string) string { return name }

func (r *renderer) skills(root string) error {
	for _, m := range r.modulesOfType(Skill) {
		name := skillName(m.ID)
		for _, rel := range m.tree.Paths() {
			if err := r.whole(root, name+"/"+rel, m, rel); err != nil {
				return err
			}
		}
	}
	return nil
}

// codexHome returns Codex's folder of the user, and the folder that holds it. E_CONFIG_INVALID if the configuration of
// a repository that is not the user's own would have it elsewhere than with the user or the project.
func (r *renderer) codexHome(p Places) (home, base string, err error) {
	home, _ = r.conf.Options["codex_home"].(string)
	if rest, ok := strings.CutPrefix(home, "~/"); ok {
		home = filepath.Join(p.Home, rest)
	}
	asked := home
	home = cmp.Or(home, p.CodexHome, filepath.Join(p.Home, ".codex"))
	if !filepath.IsAbs(home) {
		home = filepath.Join(p.Project, home)
	}
	home = filepath.Clean(home)
	for _, base := range []string{p.Project, p.Home, p.CodexHome} {
		if fileset.Below(base, home) {
			return home, base, nil
		}
	}
	if asked != "" && !p.Trusted {
		return "", "",
			invalidConfig(
				"targets.codex.options.codex_home is %s, which lies neither in the project nor with the user; only the user's "+
					"own configuration may say so", asked)
	}
	return home, home, nil
}

func (r *renderer) codex(p Places) error {
	if r.conf.user() {
		home, base, err := r.codexHome(p)
		if err != nil {
			return err
		}
		for _, part := range []struct {
			option string
			do     func() error
		}{
			{"write_agents_global", func() error { return r.instructions(r.root(base, home, false), "AGENTS.md") }},
			{"write_user_prompts", func() error {
				return r.single(r.root(base, filepath.Join(home, "prompts"), true), Prompt,
					asIs)
			}},
			{"write_user_skills", func() error { return r.skills(r.root(base, filepath.Join(home, "skills"), true)) }},
		} {
			if err := r.when(part.option, true, part.do); err != nil {
				return err
			}
		}
	}
	if !r.conf.project() {
		return nil
	}
	err := r.when("write_agents_repo_root", true,
		func() error { return r.instructions(r.root(p.Project, p.Project, false), "AGENTS.md") })
	if err != nil {
		return err
	}
	err = r.when("write_repo_skills", true, func() error {
		return r.skills(r.root(p.Project, filepath.Join(p.Project, ".codex", "skills"), true))
	})
	if err != nil {
		return err
	}
	// where Codex, Gemini CLI and others look, too; the original has no such option
	return r.when("write_shared_skills", false, func() error {
		return r.skills(r.root(p.Project, filepath.Join(p.Project, filepath.FromSlash(sharedSkills)), true))
	})
}

func (r *renderer) claude(p Places) error {
	for _, part := range []struct {
		on       bool
		base     string
		commands string
		skills   string
	}{
		{r.conf.user(), p.Home, "write_user_commands", "write_user_skills"},
		{r.conf.project(), p.Project, "write_repo_commands", "write_repo_skills"},
	} {
		if !part.on {
			continue
		}
		dir := filepath.Join(part.base, ".claude")
		err := r.when(part.commands, true, func() error {
			return r.single(r.root(part.base, filepath.Join(dir, "commands"), true), Command, asIs)
		})
		if err != nil {
			return err
		}
		if err := r.when(part.skills, false,
			func() error { return r.skills(r.root(part.base, filepath.Join(dir, "skills"), true)) }); err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) cursor(p Places) error {
	return r.when("write_rules", true, func() error {
		root := r.root(p.Project, filepath.Join(p.Project, ".cursor", "rules"), true)
		for _, m := range r.modulesOfType(Instructions) {
			description, err := json.Marshal("agentpack: " + m.ID)
			if err != nil {
				return err
			}
			header := fmt.Sprintf("---\ndescription: %s\nglobs: []\nalwaysApply: true\n---\n\n", description)
			err = r.joined(root, fsKey(m.ID)+".mdc",
				madeOf{parts: []filePart{{module: m, file: instructionsName, before: header, line: true}}})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *renderer) vscode(p Places) error {
	github := filepath.Join(p.Project, ".github")
	err := r.when("write_instructions", true,
		func() error { return r.instructions(r.root(p.Project, github, false), "copilot-instructions.md") })
	if err != nil {
		return err
	}
	return r.when("write_prompts", true, func() error {
		return r.single(r.root(p.Project, filepath.Join(github, "prompts"), true), Prompt, func(name string) string {
			return strings.TrimSuffix(strings.TrimSuffix(name, ".md"), ".prompt") + ".prompt.md"
		})
	})
}

// fsKey names a module's folder and file: each character other than a letter, a digit, - and _ as _, the first 64 of
// them, and ten digits of the id's hash, so that no two modules share one.
func fsKey(id string) string {
	key := safe(id)
	if key == "" {
		key = "module"
	}
	if len(key) > 64 {
		key = key[:64]
	}
	return key + "--" + fileset.Hash([]byte(id))[:10]
}

// safe replaces each character other than a letter, a digit, - and _ by _.
func safe(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, text)
}

// skillName returns the folder of a skill: what follows the first colon of its id, in any script, or the id with all
// but letters and digits of ASCII, _ and - replaced.
func skillName(id string) string {
	_, name, _ := strings.Cut(id, ":")
	if isFolderName(name) {
		return name
	}
	if name = safe(id); name != "" {
		return name
	}
	return "module"
}

// isFolderName reports whether a text can be the name of a folder, on every system, that no program takes for an
// option.
func isFolderName(name string) bool {
	if name == "" || !utf8.ValidString(name) || strings.ContainsAny(name[:1], ".- ") ||
		strings.ContainsAny(name[len(name)-1:], ". ") {
		return false
	}
	return !strings.ContainsAny(name, `/\:*?"<>|`) && !strings.ContainsFunc(name, unicode.IsControl) &&
		files.CheckName(name) == nil
}

// machineID returns the name by which overlays call a machine: the first of the candidates that is not empty, in small
// letters, runs of other than letters, digits, _ and - as one hyphen; unknown if there is none.
func machineID(candidates ...string) string {
	for _, c := range candidates {
		id := regexp.MustCompile(`[^a-z0-9_-]+`).ReplaceAllString(strings.ToLower(strings.TrimSpace(c)), "-")
		if id = strings.Trim(id, "-"); id != "" {
			return id
		}
	}
	return "unknown"
}

// projectID returns the name by which overlays call a project: from the address of its remote origin, however it is
// written, or else from its path.
func projectID(origin, dir string) string {
	text := dir
	if origin = strings.TrimSpace(origin); origin != "" {
		text = strings.TrimSuffix(strings.TrimRight(origin, "/"), ".git")
		for _, scheme := range []string{"https://", "http://"} {
			text = strings.TrimPrefix(text, scheme)
		}
		if rest, ok := strings.CutPrefix(text, "git@"); ok {
			text = strings.Replace(rest, ":", "/", 1)
		}
		text = strings.ToLower(text)
	}
	return fileset.Hash([]byte(text))[:16]
}
