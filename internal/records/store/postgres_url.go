package store

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claudeops/claudeops/internal/base/fault"
)

const connectTimeout = 10 * time.Second // unless the URL says otherwise (connect_timeout)

// parseURL reads a postgres URL. What it leaves out comes from the environment variables and files that libpq knows
// (PGHOST, ~/.pgpass, ...). No error shows the URL: a part that was not escaped may be the password.
func parseURL(text string, busy time.Duration) (*pgx.ConnConfig, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, fault.New(fault.Misconfigured, "CLAUDEOPS_DATABASE_URL is not a PostgreSQL URL; "+
			"give postgres://user:password@host:5432/database, special characters written as %%XX")
	}
	if strings.Contains(u.EscapedPath()+u.RawQuery, "@") || u.Fragment != "" {
		return nil, fault.New(fault.Misconfigured, "CLAUDEOPS_DATABASE_URL has special characters in its user or password; "+
			"write each of them as %%XX (/ as %%2F, @ as %%40, # as %%23, ? as %%3F)")
	}
	config, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, fault.Wrap(withoutSecrets(err, u), fault.Misconfigured,
			"CLAUDEOPS_DATABASE_URL cannot be used; check its port, its options and the files that it names")
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	for name, value := range sessionSettings(busy) {
		if _, given := config.RuntimeParams[name]; !given {
			config.RuntimeParams[name] = value
		}
	}
	return config, nil
}

// sessionSettings returns the server's settings for each of our connections, unless the URL says otherwise. A machine
// that vanishes must not hold locks for long: the keepalives end its sessions after a minute.
func sessionSettings(busy time.Duration) map[string]string {
	return map[string]string{
		applicationName:                       defaultApplication,
		"lock_timeout":                        strconv.FormatInt(max(busy.Milliseconds(), 1), 10),
		"idle_in_transaction_session_timeout": "120s",
		"synchronous_commit":                  "on",
		"tcp_keepalives_idle":                 "30",
		"tcp_keepalives_interval":             "10",
		"tcp_keepalives_count":                "3",
	}
}

// withoutSecrets returns the reason why the URL u was refused, without the URL; nil if a secret of it is in there
// still.
func withoutSecrets(err error, u *url.URL) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	query := u.Query()
	password, _ := u.User.Password()
	for _, secret := range []string{password, query.Get("password"), query.Get("sslpassword")} {
		if secret != "" && strings.Contains(err.Error(), secret) {
			return nil
		}
	}
	return err
}

// nameOf says which database a connection is to, without its user: host:port/database.
func nameOf(config *pgx.ConnConfig) string {
	host := func(name string, port uint16) string { return net.JoinHostPort(name, strconv.Itoa(int(port))) }
	hosts := []string{host(config.Host, config.Port)}
	for _, f := range config.Fallbacks {
		if h := host(f.Host, f.Port); !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return strings.Join(hosts, ",") + "/" + config.Database
}
