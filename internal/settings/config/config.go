// Package config turns environment and flags into one immutable Config. It is the only package that reads the
// environment.
package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Config is everything that the operator decides.
type Config struct {
	Permissions   Permissions
	Forges        Forges
	Mounted       Mounted
	Records       Records
	Notifications Notifications
	Web           Web
	Sessions      Sessions
	Tools         Tools
	// EnvironmentFile is the file of settings and tokens that the environment lacks, whether it exists or not; "" for
	// none. Load does not know it.
	EnvironmentFile string

	SessionID string // agent's session that this process serves, "" for none; set by the program that starts it
	// Person is the token of the person at the command line; none where they are the user of the operating system.
	Person  forge.Secret
	Secrets []string // values that must never appear in a text
	// each names a value that was not understood and what was taken instead: the more careful choice
	Warnings []string
}

// Tools are settings of the toolsets beside that of pull requests, in the words of their contracts.
type Tools struct {
	Definitions Definitions
	Deploy      Deploy
}

// Permissions are the permissions of agents that are fixed while the process runs. Dry run, read-only and the
// repositories are in Rules.
type Permissions struct {
	Tier        gitprovider.Tier
	PolicyFile  string   // where it is; Rules say what holds
	Toolsets    []string // that are enabled, as they were named; never empty
	AllowWrite  bool     // tools beside create_pr may write beyond the program's own folders
	Confinement Confinement
}

// Notifications lists the targets of notifications.
type Notifications struct {
	AppriseURLs    string
	WebhookURL     string
	WebhookSecret  string
	AllowPlainHTTP bool // to other machines
}

// Load reads the settings; drivers are the forges that there are. It never fails: a value that cannot be understood is
// taken as the most careful choice, with a warning.
func Load(s Sources, drivers []forge.Driver) Config {
	e := env{lookup: s.Lookup, sources: s, drivers: drivers}
	c := Config{
		Permissions: e.permissions(), Forges: e.forges(), Mounted: e.mounted(), Records: e.records(),
		Notifications: e.notifications(), Web: e.web(), SessionID: e.sessionID(),
		Person: forge.Secret{Text: e.secret("CLAUDEOPS_TOKEN"), File: e.secretFile("CLAUDEOPS_TOKEN")},
		Tools:  Tools{Definitions: definitions(&e), Deploy: deploySettings(&e)},
	}
	e.remember(OperatorToken(c.Records.Dir))
	// The last, since agents get nothing that is remembered as a secret until then.
	c.Sessions = e.sessions(c)
	// these agents do get
	for _, address := range []string{e.get("HTTP_PROXY"), e.get("HTTPS_PROXY"), e.get("http_proxy"),
		e.get("https_proxy")} {
		if !strings.Contains(address, "://") {
			address = "http://" + address
		}
		e.rememberWhole(files.SecretsInAddresses(address)...)
	}
	c.Secrets, c.Warnings = e.secrets, e.warnings
	return c
}

func (e *env) permissions() Permissions {
	p := Permissions{
		Tier:       e.tier("CLAUDEOPS_TIER"),
		PolicyFile: e.get("CLAUDEOPS_POLICY"), Toolsets: splitList(e.get("CLAUDEOPS_TOOLSETS")),
		AllowWrite: e.permission("CLAUDEOPS_ALLOW_WRITE"), Confinement: confinement(e),
	}
	if len(p.Toolsets) == 0 {
		p.Toolsets = []string{"pr"}
	}
	e.anySource("CLAUDEOPS_DRY_RUN") // for the warnings; LoadRules reads them
	e.anySource("CLAUDEOPS_READ_ONLY")
	return p
}

func parseRepos(raw string) (patterns []policy.RepoPattern, problem string) {
	for _, entry := range splitList(raw) {
		pattern, err := policy.ParseRepoPattern(entry)
		if err != nil {
			return nil, fmt.Sprintf("CLAUDEOPS_REPOS is malformed: %s", err)
		}
		patterns = append(patterns, pattern)
	}
	if raw != "" && len(patterns) == 0 {
		return nil, "CLAUDEOPS_REPOS names no repository"
	}
	return patterns, ""
}

func (e *env) notifications() Notifications {
	return Notifications{
		AppriseURLs: e.secret("CLAUDEOPS_APPRISE_URLS"), WebhookURL: e.secret("CLAUDEOPS_WEBHOOK_URL"),
		WebhookSecret: e.secret("CLAUDEOPS_WEBHOOK_SECRET"), AllowPlainHTTP: e.permission("CLAUDEOPS_NOTIFY_PLAIN_HTTP"),
	}
}

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
	Driver forge.Driver
	forge.Settings
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

