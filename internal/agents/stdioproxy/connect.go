// Package stdioproxy is the agent's side of the door: it copies MCP messages between a client's standard streams and a
// Claude Ops that runs elsewhere, and holds neither tokens nor rights. The programs claudeops-connect and `claudeops
// mcp-server --connect` are both made of it. It imports the standard library alone, so that the small program stays
// small.
//
// Rights are the door's. What this side sends (Lower) can take some away, and never add any.
package stdioproxy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Version is the version of the handshake.
const Version = 1

// MaxHello bounds a Hello or an Answer as a line, in bytes, its end included.
const MaxHello = 4 << 10

// MaxMessage is the largest message that is kept whole, in bytes; the door takes none that is larger. Longer ones are
// passed on in pieces, so that it is the door that refuses and records them.
const MaxMessage = 4 << 20

// Hello is the first thing that a connector says, as one line of JSON.
type Hello struct {
	Version int    `json:"claudeops"`
	Ticket  string `json:"ticket,omitempty"`
	Lower
}

// Lower are rights that the agent's side gives up for a connection. The zero value gives up none.
type Lower struct {
	Tier     int  `json:"tier,omitempty"` // the highest one; 0 for that of the door
	DryRun   bool `json:"dry_run,omitempty"`
	ReadOnly bool `json:"read_only,omitempty"`
}

// Answer is the door's reply to a Hello, as one line of JSON.
type Answer struct {
	Version int    `json:"claudeops"`
	OK      bool   `json:"ok"`
	Code    string `json:"code,omitempty"` // of docs/reference/codes.md
	Message string `json:"message,omitempty"`
	Retry   bool   `json:"retry,omitempty"` // the same may be accepted later
}

// RefusedError reports that the door answered and refused the connection.
type RefusedError struct {
	Code, Message string
	Retry         bool // the same may be accepted later
}

func (e *RefusedError) Error() string { return fmt.Sprintf("[%s] %s", e.Code, e.Message) }

// Conn is a connection after its handshake: lines of MCP in both directions. Read and Write may be called side by side;
// Close ends both.
type Conn interface {
	io.ReadWriteCloser
	CloseWrite() error // no more is sent; answers still come
}

// Dial connects to an address, unix:PATH. An error that is not a *RefusedError says that nothing answered, or that the
// address is malformed (*usageError).
func Dial(ctx context.Context, address string, hello Hello) (Conn, error) {
	path, found := strings.CutPrefix(address, "unix:")
	if !found || path == "" {
		return nil, &usageError{fmt.Sprintf("%.100q is not an address: it begins with unix:", address)}
	}
	return unix(ctx, path, hello)
}

// TicketName is the file beside a socket that holds its ticket.
const TicketName = "ticket"

// handshakeTime bounds a handshake on this side.
const handshakeTime = 10 * time.Second

// unix returns the transport over a unix socket.
func unix(ctx context.Context, path string, hello Hello) (Conn, error) {
	socket, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	conn, ok := socket.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("a unix socket is of another type"), socket.Close())
	}
	reader, err := greet(conn, hello)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &unixConn{conn, reader}, nil
}

// greet does the handshake. The reader may hold more than the answer already.
func greet(conn net.Conn, hello Hello) (*bufio.Reader, error) {
	if err := conn.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return nil, err
	}
	hello.Version = Version
	line, err := json.Marshal(hello)
	if err != nil {
		return nil, err
	}
	_, wrote := conn.Write(append(line, '\n')) // a door that has no room answers and closes before it reads
	reader := bufio.NewReaderSize(conn, readAhead)
	line, err = reader.ReadSlice('\n')
	if err = errors.Join(wrote, err); len(line) == 0 || len(line) > MaxHello {
		return nil, fmt.Errorf("the door gave no answer: %w", err)
	}
	var answer Answer
	if err := json.Unmarshal(line, &answer); err != nil {
		return nil, fmt.Errorf("the door's answer cannot be read: %w", err)
	}
	if !answer.OK {
		return nil, &RefusedError{Code: answer.Code, Message: answer.Message, Retry: answer.Retry}
	}
	return reader, conn.SetDeadline(time.Time{})
}

// unixConn is a socket of which the answer to the handshake was read.
type unixConn struct {
	*net.UnixConn
	reader *bufio.Reader
}

// Read implements io.Reader.
func (c *unixConn) Read(p []byte) (int, error) { return c.reader.Read(p) }

// ticketFile returns the default path of an address's ticket: beside the socket. "" for other addresses.
func ticketFile(address string) string {
	path, isUnix := strings.CutPrefix(address, "unix:")
	if !isUnix {
		return ""
	}
	return filepath.Join(filepath.Dir(path), TicketName)
}

// ReadTicket reads a ticket from its file, which must be no longer than a Hello.
func ReadTicket(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", fmt.Errorf("the ticket cannot be read: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > MaxHello {
		return "", fmt.Errorf("the ticket %s is not a file of at most %d bytes", file, MaxHello)
	}
	text, err := os.ReadFile(file) // #nosec G304: the user who starts the program names it
	if err != nil {
		return "", fmt.Errorf("the ticket cannot be read: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
