//go:build linux && postgres

package crash

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// copied are the databases of prepared worlds, from which the server makes those of others: that takes less time than
// what was done in them.
var copied struct {
	sync.Mutex
	names []string
}

// newDatabase makes a database for one world, as a copy of another one or as an administrator does, and drops it after
// the test. It returns its URL.
func newDatabase(t *testing.T, from string) string {
	t.Helper()
	name := "claudeops_crash_" + strings.ToLower(rand.Text())
	create(t, name, from)
	t.Cleanup(func() {
		if err := execute("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(os.Getenv(administrator))
	if err != nil {
		t.Fatalf("%s is not a URL", administrator)
	}
	u.Path = "/" + name
	return u.String()
}

func create(t *testing.T, name, from string) {
	t.Helper()
	statement := "CREATE DATABASE " + name
	if from != "" {
		statement += " TEMPLATE " + from + " STRATEGY FILE_COPY"
	}
	if err := execute(statement); err != nil {
		t.Fatal(err)
	}
}

// copyDatabase copies the database of the URL, to which nobody is connected, and returns the name of the copy.
func copyDatabase(t *testing.T, of string) string {
	t.Helper()
	u, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	name := "claudeops_made_" + strings.ToLower(rand.Text())
	create(t, name, strings.TrimPrefix(u.Path, "/"))
	copied.Lock()
	defer copied.Unlock()
	copied.names = append(copied.names, name)
	return name
}

// dropDatabases drops the databases of prepared worlds.
func dropDatabases() {
	for _, name := range copied.names {
		_ = execute("DROP DATABASE " + name) // another run has another name
	}
}

// administrator is the variable with the URL of the server, as its administrator.
const administrator = "CLAUDEOPS_TEST_POSTGRES"

func execute(statement string) error {
	admin := os.Getenv(administrator)
	if admin == "" {
		return errors.New(administrator + " must hold the URL of a PostgreSQL user who may create databases")
	}
	ctx := context.Background() // also in a cleanup, when the context of a test has ended
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

// sharesKilled says that each test that looks at what a killed process left kills one itself: the server must notice
// that.
const sharesKilled = false

// The rounds in which a process is killed at a random moment, for each lane. Those of SQLite are more.
const (
	roundsPerLane = 5
	freshRounds   = 3 // in these the process also makes the records
)

// isTried reports whether a recovery is tried after a kill at a step. Each is tried after each with SQLite. Here the
// locks and transactions are others, so each step is left to several at once, and each other recovery is tried once.
func isTried(step, recovery int) bool {
	const several = 3 // the last recovery
	return recovery == several || recovery == step
}