func (e *env) hookSecret(d forge.Driver) string {
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
func (f forgeEnv) Secret(name string) forge.Secret {
	return forge.Secret{Text: f.env.secret(name), File: f.env.secretFile(name)}
}

// Warn implements driver.Environment.
func (f forgeEnv) Warn(format string, args ...any) { f.env.warn(format, args...) }

// Bounds of CLAUDEOPS_POLL_INTERVAL.
const (
	DefaultPollInterval = 5 * time.Minute
	minPollInterval     = 30 * time.Second
	maxPollInterval     = 24 * time.Hour
)

// pollInterval returns a duration such as 5m; 0 is off.
func (e *env) pollInterval(name string) time.Duration {
	raw := e.get(name)
	if raw == "" {
		return DefaultPollInterval
	}
	d, err := time.ParseDuration(raw)
	if err != nil || d != 0 && (d < minPollInterval || d > maxPollInterval) {
		e.warn("%s is %s, which is neither 0 nor a time from %s to %s such as 5m: %s holds", name, quoteShort(raw),
			minPollInterval,
			maxPollInterval, DefaultPollInterval)
		return DefaultPollInterval
	}
	return d
}

// Records says where records are kept and for how long.
type Records struct {
	Dir         string        // the state folder; may be "" when no home folder is known; Problem says so
	Problem     string        // why there is no Dir
	DirDefault  bool          // the folder was not configured, so the folders above it may be made too
	DatabaseURL string        // PostgreSQL; "" means SQLite in Dir
	Kind        string        // where the operator says that they are, sqlite or postgresql; "" means where they were last
	MarkKey     string        // 64 hexadecimal digits; "" means the key file in Dir
	Retention   time.Duration // how long contents are kept; 0 means for ever
	AuditSinks  []string      // where the heads of the audit are exported to; may hold secrets
}

func (e *env) records() Records {
	r := Records{
		DirDefault: e.get("CLAUDEOPS_STATE_DIR") == "", DatabaseURL: databaseURL(e),
		Kind:    strings.ToLower(e.get("CLAUDEOPS_RECORDS")),
		MarkKey: e.secret("CLAUDEOPS_MARK_KEY"), Retention: e.retention(),
		AuditSinks: auditSinks(e),
	}
	r.Dir, r.Problem = e.stateDir()
	return r
}

// databaseURL reads the address of the database. Its passwords are secret; the names of its user, its host and itself
// are not.
func databaseURL(e *env) string {
	value := e.variableOrFile("CLAUDEOPS_DATABASE_URL")
	e.rememberWhole(value)
	u, err := url.Parse(value)
	if err != nil {
		return value
	}
	if _, has := u.User.Password(); has {
		e.rememberWhole(files.SecretsInAddresses(value)...)
	}
	for _, name := range []string{"password", "sslpassword"} {
		e.rememberWhole(u.Query()[name]...)
	}
	return value
}

// minQuerySecret is the minimum length of a value in the query of an address that counts as a secret, in bytes: a
// shorter one may be any word.
const minQuerySecret = 8

// auditSinks reads addresses, of which those over https may hold secrets.
func auditSinks(e *env) []string {
	sinks := splitList(e.variableOrFile("CLAUDEOPS_AUDIT_SINK"))
	for _, sink := range sinks {
		u, err := url.Parse(sink)
		if err == nil && u.Scheme != "https" && u.Scheme != "http" {
			continue
		}
		e.remember(sink)
		if err != nil {
			continue
		}
		for _, values := range u.Query() {
			e.rememberWhole(slices.DeleteFunc(values, func(v string) bool { return len(v) < minQuerySecret })...)
		}
	}
	return sinks
}

// stateDir is CLAUDEOPS_STATE_DIR, else a folder of the user.
func (e *env) stateDir() (dir, problem string) {
	if dir = e.get("CLAUDEOPS_STATE_DIR"); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Sprintf("CLAUDEOPS_STATE_DIR cannot be made an absolute path: %s", err)
		}
		return abs, ""
	}
	if dir = below(FoldersOf(e.lookup).State(), "claudeops"); dir != "" {
		return dir, ""
	}
	return "", "neither CLAUDEOPS_STATE_DIR nor HOME (on Windows LOCALAPPDATA) is set, so there is no place for the " +
		"records; set CLAUDEOPS_STATE_DIR"
}

// OperatorTokenFile is the file in the state folder with the token that `claudeops serve` makes at its first start.
const OperatorTokenFile = "operator-token"

// OperatorToken returns the operator's token from its file; "" if there is none that we may read. It is among the
// Secrets of a Config, so it is redacted like any other.
func OperatorToken(stateDir string) string {
	if stateDir == "" {
		return ""
	}
	text, err := files.ReadSecret(filepath.Join(stateDir, OperatorTokenFile))
	if err != nil {
		return ""
	}
	return text
}

// retention reads an age of policy.ParseRetention. It is 0, which keeps everything, for a value that cannot be
// understood.
func (e *env) retention() time.Duration {
	raw := e.get("CLAUDEOPS_RETENTION")
	if raw == "" {
		return 0
	}
	age, err := policy.ParseRetention(raw)
	if err != nil {
		e.warn("CLAUDEOPS_RETENTION: %s is %s: everything is kept", quoteShort(raw), err)
	}
	return age
}
