package definitions

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/claudeops/claudeops/internal/system/files"
)

// configFile is a file of the configuration as it is written. The zero value is one that is not there.
type configFile struct {
	name       string // its path
	registries []Registry
	chooses    bool   // it has a list of registries
	cacheDir   string // as it is written
	ttl        int    // seconds; unset without one
	resolution Resolution
	given      map[string]any // secrets removed
}

// unset is a number that a file leaves out.
const unset = -1

func noFile() configFile { return configFile{ttl: unset, resolution: Resolution{true, true, true}} }

// configNames returns the places of the configuration in a project and in a home.
func configNames() []string {
	return []string{filepath.Join(".fractary", "config.json"), filepath.Join(".fractary", "config.yaml")}
}

// read reads the operator's file and the project's, as far as they are there. One that FRACTARY_CONFIG names must be
// there. If it lies outside of the project, it is the only one; inside, it is the project's. Of a project that is the
// user's home, the file is the operator's.
func (o ConfigOptions) read() (operators, projects configFile, err error) {
	projects = noFile()
	if o.File != "" {
		name := o.File
		if !filepath.IsAbs(name) {
			name = filepath.Join(o.Project, name)
		}
		if !o.inProject(name) {
			operators, err = readConfig(name, func() ([]byte, error) { return readOperators(name) })
			return operators, projects, err
		}
		if operators, err = o.readHome(); err == nil {
			projects, err = readConfig(name, func() ([]byte, error) { return readProjects(o.Project, name) })
		}
		return operators, projects, err
	}
	if operators, err = o.readHome(); err != nil || o.Project == "" || sameFile(o.Project, o.Home) {
		return operators, projects, err
	}
	projects, err = firstConfig(o.Project, func(name string) ([]byte, error) { return readProjects(o.Project, name) })
	return operators, projects, err
}

func (o ConfigOptions) readHome() (configFile, error) {
	if o.Home == "" {
		return noFile(), nil
	}
	return firstConfig(o.Home, readOperators)
}

// readOperators reads a file of the operator, whose links are the operator's as well.
func readOperators(name string) ([]byte, error) {
	text, _, err := files.ReadPath(name, maxFileBytes)
	return text, err
}

// readProjects reads a file of the project. A link that leaves the project is not followed.
func readProjects(project, name string) ([]byte, error) {
	root, err := files.OpenDir(project)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	rel, err := filepath.Rel(project, name)
	if err != nil || !filepath.IsLocal(rel) {
		rel, err = filepath.Rel(files.Resolve(project), files.Resolve(name))
	}
	if err != nil {
		return nil, err
	}
	text, _, err := root.Read(rel, maxFileBytes)
	return text, err
}

// firstConfig returns the first configuration in a folder.
func firstConfig(dir string, read func(name string) ([]byte, error)) (configFile, error) {
	for _, rel := range configNames() {
		name := filepath.Join(dir, rel)
		text, err := read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return readConfig(name, func() ([]byte, error) { return text, err })
	}
	return noFile(), nil
}

func configError(name string, err error) *Error {
	e := newError(ConfigError, "the configuration %s %s", name, reason(err)).With("file", name)
	e.Cause = err
	return e.Suggest("correct the file, or point FRACTARY_CONFIG to another")
}

// reason returns an error without the name of its file.
func reason(err error) string {
	var of *fs.PathError
	if errors.As(err, &of) {
		return "cannot be read: " + of.Err.Error()
	}
	return err.Error()
}

