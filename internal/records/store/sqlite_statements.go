package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
)

// maxStatements bounds the compiled statements that a connection keeps. Beyond it, all unused ones are closed.
const maxStatements = 128

// statementKeeper makes connections that keep their statements compiled, since SQLite takes longer to compile most of
// ours than to run them. SQLite itself compiles one again when the schema has changed.
type statementKeeper struct{ driver.Connector }

// sqliteConn lists the interfaces of database/sql that the driver's connections implement.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

func (k statementKeeper) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := k.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	able, ok := conn.(sqliteConn)
	if !ok {
		return conn, nil // slower, and as right
	}
	return &keepingConn{sqliteConn: able, kept: map[string]*keptStatement{}}, nil
}

// keepingConn is a connection with its compiled statements. As any connection, it is used by one goroutine at a time.
type keepingConn struct {
	sqliteConn
	kept map[string]*keptStatement
}

// keptStatement is a compiled statement. It is busy while its rows are read.
type keptStatement struct {
	runner
	busy bool
}

// runner lists the interfaces of database/sql that the driver's statements implement.
type runner interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// QueryContext implements driver.QueryerContext.
func (c *keepingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	s.busy = true
	return &keptRows{rows, s}, nil
}

// ExecContext implements driver.ExecerContext.
func (c *keepingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.sqliteConn.ExecContext(ctx, query, args)
	}
	return s.ExecContext(ctx, args)
}

// Close implements driver.Conn.
func (c *keepingConn) Close() error {
	return errors.Join(c.forget(), c.sqliteConn.Close())
}

// statement returns the compiled statement of a query; nil for one that is not kept, or whose rows are being read.
func (c *keepingConn) statement(ctx context.Context, query string) (*keptStatement, error) {
	if !keepsCompiled(query) {
		return nil, nil
	}
	if s := c.kept[query]; s != nil {
		if s.busy {
			return nil, nil
		}
		return s, nil
	}
	if len(c.kept) >= maxStatements {
		if err := c.forget(); err != nil {
			return nil, err
		}
	}
	made, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s, ok := made.(runner)
	if !ok {
		return nil, made.Close()
	}
	c.kept[query] = &keptStatement{runner: s}
	return c.kept[query], nil
}

// keepsCompiled reports whether a query is one statement that reads or writes rows.
func keepsCompiled(query string) bool {
	if strings.Contains(query, ";") {
		return false
	}
	verb, _, _ := strings.Cut(strings.TrimLeft(query, " \t\n"), " ")
	switch verb {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "WITH":
		return true
	}
	return false
}

// forget closes the unused statements.
func (c *keepingConn) forget() error {
	var errs []error
	for query, s := range c.kept {
		if !s.busy {
			errs = append(errs, s.Close())
			delete(c.kept, query)
		}
	}
	return errors.Join(errs...)
}

// keptRows are rows of a kept statement.
type keptRows struct {
	driver.Rows
	of *keptStatement
}

// Close implements driver.Rows.
func (r *keptRows) Close() error {
	err := r.Rows.Close()
	r.of.busy = false
	return err
}
