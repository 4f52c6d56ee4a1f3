package config

import (
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider/driver"
)

// Forges are the git hosts.
type Forges struct {
	All             []Forge // in the order of their table
	LocalRoot       string  // folder of local repositories; "" for none
	DefaultProvider string
	AllowPlainHTTP  bool   // tokens may go over plain http to other machines
	CAFile          string // PEM certificates to trust beside the system's
	// how often `claudeops serve` looks at open pull requests; 0: never, unless a webhook comes
	PollInterval time.Duration
}

// Forge is a git host that is reached over its API.
type Forge struct {
	Driver driver.Driver
	driver.Settings
}

// minHookSecret is the length in bytes below which a secret of webhooks is not accepted.
const minHookSecret = 16

func (e *env) forges() Forges {
	out := Forges{
		LocalRoot:       absolute(e.get("CLAUDEOPS_LOCAL_ROOT")),
		DefaultProvider: strings.ToLower(e.get("CLAUDEOPS_DEFAULT_PROVIDER")),
		AllowPlainHTTP:  e.permission("CLAUDEOPS_FORGE_PLAIN_HTTP"), CAFile: e.get("CLAUDEOPS_CA_FILE"),
		PollInterval: e.pollInterval("CLAUDEOPS_POLL_INTERVAL"),
	}
	for _, d := range e.drivers {
		f := Forge{Driver: d, Settings: d.Read(forgeEnv{e})}
		f.HookSecret = e.hookSecret(d)
		out.All = append(out.All, f)
	}
	return out
}

func (e *env) hookSecret(d driver.Driver) string {
	name := d.HookVariable().Name
	value := e.secret(name)
	if value != "" && len(value) < minHookSecret {
		e.warn("%s has less than %d characters: webhooks of this forge are refused", name, minHookSecret)
		return ""
	}
	return value
}

// forgeEnv is the environment as a driver reads it.
type forgeEnv struct{ env *env }

// Get implements driver.Environment.
func (f forgeEnv) Get(name string) string { return f.env.get(name) }

// Secret implements driver.Environment.
func (f forgeEnv) Secret(name string) driver.Secret {
	return driver.Secret{Text: f.env.secret(name), File: f.env.secretFile(name)}
}

// Warn implements driver.Environment.
func (f forgeEnv) Warn(format string, args ...any) { f.env.warn(format, args...) }
