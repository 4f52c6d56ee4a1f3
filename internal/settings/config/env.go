package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/identity"
)

// env reads variables by our rules, and remembers the secrets among them.
type env struct {
	lookup   func(string) (string, bool)
	sources  Sources        // that lookup asks
	drivers  []forge.Driver // of the forges
	warnings []string
	secrets  []string // values that must never appear in a text
}

// warn adds a warning, once: some variables are read more than once.
func (e *env) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(e.warnings, text) {
		e.warnings = append(e.warnings, text)
	}
}

// get returns a variable. Empty, and a placeholder that the client did not expand (Claude Code passes ${NAME} on
// literally when the variable is missing), count as unset.
func (e *env) get(name string) string {
	value, _ := e.lookup(name)
	value = strings.TrimSpace(value)
	if isPlaceholder(value) {
		return ""
	}
	return value
}

func isPlaceholder(s string) bool {
	return strings.HasPrefix(s, "${") && strings.HasSuffix(s, "}")
}

func (e *env) tier(name string) gitprovider.Tier {
	raw := e.get(name)
	tier, ok := gitprovider.ParseTier(raw)
	if !ok {
		e.warn("%s is %s, which is not a tier (1, 2 or 3): tier 1 holds", name, quoteShort(raw))
	}
	return tier
}

// boolean treats a value that is not a boolean as true: each of our switches makes the product more careful.
func (e *env) boolean(name string) bool {
	raw := e.get(name)
	value, ok := parseSwitch(raw)
	if !ok {
		e.warn("%s is %s, which is neither true nor false: true holds", name, quoteShort(raw))
	}
	return value
}

// anySource is boolean for a switch that any source can switch on, and none off again.
func (e *env) anySource(name string) policy.Switch {
	for _, source := range e.sources {
		one := env{lookup: source.Lookup, warnings: e.warnings}
		one.boolean(name)
		e.warnings = one.warnings
	}
	out := e.sources.Switch(name)
	if warning := out.Warning(); warning != "" {
		e.warn("%s", warning)
	}
	return out
}

// permission treats everything but a clear yes as no: what it permits makes the product less careful.
func (e *env) permission(name string) bool {
	raw := e.get(name)
	value, err := strconv.ParseBool(strings.ToLower(raw))
	if raw != "" && err != nil {
		e.warn("%s is %s, which is neither true nor false: false holds", name, quoteShort(raw))
	}
	return err == nil && value
}

// quoteShort quotes a value for a warning, cut short: it may be anything, a misplaced token included.
func quoteShort(s string) string {
	const limit = 8
	if len(s) > limit {
		return fmt.Sprintf("%+q...", s[:limit])
	}
	return fmt.Sprintf("%+q", s)
}

// absolute returns a path as it is seen from another folder; "" stays "".
func absolute(path string) string {
	if abs, err := filepath.Abs(path); path != "" && err == nil {
		return abs
	}
	return path
}

func isVariable(name string) bool {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name)
}

// splitList splits at commas and white space.
func splitList(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' || r == '\r' })
}

// secret returns the variable, or the content of the file that NAME_FILE names. It is remembered as a secret; the lines
// of a private key by themselves are none.
func (e *env) secret(name string) string {
	value := e.variableOrFile(name)
	if forge.IsKey(value) {
		e.rememberWhole(forge.Redacted(value))
	} else {
		e.remember(value)
	}
	return value
}

func (e *env) variableOrFile(name string) string {
	if value := e.get(name); value != "" {
		return value
	}
	file := e.get(name + "_FILE")
	if file == "" {
		return ""
	}
	text, err := files.ReadSecret(file)
	if err != nil {
		e.warn("%s_FILE names a file that cannot be read or is larger than %d bytes: %s is unset", name, files.MaxSecretSize,
			name)
	}
	return text
}

// secretFile returns the file that a secret is from, "" if it is from a variable or unset.
func (e *env) secretFile(name string) string {
	if e.get(name) != "" {
		return ""
	}
	return e.get(name + "_FILE")
}

