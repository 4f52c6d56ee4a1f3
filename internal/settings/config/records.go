package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/system/secretfile"
)

// Records says where records are kept and for how long.
type Records struct {
	Dir         string        // the state folder; may be "" when no home folder is known; Problem says so
	Problem     string        // why there is no Dir
	DirDefault  bool          // the folder was not configured, so the folders above it may be made too
	DatabaseURL string        // PostgreSQL; "" means SQLite in Dir
	Kind        string        // where the operator says that they are, sqlite or postgresql; "" means where they were last
	MarkKey     string        // 64 hexadecimal digits; "" means the key file in Dir
	Retention   time.Duration // how long contents are kept; 0 means for ever
	// SessionRetention is how long what agents said and did in sessions is kept, if Retention is not shorter; 0 means for
	// ever.
	SessionRetention time.Duration
	AuditSinks       []string // where the heads of the audit are exported to; may hold secrets
}

func (e *env) records() Records {
	r := Records{
		DirDefault: e.get("CLAUDEOPS_STATE_DIR") == "", DatabaseURL: databaseURL(e),
		Kind:    strings.ToLower(e.get("CLAUDEOPS_RECORDS")),
		MarkKey: e.secret("CLAUDEOPS_MARK_KEY"), Retention: e.age("CLAUDEOPS_RETENTION", e.get("CLAUDEOPS_RETENTION"), 0),
		SessionRetention: e.age("CLAUDEOPS_SESSION_RETENTION", e.get("CLAUDEOPS_SESSION_RETENTION"), defaultSessionRetention),
		AuditSinks:       auditSinks(e),
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
		e.rememberWhole(secretfile.InAddresses(value)...)
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

// OperatorTokenFile is the file in the state folder with the token that `claudeops serve` makes at its first start.
const OperatorTokenFile = "operator-token"

// OperatorToken returns the operator's token from its file; "" if there is none that we may read. It is among the
// Secrets of a Config, so it is redacted like any other.
func OperatorToken(stateDir string) string {
	if stateDir == "" {
		return ""
	}
	text, err := secretfile.Read(filepath.Join(stateDir, OperatorTokenFile))
	if err != nil {
		return ""
	}
	return text
}

// minRetention is the shortest possible retention: the rules look back on days.
const minRetention = 7 * 24 * time.Hour

// ParseRetention reads an age such as 90d or 2160h, of at least seven days; 0 means no age.
func ParseRetention(raw string) (time.Duration, error) {
	if raw == "0" {
		return 0, nil
	}
	age, err := time.ParseDuration(raw)
	if days, ok := strings.CutSuffix(raw, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		age = time.Duration(n) * 24 * time.Hour //nolint:gosec // 16 bits fit
	}
	if err != nil {
		return 0, fmt.Errorf("%s is no age such as 90d", shown(raw))
	}
	if age < minRetention {
		return 0, fmt.Errorf("%s is less than 7d", shown(raw))
	}
	return age, nil
}

// defaultSessionRetention is how long what sessions said is kept unless the operator says otherwise: it is by far the
// most of what is recorded.
const defaultSessionRetention = 30 * 24 * time.Hour

// age reads an age of ParseRetention. It is 0, which keeps everything, for a value that cannot be understood.
func (e *env) age(name, raw string, unset time.Duration) time.Duration {
	if raw == "" {
		return unset
	}
	age, err := ParseRetention(raw)
	if err != nil {
		e.warn("%s: %s: everything is kept", name, err)
	}
	return age
}
