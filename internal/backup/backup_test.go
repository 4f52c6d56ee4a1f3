package backup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/backup"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/store"
)

var errBroken = errors.New("broken")

const key = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"

// source is a database of a few bytes: what a real one holds is the store's matter.
func source() backup.Source {
	return backup.Source{
		Copy: func(_ context.Context, path string) (store.Copied, error) {
			err := os.WriteFile(path, []byte(strings.Repeat("database ", 1000)), 0o600)
			return store.Copied{Schema: 4, Audit: record.AuditReport{Rows: 7, Head: "abc"}}, err
		},
		Key:     func() ([]byte, error) { return []byte(key), nil },
		Version: "test",
		Now:     func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) },
	}
}

func archive(t testing.TB, src backup.Source) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := backup.Write(context.Background(), src, t.TempDir(), &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func names(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func TestWhatIsWrittenComesBack(t *testing.T) {
	for name, test := range map[string]struct {
		key  []byte
		want string
	}{"with a key": {[]byte(key), "claudeops.db mark.key"}, "without a key": {nil, "claudeops.db"}} {
		t.Run(name, func(t *testing.T) {
			src := source()
			src.Key = func() ([]byte, error) { return test.key, nil }
			dir := t.TempDir()
			m, err := backup.Unpack(context.Background(), bytes.NewReader(archive(t, src)), dir)
			if err != nil || m.Rows != 7 || m.Head != "abc" || m.Schema != 4 || m.HoldsKey() != (test.key != nil) {
				t.Fatalf("got %+v, %v", m, err)
			}
			if got := names(t, dir); got != test.want {
				t.Errorf("unpacked %s", got)
			}
			for _, name := range strings.Fields(test.want) {
				info, err := os.Stat(filepath.Join(dir, name))
				if err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%s: %v, %v", name, info.Mode(), err)
				}
			}
		})
	}
}

func TestABackupThatIsCutOffAnywhereIsRefused(t *testing.T) {
	whole := archive(t, source())
	end := bytes.LastIndex(whole, []byte(key[:64])) + len(key)
	for at := 0; at < end; at += 97 {
		_, err := backup.Unpack(context.Background(), bytes.NewReader(whole[:at]), t.TempDir())
		if fault.CodeOf(err) != fault.InvalidArgument {
			t.Fatalf("cut off at %d of %d: %v", at, len(whole), err)
		}
	}
}

func TestABackupInWhichAByteWasAlteredIsRefused(t *testing.T) {
	whole := archive(t, source())
	for _, what := range []string{"database database", key[:20], `"sha256": "`, `"format": "`} {
		altered := bytes.Clone(whole)
		altered[bytes.Index(altered, []byte(what))+len(what)] ^= 1
		_, err := backup.Unpack(context.Background(), bytes.NewReader(altered), t.TempDir())
		if fault.CodeOf(err) != fault.InvalidArgument {
			t.Errorf("altered behind %q: %v", what, err)
		}
	}
}

func TestAnArchiveOfOthersIsRefused(t *testing.T) {
	const database = `{"name":"claudeops.db","size":1,"sha256":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"}`
	manifest := func(files string) *tar.Header {
		return &tar.Header{Name: "manifest.json", Typeflag: tar.TypeReg, PAXRecords: map[string]string{
			"CLAUDEOPS.content": `{"format":"claudeops-backup-v1","files":[` + files + `]}`}}
	}
	plain := func(name string) *tar.Header {
		return &tar.Header{Name: name, Typeflag: tar.TypeReg, PAXRecords: map[string]string{"CLAUDEOPS.content": "x"}}
	}
	link := &tar.Header{Name: "claudeops.db", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}
	for name, headers := range map[string][]*tar.Header{
		"no manifest":             {plain("claudeops.db")},
		"no database":             {manifest("")},
		"a database that lacks":   {manifest(database)},
		"a link for a database":   {manifest(database), link},
		"a way out of the folder": {manifest(strings.Replace(database, "claudeops.db", "../claudeops.db", 1)), plain("../claudeops.db")},
		"another file":            {manifest(database + "," + strings.Replace(database, "claudeops.db", "owners", 1)), plain("claudeops.db"), plain("owners")},
		"one file more":           {manifest(database), plain("claudeops.db"), plain("more")},
		"a key that is none":      {manifest(database + "," + strings.Replace(database, "claudeops.db", "mark.key", 1)), plain("claudeops.db"), plain("mark.key")},
		"another size":            {manifest(strings.Replace(database, `"size":1`, `"size":2`, 1)), plain("claudeops.db")},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			w := tar.NewWriter(&out)
			for _, h := range headers {
				content := h.PAXRecords["CLAUDEOPS.content"]
				h = &tar.Header{Name: h.Name, Typeflag: h.Typeflag, Linkname: h.Linkname, Size: int64(len(content)), Mode: 0o600}
				if err := w.WriteHeader(h); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(w, content); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			outer := t.TempDir()
			folder := filepath.Join(outer, "folder")
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			_, err := backup.Unpack(context.Background(), &out, folder)
			if fault.CodeOf(err) != fault.InvalidArgument || names(t, outer) != "folder" {
				t.Errorf("got %v; beside the folder: %s", err, names(t, outer))
			}
		})
	}
}