// remember takes values for secrets, and the parts of those that are lists or addresses with a password.
func (e *env) remember(values ...string) {
	for _, value := range values {
		e.rememberWhole(value)
		if parts := splitList(value); len(parts) > 1 {
			e.rememberWhole(parts...)
		}
		e.rememberWhole(files.SecretsInAddresses(value)...)
	}
}

func (e *env) rememberWhole(values ...string) {
	for _, value := range values {
		if value != "" && !slices.Contains(e.secrets, value) {
			e.secrets = append(e.secrets, value)
		}
	}
}

// Source is one place that settings come from.
type Source struct {
	Name   string // for people, such as "the environment"
	Lookup func(name string) (value string, ok bool)
}

// Sources are the places that settings come from. The first in which a setting is set wins, switches excepted; see
// Switch.
type Sources []Source

// Environment returns the sources of a process that reads nothing but its environment.
func Environment(lookup func(string) (string, bool)) Sources {
	return Sources{{Name: "the environment", Lookup: lookup}}
}

// Find returns a setting and the source that it is from; "" if it is unset everywhere: missing, empty, or a placeholder
// that a client did not expand.
func (s Sources) Find(name string) (value, from string) {
	for _, source := range s {
		value, _ := source.Lookup(name)
		if trimmed := strings.TrimSpace(value); trimmed != "" && !isPlaceholder(trimmed) {
			return value, source.Name
		}
	}
	return "", ""
}

// Lookup reads a variable as os.LookupEnv does: what Find returns, else what the first source that has it holds.
func (s Sources) Lookup(name string) (string, bool) {
	if value, from := s.Find(name); from != "" {
		return value, true
	}
	for _, source := range s {
		if value, ok := source.Lookup(name); ok {
			return value, true
		}
	}
	return "", false
}

// Switch reads a switch that makes the product more careful: it is on if any source says so, whatever the others say.
func (s Sources) Switch(name string) (out policy.Switch) {
	for _, source := range s {
		raw, from := Sources{source}.Find(name)
		if from == "" {
			continue
		}
		on, _ := parseSwitch(raw)
		out.Say(name+" of "+source.Name, on)
	}
	return out
}

// parseSwitch reads the value of a switch that makes the product more careful. ok is false for a value that is not a
// boolean, which switches it on.
func parseSwitch(raw string) (on, ok bool) {
	switch raw = strings.ToLower(strings.TrimSpace(raw)); raw {
	case "":
		return false, true
	case "yes", "on":
		return true, true
	case "no", "off":
		return false, true
	}
	on, err := strconv.ParseBool(raw)
	return on || err != nil, err == nil
}

// Rules are the settings by which proposals are judged beside the tier. A server reads them again and again.
type Rules struct {
	DryRun, ReadOnly policy.Switch
	PolicyFile       string
	Repos            []policy.RepoPattern
	ReposProblem     string // CLAUDEOPS_REPOS is malformed: proposals must be refused, not the list ignored
}

// LoadRules reads the settings by which proposals are judged.
func LoadRules(s Sources) Rules {
	e := env{lookup: s.Lookup, sources: s}
	r := Rules{DryRun: e.anySource("CLAUDEOPS_DRY_RUN"), ReadOnly: e.anySource("CLAUDEOPS_READ_ONLY"),
		PolicyFile: e.get("CLAUDEOPS_POLICY")}
	r.Repos, r.ReposProblem = parseRepos(e.get("CLAUDEOPS_REPOS"))
	return r
}

// Setting is one setting as it is written, and where it came from.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value" doc:"set for a secret that there is; empty if nothing is set and there is no default"`
	Source string `json:"source" doc:"The place that it is from, or default; empty if it is not set"`
	// Warnings name places that are overruled, and say of a value that is not understood what holds in its place.
	Warnings []string `json:"warnings,omitempty"`
}

