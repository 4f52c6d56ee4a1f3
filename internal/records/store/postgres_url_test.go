package store

import (
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// These need no server, so they run on every engine.

func TestURLsThatAreNotPostgresAreRefusedWithoutShowingThem(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	for name, test := range map[string]struct{ url, message string }{
		"empty":                   {"", "is not a PostgreSQL URL"},
		"a path":                  {"/var/lib/" + secret, "is not a PostgreSQL URL"},
		"another scheme":          {"mysql://u:" + secret + "@h/d", "is not a PostgreSQL URL"},
		"keywords":                {"host=h user=u password=" + secret, "is not a PostgreSQL URL"},
		"a control character":     {"postgres://u:" + secret + "\x01@h/d", "is not a PostgreSQL URL"},
		"a half escape":           {"postgres://u:%" + secret + "@h/d", "is not a PostgreSQL URL"},
		"a port that is none":     {"postgres://u:" + secret + "@h:port/d", "is not a PostgreSQL URL"},
		"a port that is too high": {"postgres://u:" + secret + "@h:99999/d", "check its port"},
		"a slash in the password": {"postgres://u:12/" + secret + "@h/d", "write each of them as %XX"},
		"a question mark":         {"postgres://u:12?" + secret + "@h/d", "write each of them as %XX"},
		"a hash":                  {"postgres://u:12#" + secret + "@h/d", "write each of them as %XX"},
		"a slash after a word":    {"postgres://u:" + secret + "/x@h/d", "is not a PostgreSQL URL"},
		"an unknown TLS mode": {"postgres://u:" + secret + "@h/d?sslmode=" + secret,
			"check its port, its options"},
		"a certificate that is missing": {"postgres://u:" + secret + "@h/d?sslrootcert=/none", "the files that it names"},
		"a password among the options":  {"postgres://h:99999/d?user=u&password=" + secret, "check its port"},
		"a key's password": {"postgres://h/d?sslmode=require&sslcert=/none&sslkey=/none&sslpassword=" + secret,
			"the files"},
		"a time that is none":            {"postgres://u:" + secret + "@h/d?connect_timeout=" + secret, "its options"},
		"a file as the name of a secret": {"postgres://u:" + secret + "@h/d?sslrootcert=/none/" + secret, "the files"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseURL(test.url, time.Second)
			wantCode(t, err, fault.Misconfigured)
			if !strings.Contains(err.Error(), test.message) || !strings.Contains(err.Error(), "CLAUDEOPS_DATABASE_URL") {
				t.Errorf("the message does not say %q: %v", test.message, err)
			}
			if cause := errCause(err); strings.Contains(err.Error(), secret) ||
				cause != nil && strings.Contains(cause.Error(), secret) {
				t.Errorf("the secret is shown: %v (%v)", err, cause)
			}
		})
	}
}

func TestWhatTheURLSaysIsHeeded(t *testing.T) {
	t.Parallel()
	config, err := parseURL("postgresql://joe:a%2Fb%40c@db.example.org:6543/ops?sslmode=disable&search_path=claudeops"+
		"&lock_timeout=7&connect_timeout=3", 1500*time.Millisecond)
	wantEqual(t, err, nil)
	wantEqual(t, nameOf(config), "db.example.org:6543/ops")
	wantEqual(t, []any{config.User, config.Password, config.ConnectTimeout}, []any{"joe", "a/b@c", 3 * time.Second})
	p := config.RuntimeParams
	wantEqual(t, []string{p["search_path"], p["lock_timeout"], p["application_name"]},
		[]string{"claudeops", "7", "claudeops"})
	config, err = parseURL("postgres://h1:6,h2:7/d?sslmode=prefer", 1500*time.Millisecond)
	wantEqual(t, err, nil)
	wantEqual(t, nameOf(config), "h1:6,h2:7/d")
	wantEqual(t, []any{config.RuntimeParams["lock_timeout"], config.ConnectTimeout}, []any{"1500", connectTimeout})
}

func TestWithAURLTheFolderIsNotUsed(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), t.TempDir(), Options{DatabaseURL: "mysql://h/d"})
	wantCode(t, err, fault.Misconfigured)
	l := New("/none", Options{DatabaseURL: "mysql://h/d"})
	wantCode(t, l.Ping(t.Context()), fault.Misconfigured)
	wantEqual(t, l.Path(), "PostgreSQL")
}
