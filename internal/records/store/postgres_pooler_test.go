//go:build postgres

package store

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	accounts "os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
)

func TestAPoolerOfSessionsIsAsGoodAsTheServer(t *testing.T) {
	place := throughPgbouncer(t, "session")
	s, other := open(t, place, Options{}), open(t, place, Options{})
	reserve(t, s, proposal("1", "checks/a.md"), 0)
	wantEqual(t, abandoned(t, other), map[string]bool{"1": false})
	var schema, timeout, commit string
	wantEqual(t, readerOf(s).QueryRow("SELECT current_schema(), current_setting('lock_timeout'), "+
		"current_setting('idle_in_transaction_session_timeout')").Scan(&schema, &timeout, &commit), nil)
	if !strings.HasPrefix(schema, "t_") || timeout != "15s" || commit != "2min" {
		t.Errorf("schema %s, lock_timeout %s, idle_in_transaction_session_timeout %s", schema, timeout, commit)
	}
	finish(t, s, "1", opened(1))
}

func TestAPoolerOfTransactionsIsRefusedByItsName(t *testing.T) {
	_, err := openPlace(t.Context(), throughPgbouncer(t, "transaction"), Options{})
	wantCode(t, err, fault.Misconfigured)
	if !strings.Contains(err.Error(), "a pooler in transaction mode") {
		t.Errorf("got %v (%v)", err, errCause(err))
	}
}

// throughPgbouncer is an empty place whose address is that of a pooler of its own.
func throughPgbouncer(t *testing.T, mode string) string {
	t.Helper()
	place := newPlace(t)
	u, err := url.Parse(place)
	if err != nil {
		t.Fatal("the URL cannot be parsed")
	}
	password, _ := u.User.Password()
	dir, port := t.TempDir(), freePort(t)
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // of the folder of all of this test's
		t.Fatal(err)
	}
	users, config := filepath.Join(dir, "users.txt"), filepath.Join(dir, "pgbouncer.ini")
	for path, text := range map[string]string{
		users: fmt.Sprintf("%q %q\n", u.User.Username(), password),
		config: fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\n"+
			"unix_socket_dir =\nauth_type = plain\nauth_file = %s\npool_mode = %s\n", u.Port(), port, users, mode),
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("pgbouncer", "-q", config)
	if os.Getuid() == 0 { // as root it does not start
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: nobody(t)}
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v; e2e/postgres.sh installs pgbouncer", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the kill is its error
	})
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	until(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return changed(t, place, func(u *url.URL) { u.Host = address })
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func nobody(t *testing.T) *syscall.Credential {
	t.Helper()
	u, err := accounts.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
}