// Show lists every setting that the product reads, in the order of their reference. Secrets are shown as "set". rules
// holds the switches, which places beside the sources may switch on.
func Show(s Sources, drivers []forge.Driver, rules map[string]policy.Switch) (out []Setting) {
	misread := misreadSettings(s, drivers)
	for _, v := range settable(s, drivers) {
		setting := resolveSetting(s, v)
		setting.Warnings = append(setting.Warnings, misread[v.Name]...)
		if on, is := rules[v.Name]; is {
			setting.Value = strconv.FormatBool(on.On)
			if len(on.By) > 0 {
				setting.Source = strings.Join(on.By, ", ")
			}
			if warning := on.Warning(); warning != "" {
				setting.Warnings = append(setting.Warnings, warning)
			}
		}
		out = append(out, setting)
	}
	return out
}

// misreadSettings returns what is wrong with settings, by their names.
func misreadSettings(s Sources, drivers []forge.Driver) map[string][]string {
	c, rules := Load(s, drivers), LoadRules(s)
	out := map[string][]string{}
	for _, said := range append(c.Warnings, c.Records.Problem, c.Web.Problem, c.Permissions.Confinement.Problem,
		c.Sessions.Problem, c.Sessions.Schedule.Problem, rules.ReposProblem) {
		name, _, _ := strings.Cut(said, " ")
		if name = strings.TrimSuffix(name, ":"); name != "" && !slices.Contains(out[name], said) {
			out[name] = append(out[name], said)
		}
	}
	return out
}

// settable returns the variables of Sections, those of which there is one for each provider of identities included.
func settable(s Sources, drivers []forge.Driver) (out []Variable) {
	providers, _ := s.Find("CLAUDEOPS_SIGN_IN")
	for _, section := range Sections(drivers) {
		for _, v := range section.Variables {
			if !v.Each {
				out = append(out, v)
				continue
			}
			for _, name := range splitList(providers) {
				one := v
				one.Name = strings.Replace(v.Name, "_NAME_", "_"+identity.VariablePart(name)+"_", 1)
				out = append(out, one)
			}
		}
	}
	return out
}

// UnreadableFiles explains for each file of a secret (NAME_FILE) that exists and cannot be read why, one sentence each.
// A start without them would have other settings than the operator's. A file that is missing or empty counts as unset.
func UnreadableFiles(s Sources, drivers []forge.Driver) (out []string) {
	for _, v := range settable(s, drivers) {
		name := v.Name + "_FILE"
		path, source := s.Find(name)
		if _, own := s.Find(v.Name); !v.Secret || source == "" || own != "" {
			continue
		}
		path = strings.TrimSpace(path)
		if _, err := files.ReadSecret(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			out = append(out, fmt.Sprintf("%s of %s is %s, which cannot be used (%s): let this user read the file, at most %d "+
				"bytes, or unset the variable", name, source, path, reasonOf(err), files.MaxSecretSize))
		}
	}
	return out
}

// resolveSetting returns a setting by its sources; a secret may be in the file that NAME_FILE names.
func resolveSetting(s Sources, v Variable) Setting {
	value, from := s.Find(v.Name)
	if _, source := s.Find(v.Name + "_FILE"); v.Secret && from == "" && source != "" {
		setting := Setting{Name: v.Name, Value: "set", Source: fmt.Sprintf("%s_FILE of %s", v.Name, source)}
		if one := readSecret(s, v.Name); one.value == "" {
			setting.Value, setting.Warnings = "", []string{one.problem}
		}
		return setting
	}
	switch {
	case from == "" && v.Default == "":
		return Setting{Name: v.Name}
	case from == "":
		return Setting{Name: v.Name, Value: v.Default, Source: "default"}
	case v.Secret:
		value = "set"
	}
	return Setting{Name: v.Name, Value: strings.TrimSpace(value), Source: from, Warnings: others(s, v, from)}
}

// others says which sources name the setting and are passed over.
func others(s Sources, v Variable, winner string) (out []string) {
	won, _ := s.Find(v.Name)
	for _, source := range s {
		value, from := Sources{source}.Find(v.Name)
		if from == "" || from == winner || strings.TrimSpace(value) == strings.TrimSpace(won) ||
			slices.Contains([]string{"CLAUDEOPS_DRY_RUN", "CLAUDEOPS_READ_ONLY"}, v.Name) {
			continue
		}
		out = append(out, fmt.Sprintf("%s sets it too, and is passed over", from))
	}
	return out
}

