//go:build linux && postgres

package crash

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/claudeops/claudeops/internal/records/store"
)

// template is a database that holds the tables and no records. It is made once: the server copies it in less time than
// it makes the tables anew.
var template struct {
	once sync.Once
	name string
	err  error
}

// makesItsRecords is the test in which the database is as an administrator makes it.
const makesItsRecords = "TestKillNineAtFirstUse"

// newDatabase makes a database for one world, and drops it after the test. It returns its URL.
func newDatabase(t *testing.T) string {
	t.Helper()
	admin := os.Getenv("CLAUDEOPS_TEST_POSTGRES")
	if admin == "" {
		t.Fatal("CLAUDEOPS_TEST_POSTGRES must hold the URL of a PostgreSQL user who may create databases")
	}
	name := "claudeops_crash_" + strings.ToLower(rand.Text())
	if strings.HasPrefix(t.Name(), makesItsRecords) {
		execute(t, admin, "CREATE DATABASE "+name)
	} else {
		template.once.Do(func() {
			template.name = "claudeops_made_" + strings.ToLower(rand.Text())
			execute(t, admin, "CREATE DATABASE "+template.name)
			var s *store.Store
			s, template.err = store.Open(t.Context(), t.TempDir(),
				store.Options{DatabaseURL: ofDatabase(t, admin, template.name)})
			if template.err == nil {
				template.err = s.Close()
			}
		})
		if template.err != nil {
			t.Fatal(template.err)
		}
		execute(t, admin, "CREATE DATABASE "+name+" TEMPLATE "+template.name+" STRATEGY FILE_COPY")
	}
	t.Cleanup(func() { execute(t, admin, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return ofDatabase(t, admin, name)
}

// ofDatabase is the URL of a database of the server.
func ofDatabase(t *testing.T, admin, name string) string {
	t.Helper()
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatal("CLAUDEOPS_TEST_POSTGRES is not a URL")
	}
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

// The rounds in which a process is killed at a random moment, for each lane. Those of SQLite are more.
const (
	roundsPerLane = 8
	freshRounds   = 3 // in these the process also makes the records
)

// isTried reports whether a recovery is tried after a kill at a step. Each is tried after each with SQLite. Here the
// locks and transactions are others, so each step is left to several at once, and each other recovery is tried once.
func isTried(step, recovery int) bool {
	const several = 3 // the last recovery
	return recovery == several || recovery == step
}
