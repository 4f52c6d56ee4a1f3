// Package config turns environment and flags into one immutable Config. It is the only package that reads the
// environment.
package config

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/credentialfile"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/policy"
)

// Config is everything that the operator decides. Warnings name values that were not understood and what was taken
// instead: always the more careful choice.
type Config struct {
	Tier            gitprovider.Tier
	DryRun          bool
	ReadOnly        bool
	PolicyFile      string
	StateDir        string // may be "" when no home folder is known; StateDirProblem says so
	StateDirProblem string
	StateDirDefault bool // nobody named the folder, so the folders above it may be made too
	LocalRoot       string
	ReposDir        string
	Mounted         Mounted
	DefaultProvider string
	GitHub          Forge
	Gitea           Forge
	ForgePlainHTTP  bool   // tokens may go over plain http to other machines
	CAFile          string // PEM certificates to trust beside the system's
	Repos           []policy.RepoPattern
	ReposProblem    string        // CLAUDEOPS_REPOS is malformed: proposals must be refused, not the list ignored
	DatabaseURL     string        // PostgreSQL; "" means SQLite in StateDir
	Retention       time.Duration // how long contents are kept; 0 means for ever
	MarkKey         string        // 64 hexadecimal digits; "" means the key file in StateDir
	AppriseURLs     string
	WebhookURL      string
	WebhookSecret   string
	NotifyPlainHTTP bool
	Web             Web
	Hooks           Hooks
	Session         Session
	Secrets         []string // values that must never appear in a text
	User            string   // the operating system's user, for the record of what people do
	Toolsets        []string
	Warnings        []string
}

// DefaultReposDir is where mounted working copies are looked for.
const DefaultReposDir = "/repos"

// Load reads the environment through lookup (os.LookupEnv). It never fails: a value that cannot be understood is taken
// as the most careful choice, with a warning.
func Load(lookup func(string) (string, bool)) Config {
	e := env{lookup: lookup}
	c := Config{
		PolicyFile: e.get("CLAUDEOPS_POLICY"), LocalRoot: e.get("CLAUDEOPS_LOCAL_ROOT"),
		ReposDir: e.get("CLAUDEOPS_REPOS_DIR"), DefaultProvider: strings.ToLower(e.get("CLAUDEOPS_DEFAULT_PROVIDER")),
		User: e.get("USER"),
	}
	if c.ReposDir == "" {
		c.ReposDir = DefaultReposDir
	}
	if root, err := filepath.Abs(c.LocalRoot); c.LocalRoot != "" && err == nil {
		c.LocalRoot = root
	}
	c.Mounted = e.mounted()
	c.Tier = e.tier("CLAUDEOPS_TIER")
	c.DryRun = e.boolean("CLAUDEOPS_DRY_RUN")
	c.ReadOnly = e.boolean("CLAUDEOPS_READ_ONLY")
	c.StateDir, c.StateDirProblem = e.stateDir()
	c.StateDirDefault = e.get("CLAUDEOPS_STATE_DIR") == ""
	c.Repos, c.ReposProblem = parseRepos(e.get("CLAUDEOPS_REPOS"))
	c.DatabaseURL, c.MarkKey = e.secret("CLAUDEOPS_DATABASE_URL"), e.secret("CLAUDEOPS_MARK_KEY")
	c.Retention = e.retention()
	c.AppriseURLs, c.WebhookURL = e.secret("CLAUDEOPS_APPRISE_URLS"), e.secret("CLAUDEOPS_WEBHOOK_URL")
	c.WebhookSecret = e.secret("CLAUDEOPS_WEBHOOK_SECRET")
	c.NotifyPlainHTTP = e.permission("CLAUDEOPS_NOTIFY_PLAIN_HTTP")
	c.GitHub, c.Gitea = e.github(), e.gitea()
	c.Web = e.web()
	hooks, hookSecrets := e.hooks()
	c.Hooks = hooks
	c.ForgePlainHTTP, c.CAFile = e.permission("CLAUDEOPS_FORGE_PLAIN_HTTP"), e.get("CLAUDEOPS_CA_FILE")
	c.Secrets = append(e.forgeSecrets(c.GitHub, c.Gitea), secretValues(e.secret("CLAUDEOPS_API_TOKENS"),
		c.DatabaseURL, c.MarkKey, c.AppriseURLs, c.WebhookURL, c.WebhookSecret)...)
	c.Secrets = append(c.Secrets, secretValues(append(hookSecrets, OperatorToken(c.StateDir))...)...)
	c.Session = e.session(c)
	c.Secrets = append(c.Secrets, secretValues(slices.Sorted(maps.Values(e.modelCredentials()))...)...)
	c.Toolsets = splitList(e.get("CLAUDEOPS_TOOLSETS"))
	c.Warnings = e.warnings
	return c
}

// env reads variables by our rules.
type env struct {
	lookup   func(string) (string, bool)
	warnings []string
}

func (e *env) warn(format string, args ...any) {
	e.warnings = append(e.warnings, fmt.Sprintf(format, args...))
}

// warnOnce is for what is read more than once.
func (e *env) warnOnce(format string, args ...any) {
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

// boolean treats a value that is no boolean as true: each of our switches makes the product more careful.
func (e *env) boolean(name string) bool {
	raw := e.get(name)
	switch strings.ToLower(raw) {
	case "":
		return false
	case "yes", "on":
		return true
	case "no", "off":
		return false
	}
	value, err := strconv.ParseBool(strings.ToLower(raw))
	if err != nil {
		e.warn("%s is %s, which is neither true nor false: true holds", name, shown(raw))
		return true
	}
	return value
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

// stateDir is CLAUDEOPS_STATE_DIR, else the folder of the XDG Base Directory Specification.
func (e *env) stateDir() (dir, problem string) {
	if dir = e.get("CLAUDEOPS_STATE_DIR"); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Sprintf("CLAUDEOPS_STATE_DIR cannot be made an absolute path: %s", err)
		}
		return abs, ""
	}
	if base := e.get("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "claudeops"), ""
	}
	if home := e.get("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "claudeops"), ""
	}
	return "", "neither CLAUDEOPS_STATE_DIR nor HOME is set, so there is no place for the records; set CLAUDEOPS_STATE_DIR"
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

// splitList splits at commas and white space.
func splitList(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' || r == '\r' })
}

// secretValues lists the values that must never appear in a text, and the parts of those that are lists.
func secretValues(values ...string) []string {
	var out []string
	for _, value := range values {
		if value == "" {
			continue
		}
		out = append(out, value)
		if parts := splitList(value); len(parts) > 1 {
			out = append(out, parts...)
		}
		if u, err := url.Parse(value); err == nil && u.User != nil {
			if password, has := u.User.Password(); has {
				out = append(out, password)
			}
		}
	}
	return out
}

// secret is the variable, or the content of the file that NAME_FILE names.
func (e *env) secret(name string) string {
	if value := e.get(name); value != "" {
		return value
	}
	file := e.get(name + "_FILE")
	if file == "" {
		return ""
	}
	text, err := credentialfile.Read(file)
	if err != nil {
		e.warnOnce("%s_FILE names a file that cannot be read or is larger than %d bytes: %s is unset", name, credentialfile.MaxSize, name)
	}
	return text
}

// secretFile is the file that a secret is from, "" if it is from a variable or unset.
func (e *env) secretFile(name string) string {
	if e.get(name) != "" {
		return ""
	}
	return e.get(name + "_FILE")
}