// maxEnvironmentFile bounds an environment file, in bytes.
const maxEnvironmentFile = 64 << 10

// EnvironmentFile returns the operator's environment file that is read unless another one is named, in the folder of
// settings of UserFolders; "" without one.
func EnvironmentFile(lookup func(string) (string, bool)) string {
	return below(FoldersOf(lookup).Config(), "claudeops", "environment")
}

// UserFolders finds the folders of a user by variables, as each system names them. A variable that is not an absolute
// path counts as unset.
type UserFolders struct {
	System string // by its GOOS
	Lookup func(string) (string, bool)
}

// FoldersOf returns the folders of this system's user.
func FoldersOf(lookup func(string) (string, bool)) UserFolders {
	return UserFolders{runtime.GOOS, lookup}
}

// HomeVariables names the variables by which programs that are started find the folders of their user, on any system.
func HomeVariables() []string { return []string{"HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"} }

// Home returns the home folder: HOME, and on Windows USERPROFILE before it; "" if none is set.
func (f UserFolders) Home() string {
	if f.System == "windows" {
		return f.first("USERPROFILE", "HOME")
	}
	return f.first("HOME")
}

// State returns the folder in which programs keep what they record: $XDG_STATE_HOME, else ~/.local/state, and on
// Windows %LOCALAPPDATA%, which a shell that sets HOME does not change; "" if it is not known.
func (f UserFolders) State() string {
	return f.pickFolder("XDG_STATE_HOME", []string{".local", "state"}, "LOCALAPPDATA", "Local")
}

// Config returns the folder of settings: $XDG_CONFIG_HOME, else ~/.config, and on Windows %APPDATA%; "" if it is not
// known.
func (f UserFolders) Config() string {
	return f.pickFolder("XDG_CONFIG_HOME", []string{".config"}, "APPDATA", "Roaming")
}

func (f UserFolders) pickFolder(named string, atHome []string, onWindows, ofAppData string) string {
	if f.System != "windows" {
		return cmp.Or(f.first(named), below(f.Home(), atHome...))
	}
	return cmp.Or(f.first(named, onWindows), below(f.Home(), "AppData", ofAppData))
}

// first returns the first of the variables that is an absolute path.
func (f UserFolders) first(names ...string) string {
	for _, name := range names {
		if value, _ := f.Lookup(name); filepath.IsAbs(value) {
			return value
		}
	}
	return ""
}

// below joins a folder and names; "" if there is no folder.
func below(folder string, names ...string) string {
	if folder == "" {
		return ""
	}
	return filepath.Join(append([]string{folder}, names...)...)
}

// ReadEnvironmentFile reads a file of lines NAME=VALUE. Blank lines and lines that begin with # do not count; quotes
// around a whole value are taken off. The error says what to correct: the file is missing (fs.ErrNotExist), has a
// malformed line or a name twice, or is open to other users, though it may hold tokens.
func ReadEnvironmentFile(path string) (map[string]string, error) {
	text, info, err := files.ReadPath(path, maxEnvironmentFile)
	if err != nil {
		return nil, fmt.Errorf("the environment file %s cannot be read: %w", path, reasonOf(err))
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" { // where modes say nothing
		return nil,
			fmt.Errorf("the environment file %s is open to other users (mode %04o) and may hold tokens; run: chmod 600 %s",
				path, info.Mode().Perm(), path)
	}
	values := map[string]string{}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		_, twice := values[name]
		switch {
		case !ok || !isVariable(name):
			return nil, fmt.Errorf("line %d of the environment file %s is not of the form NAME=VALUE", i+1, path)
		case twice:
			return nil, fmt.Errorf("the environment file %s sets %s twice; remove one of the lines", path, name)
		}
		values[name] = unquoted(strings.TrimSpace(value))
	}
	return values, nil
}

// reasonOf returns an error without the path, which the message names already.
func reasonOf(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

func unquoted(value string) string {
	if len(value) < 2 || value[0] != value[len(value)-1] || !slices.Contains([]byte{'\'', '"'}, value[0]) {
		return value
	}
	return value[1 : len(value)-1]
}
