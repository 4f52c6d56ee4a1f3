package connect

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

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
		return "", fmt.Errorf("the ticket %s is no file of at most %d bytes", file, MaxHello)
	}
	text, err := os.ReadFile(file) // #nosec G304: the user who starts the program names it
	if err != nil {
		return "", fmt.Errorf("the ticket cannot be read: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
