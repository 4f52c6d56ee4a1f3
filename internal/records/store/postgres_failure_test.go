package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// These need no server, so they run on every engine.

func TestURLsThatAreNotPostgresAreRefusedWithoutShowingThem(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	for name, test := range map[string]struct{ url, message string }{
		"empty":                   {"", "is not a PostgreSQL URL"},
		"a path":                  {"/var/lib/" + secret, "is not a PostgreSQL URL"},
		"another scheme":          {"mysql://u:" + secret + "@h/d", "is not a PostgreSQL URL"},
		"keywords":                {"host=h user=u password=" + secret, "is not a PostgreSQL URL"},
		"a control character":     {"postgres://u:" + secret + "\x01@h/d", "is not a PostgreSQL URL"},
		"a half escape":           {"postgres://u:%" + secret + "@h/d", "is not a PostgreSQL URL"},
		"a port that is none":     {"postgres://u:" + secret + "@h:port/d", "is not a PostgreSQL URL"},
		"a port that is too high": {"postgres://u:" + secret + "@h:99999/d", "check its port"},
		"a slash in the password": {"postgres://u:12/" + secret + "@h/d", "write each of them as %XX"},
		"a question mark":         {"postgres://u:12?" + secret + "@h/d", "write each of them as %XX"},
		"a hash":                  {"postgres://u:12#" + secret + "@h/d", "write each of them as %XX"},
		"a slash after a word":    {"postgres://u:" + secret + "/x@h/d", "is not a PostgreSQL URL"},
		"an unknown TLS mode": {"postgres://u:" + secret + "@h/d?sslmode=" + secret,
			"check its port, its options"},
		"a certificate that is missing": {"postgres://u:" + secret + "@h/d?sslrootcert=/none", "the files that it names"},
		"a password among the options":  {"postgres://h:99999/d?user=u&password=" + secret, "check its port"},
		"a key's password": {"postgres://h/d?sslmode=require&sslcert=/none&sslkey=/none&sslpassword=" + secret,
			"the files"},
		"a time that is none":            {"postgres://u:" + secret + "@h/d?connect_timeout=" + secret, "its options"},
		"a file as the name of a secret": {"postgres://u:" + secret + "@h/d?sslrootcert=/none/" + secret, "the files"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseURL(test.url, time.Second)
			wantCode(t, err, fault.Misconfigured)
			if !strings.Contains(err.Error(), test.message) || !strings.Contains(err.Error(), "CLAUDEOPS_DATABASE_URL") {
				t.Errorf("the message does not say %q: %v", test.message, err)
			}
			if cause := errCause(err); strings.Contains(err.Error(), secret) ||
				cause != nil && strings.Contains(cause.Error(), secret) {
				t.Errorf("the secret is shown: %v (%v)", err, cause)
			}
		})
	}
}

func TestWhatTheURLSaysIsHeeded(t *testing.T) {
	t.Parallel()
	config, err := parseURL("postgresql://joe:a%2Fb%40c@db.example.org:6543/ops?sslmode=disable&search_path=claudeops"+
		"&lock_timeout=7&connect_timeout=3", 1500*time.Millisecond)
	wantEqual(t, err, nil)
	wantEqual(t, nameOf(config), "db.example.org:6543/ops")
	wantEqual(t, []any{config.User, config.Password, config.ConnectTimeout}, []any{"joe", "a/b@c", 3 * time.Second})
	p := config.RuntimeParams
	wantEqual(t, []string{p["search_path"], p["lock_timeout"], p["application_name"]},
		[]string{"claudeops", "7", "claudeops"})
	config = must.Get(parseURL("postgres://h1:6,h2:7/d?sslmode=prefer", 1500*time.Millisecond))(t)
	wantEqual(t, nameOf(config), "h1:6,h2:7/d")
	wantEqual(t, []any{config.RuntimeParams["lock_timeout"], config.ConnectTimeout}, []any{"1500", connectTimeout})
}