func readConfig(name string, read func() ([]byte, error)) (configFile, error) {
	content, err := read()
	if err != nil {
		return noFile(), configError(name, err)
	}
	d := parse(name+".yaml", content) // JSON is YAML
	if d.root == nil || len(d.problems) > 0 {
		first := d.problems[0]
		return noFile(), configError(name, fmt.Errorf("line %d: %s", first.Line, first.Message))
	}
	root := d.root
	if forge := root.get("forge"); forge != nil && forge.kind == kindMapping && root.get("registries") == nil {
		root = forge
	}
	checks := checker{}
	checks.check(root, "", configSchema())
	if len(checks.problems) > 0 {
		first := checks.problems[0]
		return noFile(), configError(name, fmt.Errorf("line %d: %s %s", first.Line, first.Field, first.Message))
	}
	f := configFile{
		name: name, chooses: root.get("registries") != nil, cacheDir: root.get("cache").get("directory").string(),
		ttl: number(root.get("cache").get("ttl"), unset), resolution: readResolution(root.get("resolution")),
		given: map[string]any{},
	}
	if given, ok := hideSecrets(root.plain()).(map[string]any); ok {
		f.given = given
	}
	entries := itemsOf(root.get("registries"))
	if len(entries) > maxRegistries {
		return noFile(), configError(name, fmt.Errorf("has %d registries; at most %d are read", len(entries), maxRegistries))
	}
	for i, entry := range entries {
		registry, err := readRegistry(entry, filepath.Dir(name))
		if err != nil {
			return noFile(), configError(name, fmt.Errorf("registries.%d %w", i, err))
		}
		f.registries = append(f.registries, registry)
	}
	return f, nil
}

func readResolution(v *value) Resolution {
	on := func(key string) bool {
		switched := v.get(key)
		return switched == nil || switched.text == "true"
	}
	return Resolution{on("local"), on("global"), on("stockyard")}
}

func configSchema() *shape {
	return &shape{kinds: []kind{kindMapping}, fields: []field{
		{"registries", false, listOf(mappingOf(
			field{"name", true, nonEmptyText()},
			field{"type", false, oneOf("manifest", "stockyard")},
			field{"url", true, nonEmptyText()},
			field{"enabled", false, flag()},
			field{"priority", false, between(1, 1e9, kindInteger)},
			field{"cache_ttl", false, between(0, 1e9, kindInteger)},
			field{"auth", false, mappingOf(
				field{"type", false, oneOf("bearer", "apikey")},
				field{"token_env", false, nonEmptyText()},
			)},
		))},
		{"cache", false, mappingOf(field{"directory", false, nonEmptyText()},
			field{"ttl", false, between(0, 1e9, kindInteger)})},
		{"resolution", false, mappingOf(field{"local", false, flag()}, field{"global", false, flag()},
			field{"stockyard", false, flag()})},
	}}
}

// readRegistry reads an entry. Priority and TTL are unset where it leaves them out.
func readRegistry(v *value, dir string) (Registry, error) {
	r := Registry{
		Name: v.get("name").string(), Type: v.get("type").string(), URL: v.get("url").string(),
		Priority: number(v.get("priority"), unset), TTL: number(v.get("cache_ttl"), unset),
		TokenEnv: v.get("auth").get("token_env").string(), AuthType: v.get("auth").get("type").string(), dir: dir,
	}
	if r.Type == "" {
		r.Type = "manifest"
	}
	if r.AuthType == "" {
		r.AuthType = "bearer"
	}
	if enabled := v.get("enabled"); enabled != nil && enabled.text == "false" {
		r.Disabled = true
	}
	if _, err := parseLocation(r.URL); err != nil {
		return Registry{}, fmt.Errorf("url %w", err)
	}
	return r, nil
}

func itemsOf(v *value) []*value {
	if v == nil {
		return nil
	}
	return v.items
}

func number(v *value, otherwise int) int {
	if v == nil {
		return otherwise
	}
	n, err := strconv.Atoi(v.text)
	if err != nil {
		return otherwise
	}
	return n
}

// inProject reports whether a path leads into the project, by its name or by links. A project that is the user's home,
// or holds it, does not count as a checkout: its contents belong to the operator.
func (o ConfigOptions) inProject(path string) bool {
	if o.Project == "" || o.Project == string(filepath.Separator) || o.Home != "" && lieBelow(o.Project, o.Home) {
		return false
	}
	return lieBelow(o.Project, path)
}

// lieBelow reports whether a path is a folder or leads below it, whatever links both have.
func lieBelow(folder, path string) bool {
	for _, at := range []string{filepath.Clean(path), files.Resolve(path)} {
		for {
			if at == filepath.Clean(folder) || sameFile(folder, at) {
				return true
			}
			parent := filepath.Dir(at)
			if parent == at {
				break
			}
			at = parent
		}
	}
	return false
}

func sameFile(a, b string) bool {
	first, err := files.Stat(a)
	if err != nil {
		return false
	}
	second, err := files.Stat(b)
	return err == nil && os.SameFile(first, second)
}
