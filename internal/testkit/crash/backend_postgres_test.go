//go:build linux && postgres

package crash

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// newDatabase makes a database for one world, and drops it after the test. It returns its URL.
func newDatabase(t *testing.T) string {
	t.Helper()
	admin := os.Getenv("CLAUDEOPS_TEST_POSTGRES")
	if admin == "" {
		t.Fatal("CLAUDEOPS_TEST_POSTGRES must hold the URL of a PostgreSQL user who may create databases")
	}
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatal("CLAUDEOPS_TEST_POSTGRES is not a URL")
	}
	name := "claudeops_crash_" + strings.ToLower(rand.Text())
	execute(t, admin, "CREATE DATABASE "+name)
	t.Cleanup(func() { execute(t, admin, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	u.Path = "/" + name
	return u.String()
}

func execute(t *testing.T, admin, statement string) {
	t.Helper()
	ctx := context.Background() // also in a cleanup, when t.Context() has ended
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatal(err)
	}
}
