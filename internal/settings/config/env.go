package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/driver"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/secretfile"
)

// env reads variables by our rules, and remembers the secrets among them.
type env struct {
	lookup   func(string) (string, bool)
	sources  Sources         // that lookup asks
	drivers  []driver.Driver // of the forges
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
		e.warn("%s is %s, which is no tier (1, 2 or 3): tier 1 holds", name, shown(raw))
	}
	return tier
}

// boolean treats a value that is not a boolean as true: each of our switches makes the product more careful.
func (e *env) boolean(name string) bool {
	raw := e.get(name)
	value, ok := parseSwitch(raw)
	if !ok {
		e.warn("%s is %s, which is neither true nor false: true holds", name, shown(raw))
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
		e.warn("%s is %s, which is neither true nor false: false holds", name, shown(raw))
	}
	return err == nil && value
}

// shown quotes a value for a warning, cut short: it may be anything, a misplaced token included.
func shown(s string) string {
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
	if driver.IsKey(value) {
		e.rememberWhole(driver.Redacted(value))
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
	text, err := secretfile.Read(file)
	if err != nil {
		e.warn("%s_FILE names a file that cannot be read or is larger than %d bytes: %s is unset", name, secretfile.MaxSize,
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
		e.rememberWhole(secretfile.InAddresses(value)...)
	}
}

func (e *env) rememberWhole(values ...string) {
	for _, value := range values {
		if value != "" && !slices.Contains(e.secrets, value) {
			e.secrets = append(e.secrets, value)
		}
	}
}
