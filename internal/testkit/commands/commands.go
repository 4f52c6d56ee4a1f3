// Package commands lets tests run many command lines of claudeops in a few processes. A start of the program costs more
// than most commands do: the packages of its libraries are initialised, and its rules are compiled.
//
// The program claudeops of this folder is the real one, and with Worker it also runs the commands that the small
// program ask hands over: arguments, environment, folder, umask and standard streams. Tests call ask as claudeops. A
// worker runs one command at a time, because folder and environment belong to the process.
package commands

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// Worker is the first argument of a process that runs the commands of others; the second is its socket.
const Worker = "run-the-commands-of-others"

// Ready is what a worker writes to its standard output once it listens.
const Ready = "ready\n"

// Socket is where a worker listens, in the folder of ask.
func Socket(folder string, number int) string {
	return filepath.Join(folder, fmt.Sprint("worker-", number))
}

// Lock is the file that a command locks to have the worker of the socket for itself.
func Lock(socket string) string { return socket + ".lock" }

// Command is a command line as the system hands it to a process, without the streams.
type Command struct {
	Dir       string
	Umask     int
	Args, Env []string // the first argument is the program's name
}

// Encode writes the length of what follows, and the command.
func (c Command) Encode() []byte {
	parts := append([]string{c.Dir, fmt.Sprint(c.Umask), fmt.Sprint(len(c.Args))}, append(c.Args, c.Env...)...)
	text := strings.Join(parts, "\x00")
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...) //nolint:gosec // shorter than a process's
}

// Decode reads the command.
func Decode(r io.Reader) (c Command, err error) {
	var length uint32
	if err := binary.Read(r, binary.BigEndian, &length); err != nil {
		return c, err
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return c, err
	}
	parts, args := strings.Split(string(text), "\x00"), 0
	if len(parts) < 3 {
		return c, errors.New("the command is not whole")
	}
	if _, err := fmt.Sscan(parts[1]+" "+parts[2], &c.Umask, &args); err != nil {
		return c, err
	}
	c.Dir, parts = parts[0], parts[3:]
	if args > len(parts) {
		return c, errors.New("arguments are missing")
	}
	c.Args, c.Env = parts[:args], parts[args:]
	return c, nil
}
