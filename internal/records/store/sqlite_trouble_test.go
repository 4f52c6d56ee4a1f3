//go:build !postgres

package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
)

func TestCallsAfterTheFileIsReplacedAreRefused(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	if err := os.Rename(s.Path(), s.Path()+".old"); err != nil {
		t.Fatal(err)
	}
	err := s.Ledger.Record(context.Background(), attempt("1"), nil)
	wantCode(t, err, fault.Internal)
	if !strings.Contains(err.Error(), "restart claudeops") {
		t.Fatalf("got %v", err)
	}
	wantCode(t, s.Ping(context.Background()), fault.Internal)
}

func TestADiskThatIsFullIsNamed(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	if _, err := writerOf(s).Exec("PRAGMA max_page_count = 1"); err != nil {
		t.Fatal(err)
	}
	var err error
	for i := 0; i < 1000 && err == nil; i++ {
		err = s.Ledger.Record(context.Background(), attempt(fmt.Sprint(i)), nil)
	}
	wantCode(t, err, fault.Internal)
	if !strings.Contains(err.Error(), "is full; free some space") {
		t.Fatalf("got %v", err)
	}
	if got := verify(t, s, ""); !got.OK() {
		t.Fatalf("got %+v", got)
	}
}

func TestDamageFoundLaterAsksForABackup(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	for i := range 200 {
		recordAttempts(t, s, attempt(fmt.Sprint(i)))
	}
	wantEqual(t, s.Check(context.Background()), nil)
	path := s.Path()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	middle := info.Size() * 3 / 4 / 4096 * 4096 // the tables' definitions stay readable
	overwrite(t, path, middle, int(info.Size()-middle))
	s = open(t, filepath.Dir(path), Options{})
	for name, err := range map[string]error{
		"Check":  s.Check(context.Background()),
		"Record": s.Ledger.Record(context.Background(), attempt("x"), nil),
	} {
		wantCode(t, err, fault.Internal)
		const want = "is damaged; run `claudeops audit verify` and restore a backup"
		if !strings.Contains(err.Error(), want) || errCause(err) == nil {
			t.Errorf("%s: %v (cause %v)", name, err, errCause(err))
		}
	}
}