func TestAFileIsReplacedOnlyIfThatIsAskedFor(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	path, target := filepath.Join(dir, "b.tar"), filepath.Join(dir, "target")
	for _, step := range []struct {
		name  string
		make  func() error
		force bool
		code  fault.Code
	}{
		{"nothing there", func() error { return nil }, false, ""},
		{"a backup there", func() error { return nil }, false, fault.Conflict},
		{"a backup there, force", func() error { return nil }, true, ""},
		{"a link there", func() error {
			return errors.Join(os.Remove(path), os.WriteFile(target, []byte("kept"), 0o600), os.Symlink(target, path))
		}, false, fault.Conflict},
		{"a link there, force", func() error { return nil }, true, ""},
		{"a folder there, force", func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, true, fault.Conflict},
	} {
		if err := step.make(); err != nil {
			t.Fatal(err)
		}
		_, err := backup.WriteFile(ctx, source(), path, step.force)
		if fault.CodeOf(err) != step.code {
			t.Fatalf("%s: %v", step.name, err)
		}
		info, err := os.Lstat(path)
		if err != nil || step.code == "" && (!info.Mode().IsRegular() || info.Mode().Perm() != 0o600) {
			t.Fatalf("%s: %v, %v", step.name, info.Mode(), err)
		}
	}
	if b, err := os.ReadFile(target); err != nil || string(b) != "kept" {
		t.Errorf("what the link led to is %q, %v", b, err)
	}
}

// fullDisk takes so many bytes and no more.
type fullDisk struct{ left int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if len(b) > d.left {
		return 0, &fs.PathError{Op: "write", Path: "b.tar", Err: syscall.ENOSPC}
	}
	d.left -= len(b)
	return len(b), nil
}

func TestNothingStaysOfABackupThatFails(t *testing.T) {
	broken := func(change func(*backup.Source)) backup.Source {
		src := source()
		change(&src)
		return src
	}
	for name, src := range map[string]backup.Source{
		"no copy": broken(func(s *backup.Source) {
			s.Copy = func(context.Context, string) (store.Copied, error) {
				return store.Copied{}, fault.Wrap(errBroken, fault.Internal, "no")
			}
		}),
		"no key": broken(func(s *backup.Source) {
			s.Key = func() ([]byte, error) { return nil, fault.Wrap(errBroken, fault.Internal, "no") }
		}),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "b.tar")
			if err := os.WriteFile(path, []byte("yesterday's"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := backup.WriteFile(context.Background(), src, path, true); !errors.Is(err, errBroken) {
				t.Errorf("got %v", err)
			}
			if b, err := os.ReadFile(path); err != nil || string(b) != "yesterday's" || names(t, dir) != "b.tar" {
				t.Errorf("left: %s, %q, %v", names(t, dir), b, err)
			}
		})
	}
	size := len(archive(t, source()))
	for left := 0; left < size; left += 500 {
		scratch := t.TempDir()
		_, err := backup.Write(context.Background(), source(), scratch, &fullDisk{left})
		if fault.CodeOf(err) != fault.Internal || !strings.Contains(err.Error(), syscall.ENOSPC.Error()) || names(t, scratch) != "" {
			t.Fatalf("full after %d of %d: %v; left %s", left, size, err, names(t, scratch))
		}
	}
}

func TestABackupEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	whole := archive(t, source())
	cancel()
	if _, err := backup.Unpack(ctx, bytes.NewReader(whole), t.TempDir()); fault.CodeOf(err) != fault.Timeout {
		t.Errorf("Unpack: %v", err)
	}
	if _, err := backup.Write(ctx, source(), t.TempDir(), io.Discard); fault.CodeOf(err) != fault.Timeout {
		t.Errorf("Write: %v", err)
	}
}
