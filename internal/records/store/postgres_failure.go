package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// postgresCause returns causeOther also for errors that are not of PostgreSQL.
func postgresCause(err error) cause {
	switch sqlState(err) {
	case stateUnique:
		return causeUnique
	case stateLockNotAvailable:
		return causeBusy
	case stateIntegrity, stateDataCorrupted, stateIndexCorrupted: // what we append always follows the last row
		return causeCorrupt
	case stateDiskFull:
		return causeFull
	case stateReadOnlyTransaction:
		return causeReadOnly
	case stateQueryCanceled:
		return causeInterrupted
	}
	return causeOther
}

// asFault converts errors to faults whose messages name host, port and database, and user where it helps; the causes
// are the driver's errors, which never hold the password.
func (e *postgresEngine) asFault(ctx context.Context, err error) error {
	var known *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return temporaryFault(err, "the PostgreSQL database %s did not answer in time", e.name())
	case ctx.Err() != nil: // the driver's error is then that of a connection that was cut
		return fault.From(ctx.Err())
	}
	var connect *pgconn.ConnectError
	what, code := e.describe(err), fault.Internal
	switch {
	case isMisconfiguration(err):
		code = fault.Misconfigured
	case isPassing(err):
		code = fault.UpstreamError
	}
	switch {
	case what != "":
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		what = "does not answer; check the server, the network and a pooler between, and try again"
	case isRestart(err):
		what = "is being stopped or started; try again when it is up"
	case errors.As(err, &connect) && code == fault.UpstreamError:
		what = "cannot be reached; it may be restarting: try again, and if that lasts, check that it runs, and host and " +
			"port of CLAUDEOPS_DATABASE_URL"
	case errors.As(err, &connect):
		code = fault.Misconfigured
		what = "cannot be reached; check that it runs, and host, port and TLS options of CLAUDEOPS_DATABASE_URL"
	case code == fault.UpstreamError:
		what = "cannot be reached any more; check the server and the network, and try again"
	default:
		what = "failed; the log has the details"
	}
	if postgresCause(err) == causeBusy {
		return temporaryFault(err, "the PostgreSQL database %s %s", e.name(), what)
	}
	out := fault.Wrap(err, code, "the PostgreSQL database %s %s", e.name(), what)
	if code == fault.UpstreamError {
		out.RetryAfter, out.WaitsFor = retryAfter, waitsForDatabase
	}
	return out
}

// isRestart reports whether the server says that it is being stopped or started.
func isRestart(err error) bool {
	switch sqlState(err) {
	case stateAdminShutdown, stateCrashShutdown, stateCannotConnectNow:
		return true
	}
	return false
}

// isPassing reports whether the very same call may succeed later without anybody's doing: the server restarts, has no
// connection left, does not answer, or the network is down. An unknown host, or a server that does not speak TLS as it
// should, is none of these.
func isPassing(err error) bool {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.IsTemporary || dns.IsTimeout
	}
	return sqlState(err) == stateTooManyConnections || isRestart(err) || lostConnection(err)
}

// isMisconfiguration reports whether the operator has to change the address, the user or the rights that were set up.
func isMisconfiguration(err error) bool {
	switch sqlState(err) {
	case stateInvalidPassword, stateInvalidUser, stateNoDatabase, stateNoSchema, stateNoPrivilege,
		stateProtocol, stateInvalidParameter, stateUndefinedObject, stateDuplicateTable, stateDuplicateObject,
		stateDuplicateFunction, stateReadOnlyTransaction:
		return true
	}
	return false
}

// lostConnection reports whether the error is the end of a connection.
func lostConnection(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, pgconn.ErrConnClosed)
}

// describe returns the predicate of the sentence about an error of the server, or "".
func (e *postgresEngine) describe(err error) string {
	user := e.config.User
	switch sqlState(err) {
	case stateInvalidPassword, stateInvalidUser:
		return fmt.Sprintf("refuses the user %q; check user and password of CLAUDEOPS_DATABASE_URL", user)
	case stateNoDatabase:
		return "does not exist; create it, or correct CLAUDEOPS_DATABASE_URL"
	case stateNoSchema:
		return fmt.Sprintf("has no schema for our tables that the user %q may use; create the one that search_path in "+
			"CLAUDEOPS_DATABASE_URL names, or grant it", user)
	case stateNoPrivilege:
		return fmt.Sprintf("denies the user %q a right that it needs; "+
			"make it the owner of the schema, or grant what docs/explain/records.md lists", user)
	case stateDuplicateTable, stateDuplicateObject, stateDuplicateFunction:
		return "has tables of another program in this schema; give claudeops a schema of its own, " +
			"and name it with search_path in CLAUDEOPS_DATABASE_URL"
	case stateUndefinedTable, stateUndefinedColumn:
		return "lost tables of claudeops while in use; restore a backup, and restart claudeops"
	case stateProtocol, stateInvalidParameter, stateUndefinedObject:
		return "refuses a setting of the connection; check the options of CLAUDEOPS_DATABASE_URL, and a pooler that is " +
			"between. The log has its name"
	case stateTooManyConnections:
		return "has no connection left; raise its max_connections, or stop what uses them"
	}
	switch postgresCause(err) {
	case causeBusy:
		return "stayed locked; stop the program that holds the lock, or try again when it is done"
	case causeCorrupt:
		return "is damaged; run `claudeops audit verify` and restore a backup"
	case causeFull:
		return "has no disk space left; free some space on its server"
	case causeReadOnly:
		return "takes no changes; name the primary server in CLAUDEOPS_DATABASE_URL, " +
			"or target_session_attrs=read-write with all of them"
	}
	return ""
}

// SQLSTATEs that are distinguished; PostgreSQL documentation, appendix A.
const (
	stateReadOnlyTransaction = "25006"
	stateIntegrity           = "23000" // raised by our triggers
	stateUnique              = "23505"
	stateDivisionByZero      = "22012"
	stateProtocol            = "08P01"
	stateInvalidParameter    = "22023"
	stateInvalidPassword     = "28P01"
	stateInvalidUser         = "28000"
	stateNoDatabase          = "3D000"
	stateNoSchema            = "3F000"
	stateNoPrivilege         = "42501"
	stateDuplicateTable      = "42P07"
	stateDuplicateObject     = "42710"
	stateDuplicateFunction   = "42723"
	stateUndefinedTable      = "42P01"
	stateUndefinedObject     = "42704"
	stateUndefinedColumn     = "42703"
	stateDiskFull            = "53100"
	stateTooManyConnections  = "53300"
	stateLockNotAvailable    = "55P03"
	stateQueryCanceled       = "57014"
	stateAdminShutdown       = "57P01"
	stateCrashShutdown       = "57P02"
	stateCannotConnectNow    = "57P03"
	stateDataCorrupted       = "XX001"
	stateIndexCorrupted      = "XX002"
)

// sqlState returns the SQLSTATE of an error of the server, or "".
func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
