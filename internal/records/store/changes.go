package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
)

// Changes tells whether anything has been recorded, and holds it still.
type Changes struct{ db *database }

// Version returns a text that changes whenever something was recorded, by whatever process. known is false where that
// is not known without reading: with PostgreSQL, or while the database cannot be read.
func (c *Changes) Version(ctx context.Context) (version string, known bool) {
	conn, err := c.db.open(ctx)
	if err != nil {
		return "", false
	}
	e, ok := conn.engine.(*sqliteEngine)
	if !ok {
		return "", false
	}
	return e.changes.version(ctx, e)
}

// View runs fn with a context in which all parts of the store read the same view of the records: what fn makes of them
// belongs together, and costs one transaction. Its reads follow one another; what it writes it does not read.
func (c *Changes) View(ctx context.Context, fn func(context.Context) error) error {
	return c.db.view(ctx, fn)
}

// changeCounter asks SQLite on a connection of its own whether others have committed, which costs a look at memory that
// the processes share. The number counts for this connection only, so that generation tells connections apart.
type changeCounter struct {
	mu         sync.Mutex
	pool       *sql.DB
	statement  *sql.Stmt // nil before the first question, and after a failure
	conn       *sql.Conn
	generation int
}

func (c *changeCounter) version(ctx context.Context, e *sqliteEngine) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.checkNotReplaced() != nil {
		return "", false
	}
	if c.statement == nil && c.connect(ctx, e) != nil {
		return "", false
	}
	var number int64
	if err := c.statement.QueryRowContext(ctx).Scan(&number); err != nil {
		c.disconnect()
		return "", false
	}
	return fmt.Sprintf("%d:%d", c.generation, number), true
}

func (c *changeCounter) connect(ctx context.Context, e *sqliteEngine) (err error) {
	if c.pool == nil {
		if c.pool, err = openPool(e.path, busySlice, false); err != nil {
			return err
		}
	}
	if c.conn, err = c.pool.Conn(ctx); err != nil {
		return err
	}
	c.generation++
	if c.statement, err = c.conn.PrepareContext(ctx, "PRAGMA data_version"); err != nil {
		c.disconnect()
	}
	return err
}

// disconnect gives the connection up. The next question makes a new one.
func (c *changeCounter) disconnect() {
	if c.statement != nil {
		_ = c.statement.Close() // its connection is given up
	}
	if c.conn != nil {
		_ = c.conn.Close() // likewise
	}
	c.statement, c.conn = nil, nil
	if c.pool != nil {
		_ = c.pool.Close()
	}
	c.pool = nil
}

func (c *changeCounter) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disconnect()
}
