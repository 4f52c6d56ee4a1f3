//go:build postgres

package web_test

import (
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/claudeops/claudeops/internal/records/store"
)

// openRecords opens records in an empty schema of the server that e2e/postgres.sh has started.
func openRecords(t testing.TB, dir string, o store.Options) *store.Store {
	t.Helper()
	u, err := url.Parse(os.Getenv("CLAUDEOPS_TEST_POSTGRES"))
	if err != nil || u.Host == "" {
		t.Fatal("CLAUDEOPS_TEST_POSTGRES is not the URL of a server; e2e/postgres.sh starts one and runs a command with it")
	}
	config, err := pgx.ParseConfig(u.String())
	if err != nil {
		t.Fatal(err)
	}
	admin, schema := stdlib.OpenDB(*config), "t_"+strings.ToLower(rand.Text())
	if _, err := admin.ExecContext(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	o.DatabaseURL = u.String()
	s, err := store.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close()
		if _, err := admin.Exec("DROP SCHEMA " + schema + " CASCADE"); err != nil {
			t.Error(err)
		}
		_ = admin.Close()
	})
	return s
}