func TestWithAURLTheFolderIsNotUsed(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), t.TempDir(), Options{DatabaseURL: "mysql://h/d"})
	wantCode(t, err, fault.Misconfigured)
	l := New("/none", Options{DatabaseURL: "mysql://h/d"})
	wantCode(t, l.Ping(t.Context()), fault.Misconfigured)
	wantEqual(t, l.Path(), "PostgreSQL")
}

func TestWhatPassesByItselfIsToBeTriedAgainAndWhatDoesNotIsMisconfigured(t *testing.T) {
	t.Parallel()
	config := must.Get(parseURL("postgres://joe:the-password@db.example.org:5433/ops", time.Second))(t)
	e := &postgresEngine{config: config}
	server := func(code string) error {
		return fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code, Message: "as the server has it"})
	}
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	for name, c := range map[string]struct {
		err   error
		code  fault.Code
		again bool
	}{
		"it is stopped":             {server("57P01"), fault.UpstreamError, true},
		"it has crashed":            {server("57P02"), fault.UpstreamError, true},
		"it is started":             {server("57P03"), fault.UpstreamError, true},
		"it has no connection left": {server("53300"), fault.UpstreamError, true},
		"nobody listens":            {dial(syscall.ECONNREFUSED), fault.UpstreamError, true},
		"the network is down":       {dial(syscall.ENETUNREACH), fault.UpstreamError, true},
		"the connection was cut":    {fmt.Errorf("read: %w", syscall.ECONNRESET), fault.UpstreamError, true},
		"the connection has ended":  {io.ErrUnexpectedEOF, fault.UpstreamError, true},
		"another holds the lock":    {server("55P03"), fault.Timeout, true},
		"a name server does not answer": {&net.DNSError{Err: "server misbehaving", IsTemporary: true}, fault.UpstreamError,
			true},
		"another password": {server("28P01"), fault.Misconfigured, false},
		"no such database": {server("3D000"), fault.Misconfigured, false},
		"something else":   {server("XX000"), fault.Internal, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := fault.From(e.asFault(context.Background(), c.err))
			if got.Code != c.code || (got.RetryAfter > 0) != c.again || got.Retryable() != c.again {
				t.Errorf("%v, after %s", got, got.RetryAfter)
			}
			if !strings.Contains(got.Message, "db.example.org:5433/ops") || strings.Contains(got.Message, "the-password") {
				t.Error(got.Message)
			}
		})
	}
}

// A call that has to connect first meets the same.
func TestAServerThatIsBeingStartedIsToBeTriedAgain(t *testing.T) {
	t.Parallel()
	starting := listen(t, "SFATAL\x00VFATAL\x00C57P03\x00Mthe database system is starting up\x00\x00")
	full := listen(t, "SFATAL\x00VFATAL\x00C53300\x00Msorry, too many clients already\x00\x00")
	gone := "127.0.0.1:1" // where nobody listens
	for address, part := range map[string]string{
		starting: "is being stopped or started; try again", full: "has no connection left",
		gone: "cannot be reached; it may be restarting",
	} {
		s := New("", Options{DatabaseURL: "postgres://joe:the-password@" + address + "/ops?sslmode=disable"})
		err := fault.From(s.Ping(t.Context()))
		if err.Code != fault.UpstreamError || err.RetryAfter <= 0 || !strings.Contains(err.Message, address+"/ops "+part) ||
			strings.Contains(err.Message, "the-password") {
			t.Errorf("got %v, after %s", err, err.RetryAfter)
		}
	}
}

// listen answers each connection with an error of a server.
func listen(t *testing.T, refusal string) (address string) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096)) // the startup message
			size := make([]byte, 4)
			binary.BigEndian.PutUint32(size, uint32(len(size)+len(refusal)))
			_, _ = conn.Write([]byte("E" + string(size) + refusal))
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}
