package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// How sessions are called in pg_stat_activity. One of an earlier version has the bare name.
const (
	applicationName    = "application_name"
	defaultApplication = "claudeops"
	maxApplication     = 63 // bytes that the server keeps
)

// applicationOf returns a name such as "claudeops 0.1.0 serve, process 4711 on atlas".
func applicationOf(p Process) string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown machine"
	}
	name := fmt.Sprintf("%s, process %d on %s", p, os.Getpid(), host)
	return name[:min(len(name), maxApplication)]
}

// presenceLock is shared by all sessions that use the tables of this schema, for as long as they do.
const presenceLock = `SELECT pg_advisory_lock_shared($1, '` + versionTable + `'::regclass::oid::int4)`

// presenceID tells that lock from those of writers.
const presenceID = applicationID + 1

// userQuery names the sessions that use the tables of this schema, and those of earlier versions in this database,
// which do not say which schema they use.
const userQuery = `SELECT DISTINCT a.pid, a.application_name, COALESCE(host(a.client_addr), '')
	FROM pg_stat_activity a LEFT JOIN pg_locks l ON l.pid = a.pid AND l.locktype = 'advisory' AND l.granted
		AND l.classid::int8 = $1 AND l.objid = '` + versionTable + `'::regclass::oid AND l.objsubid = 2
	WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND (l.pid IS NOT NULL OR a.application_name = $2) ORDER BY a.pid`

// holderQuery names the session that keeps others from writing: it has the lock of writers, or one on a table that
// every writer changes.
const holderQuery = `SELECT a.pid, a.application_name, COALESCE(host(a.client_addr), ''), COALESCE(EXTRACT(EPOCH FROM a.xact_start), 0)
	FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
	WHERE l.granted AND a.datname = current_database() AND (l.locktype = 'advisory' AND l.classid::int8 = $1 AND l.objid = 'audit'::regclass::oid AND l.objsubid = 2
		OR l.locktype = 'relation' AND l.relation = 'audit'::regclass AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))
	ORDER BY a.xact_start LIMIT 1`

// sessionText returns a session of the server, for people.
func sessionText(pid int, application, client string) string {
	if application == "" {
		application = "a program without a name"
	}
	if client != "" {
		client = " from " + client
	}
	return fmt.Sprintf("session %d of the server (%s%s)", pid, application, client)
}

func (e *postgresEngine) holder(ctx context.Context) (who string, since time.Time, err error) {
	var pid int
	var application, client string
	var began float64
	err = e.reader.QueryRowContext(ctx, holderQuery, applicationID).Scan(&pid, &application, &client, &began)
	if errors.Is(err, sql.ErrNoRows) {
		return "a call on the PostgreSQL database " + e.name() + " that has ended meanwhile", time.Time{}, nil
	}
	if err != nil {
		return "", time.Time{}, e.asFault(ctx, err)
	}
	since = time.UnixMicro(int64(began * float64(time.Second/time.Microsecond)))
	return sessionText(pid, application, client), since, nil
}

// writing does nothing: the server knows which sessions write.
func (e *postgresEngine) writing() (done func()) { return func() {} }

// mayMigrate is stateFolder.mayMigrate for a database.
func (e *postgresEngine) mayMigrate(ctx context.Context, db *sql.DB) error {
	const patience, pause = 3 * time.Second, 50 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		others, err := e.users(ctx, db)
		switch {
		case err != nil:
			return err
		case len(others) == 0:
			return nil
		case waited >= patience:
			return olderUsers("PostgreSQL database "+e.name(), others)
		}
		select {
		case <-ctx.Done():
			return fault.From(ctx.Err())
		case <-time.After(pause):
		}
	}
}

func (e *postgresEngine) users(ctx context.Context, db *sql.DB) (others []string, err error) {
	rows, err := db.QueryContext(ctx, userQuery, presenceID, defaultApplication)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var pid int
		var application, client string
		if err := rows.Scan(&pid, &application, &client); err != nil {
			return nil, err
		}
		others = append(others, sessionText(pid, application, client))
	}
	return others, rows.Err()
}
