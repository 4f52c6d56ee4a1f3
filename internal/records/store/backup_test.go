//go:build !postgres

package store

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestABackupHoldsWhatWasThereWhileOthersWrite(t *testing.T) {
	t.Parallel()
	ctx, place := context.Background(), newPlace(t)
	s := open(t, place, Options{Now: noon})
	l := newAt(place, Options{})
	t.Cleanup(func() { _ = l.Close() })
	recordAttempts(t, s, attempt("1"))
	reserve(t, s, proposal("held", "checks/a.md"), 0)
	write(t, place, "key", "secret")
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		var err error
		for err == nil {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
				err = s.Ledger.Record(ctx, attempt("more"), nil)
			}
		}
		stopped <- err
	}()
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		folder := filepath.Join(dir, name)
		report, copied, err := l.Backup(ctx, folder, "key", "missing")
		wantEqual(t, err, nil)
		wantEqual(t, copied, []string{"key"})
		wantEqual(t, content(t, filepath.Join(folder, "key")), "secret")
		for path, want := range map[string]fs.FileMode{"": fs.ModeDir | 0o700, databaseName: 0o600, "key": 0o600} {
			wantEqual(t, must.Get(os.Stat(filepath.Join(folder, path)))(t).Mode(), want)
		}
		restored := open(t, folder, Options{})
		wantEqual(t, verify(t, restored, report.Head), record.AuditReport{
			Rows: report.Rows, Head: report.Head, HeadSeq: report.Rows, ExpectedSeq: report.Rows,
		})
		wantEqual(t, abandoned(t, restored), map[string]bool{"held": true}) // its holder does not know this copy
		recordAttempts(t, restored, attempt("next"))
	}
	close(stop)
	wantEqual(t, <-stopped, nil)
}

func TestABackupIsNotWrittenOverAnything(t *testing.T) {
	t.Parallel()
	ctx, place := context.Background(), newPlace(t)
	l := newAt(place, Options{})
	t.Cleanup(func() { _ = l.Close() })
	dir := t.TempDir()
	there := write(t, dir, "there", "kept")
	must.Do(t, os.Mkdir(filepath.Join(dir, "running"+partialSuffix), 0o700))
	for path, want := range map[string]fault.Code{
		there: fault.Conflict, filepath.Join(dir, "running"): fault.Conflict,
		filepath.Join(there, "x"): fault.Misconfigured, filepath.Join(dir, "none", "x"): fault.NotFound,
	} {
		_, _, err := l.Backup(ctx, path)
		wantCode(t, err, want)
	}
	wantEqual(t, content(t, there), "kept")
}

func TestABackupOfAnAuditThatIsNotWholeIsRefused(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string][]string{
		"an altered row": append(dropGuards(), "UPDATE audit SET caller = 'x' WHERE seq = 1"),
		"no guards":      dropGuards(),
	} {
		t.Run(name, func(t *testing.T) {
			place := newPlace(t)
			s := open(t, place, Options{})
			recordAttempts(t, s, attempt("1"), attempt("2"))
			mustExec(t, raw(t, s), damage...)
			l := newAt(place, Options{})
			t.Cleanup(func() { _ = l.Close() })
			dir := t.TempDir()
			_, _, err := l.Backup(context.Background(), filepath.Join(dir, "copy"))
			wantCode(t, err, fault.Internal)
			left, err := os.ReadDir(dir)
			wantEqual(t, []any{len(left), err}, []any{0, nil})
		})
	}
}

func content(t testing.TB, path string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(path))(t))
}
