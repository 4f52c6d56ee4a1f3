//go:build unix

// Command claudeops is the program for tests: it also runs the commands of others (see package commands).
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/claudeops/claudeops/internal/cli"
	"github.com/claudeops/claudeops/internal/testkit/commands"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == commands.Worker {
		fmt.Fprintln(os.Stderr, "worker:", work(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(cli.Main())
}

// work runs commands one after another. It returns only if it cannot go on.
func work(socket string) error {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: socket})
	if err != nil {
		return err
	}
	if err := os.WriteFile(commands.Lock(socket), nil, 0o600); err != nil {
		return err
	}
	fmt.Print(commands.Ready)
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			return err
		}
		if err := serve(conn); err != nil {
			return err
		}
	}
}

// serve runs the command of one connection and answers with its exit code. The command is told to end when the
// connection does.
func serve(conn *net.UnixConn) error {
	defer conn.Close()
	streams, err := receiveStreams(conn)
	if err != nil {
		return err
	}
	defer func() {
		for _, f := range streams {
			_ = f.Close()
		}
	}()
	command, err := commands.Decode(conn)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = conn.Read(make([]byte, 1))
		cancel()
	}()
	if err := become(command); err != nil {
		return err
	}
	code := cli.Run(ctx, command.Args[1:], cli.Streams{In: streams[0], Out: streams[1], Err: streams[2]}, os.LookupEnv)
	if err := os.Chdir("/"); err != nil { // the folder of the command may be removed
		return err
	}
	_, _ = conn.Write([]byte{byte(code)}) //nolint:gosec // exit codes are small; who asked may have gone
	return nil
}

// receiveStreams takes over the standard streams of the process that asks.
func receiveStreams(conn *net.UnixConn) (streams [3]*os.File, err error) {
	control := make([]byte, syscall.CmsgSpace(3*4))
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), control)
	if err != nil {
		return streams, err
	}
	messages, err := syscall.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return streams, fmt.Errorf("%d messages with streams: %w", len(messages), err)
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != len(streams) {
		return streams, fmt.Errorf("%d streams: %w", len(fds), err)
	}
	for i, fd := range fds {
		syscall.CloseOnExec(fd)
		streams[i] = os.NewFile(uintptr(fd), []string{"/dev/stdin", "/dev/stdout", "/dev/stderr"}[i])
	}
	return streams, nil
}

// become gives this process what the system gives a new one.
func become(c commands.Command) error {
	os.Clearenv()
	for _, entry := range c.Env {
		if name, value, ok := strings.Cut(entry, "="); ok {
			if err := os.Setenv(name, value); err != nil {
				return err
			}
		}
	}
	os.Args = c.Args
	syscall.Umask(c.Umask)
	return os.Chdir(c.Dir)
}
