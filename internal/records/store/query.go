package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// queryRows calls scan for each row of a query.
func queryRows(ctx context.Context, tx *sql.Tx, scan func(*sql.Rows) error, query string, args ...any) (err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// selectRows returns what scan reads of each row of a query.
func selectRows[T any](
	ctx context.Context, tx *sql.Tx, scan func(*sql.Rows, *T) error, query string, args ...any,
) (out []T, err error) {
	err = queryRows(ctx, tx, func(rows *sql.Rows) error {
		var one T
		if err := scan(rows, &one); err != nil {
			return err
		}
		out = append(out, one)
		return nil
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// selectOf is selectRows in a transaction of its own.
func selectOf[T any](
	ctx context.Context, d *database, scan func(*sql.Rows, *T) error, query string, args ...any,
) (out []T, err error) {
	err = d.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		out, err = selectRows(ctx, tx, scan, query, args...)
		return err
	})
	return out, err
}

// scanText reads a column of text.
func scanText(rows *sql.Rows, out *string) error { return rows.Scan((*text)(out)) }

// changesOne reports whether a statement has changed a row.
func changesOne(result sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// dollar returns the placeholder of an argument.
func dollar(n int) string { return "$" + strconv.Itoa(n) }

// placeholders returns "$from, ..., $to".
func placeholders(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		if i > from {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", i)
	}
	return b.String()
}

// conditions are the conditions on rows, and the arguments of the query.
type conditions struct {
	texts []string
	args  []any
}

// add adds a condition, in which %d stands for the number of the argument.
func (c *conditions) add(condition string, value any) {
	c.args = append(c.args, value)
	c.texts = append(c.texts, fmt.Sprintf(condition, len(c.args)))
}

// equals adds a condition about a word, unless that is empty.
func (c *conditions) equals(condition, word string) {
	if word != "" {
		c.add(condition, text(bound(word, maxWord)))
	}
}

// where returns the conditions after WHERE.
func (c *conditions) where() string { return strings.Join(c.texts, " AND ") }

// page adds the size of a page, and returns its argument's number.
func (c *conditions) page(limit, usual, most int) int {
	if limit <= 0 {
		limit = usual
	}
	c.args = append(c.args, min(limit, most))
	return len(c.args)
}
