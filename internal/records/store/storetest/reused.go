package storetest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/records/store"
)

// Reused lends open stores to one test after another, since opening a store and compiling its statements takes longer
// than most of what is tested. Before a test has a store, its database is what an Image says. The zero value is ready
// for use; it is safe for concurrent use.
type Reused struct {
	template Template
	mu       sync.Mutex
	empty    Image // made with the first store
	idle     []*Lent
}

// maxIdle bounds the stores that wait for a test, since each keeps some memory.
const maxIdle = 32

// Lent is a store for one test. The test must not close it, and nothing may use it after the test.
type Lent struct {
	*store.Store
	Dir   string // the state folder
	now   atomic.Pointer[func() time.Time]
	raw   *sql.DB
	spent atomic.Bool
}

// Spend keeps the store from being lent again: other processes use its folder.
func (l *Lent) Spend() { l.spent.Store(true) }

// IsSpent reports whether Spend was called.
func (l *Lent) IsSpent() bool { return l.spent.Load() }

// Image is the database of a Lent, page by page; nil is one without records.
type Image [][]byte

// Open lends a store whose database is the image, and whose clock is now. The image is one of a Lent of r.
func (r *Reused) Open(t testing.TB, image Image, now func() time.Time) *Lent {
	t.Helper()
	l := r.take()
	if l == nil {
		var err error
		if l, err = r.make(t, now); err != nil {
			t.Fatal(err)
		}
	}
	l.now.Store(&now)
	if image == nil { // it is there since the first was made
		image = r.empty
	}
	if err := l.load(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Counts of refusals are in memory until they are recorded.
		if err := l.Ledger.FlushRepeats(context.Background(), true); err != nil || l.IsSpent() || t.Failed() {
			_ = l.close() // the test is over
			return
		}
		if !r.put(l) {
			_ = l.close() // likewise
		}
	})
	return l
}

// Close closes the stores that no test has, and removes their folders.
func (r *Reused) Close() (err error) {
	for l := r.take(); l != nil; l = r.take() {
		err = errors.Join(err, l.close())
	}
	return err
}

func (l *Lent) close() error {
	return errors.Join(l.Close(), l.raw.Close(), os.RemoveAll(l.Dir))
}

func (r *Reused) take() *Lent {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.idle) == 0 {
		return nil
	}
	l := r.idle[len(r.idle)-1]
	r.idle = r.idle[:len(r.idle)-1]
	return l
}

// put reports whether the store waits for the next test.
func (r *Reused) put(l *Lent) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.idle) >= maxIdle {
		return false
	}
	r.idle = append(r.idle, l)
	return true
}

func (r *Reused) make(t testing.TB, now func() time.Time) (*Lent, error) {
	dir, err := os.MkdirTemp("", "store") // it outlives the test
	if err != nil {
		return nil, err
	}
	r.template.Put(t, dir)
	l := &Lent{Dir: dir}
	l.now.Store(&now)
	l.Store, err = store.Open(t.Context(), dir, store.Options{
		NoSync: true, Now: func() time.Time { return (*l.now.Load())() },
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	address := url.URL{Scheme: "file", Path: filepath.ToSlash(l.Path()),
		RawQuery: "_txlock=immediate&_pragma=synchronous(OFF)&_pragma=busy_timeout(10000)"}
	if l.raw, err = sql.Open("sqlite", address.String()); err != nil {
		return nil, errors.Join(err, l.Close(), os.RemoveAll(dir))
	}
	l.raw.SetMaxOpenConns(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.empty == nil {
		r.empty, err = pages(t.Context(), l.raw)
	}
	return l, err
}

// Image returns what the database holds now, as another process would find it if this one ended.
func (l *Lent) Image(ctx context.Context) (Image, error) { return pages(ctx, l.raw) }

// load makes the database the image. It writes pages, since SQLite then keeps what it has compiled: the tables are the
// same.
func (l *Lent) load(ctx context.Context, image Image) error {
	tx, err := l.raw.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // without effect after a commit
	is, err := pages(ctx, tx)
	if err != nil {
		return err
	}
	for i, page := range image {
		if i < len(is) && bytes.Equal(page, is[i]) {
			continue
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO sqlite_dbpage (pgno, data) VALUES ($1, $2)", i+1, page); err != nil {
			return err
		}
	}
	if len(is) > len(image) { // without data it cuts the file off before the page
		if _, err := tx.ExecContext(ctx, "INSERT INTO sqlite_dbpage (pgno, data) VALUES ($1, NULL)",
			len(image)+1); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// pages reads all pages of the database.
func pages(ctx context.Context, from interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}) (image Image, err error) {
	rows, err := from.QueryContext(ctx, "SELECT data FROM sqlite_dbpage ORDER BY pgno")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var page sql.RawBytes
		if err := rows.Scan(&page); err != nil {
			return nil, err
		}
		image = append(image, slices.Clone(page))
	}
	return image, rows.Err()
}
