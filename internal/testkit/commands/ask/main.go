//go:build unix

// Command ask has a worker run the command, or becomes the program itself (see package commands).
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/claudeops/claudeops/internal/testkit/commands"
)

// main exits as the command does. The workers' sockets are beside this program, the real one is in the folder above.
func main() {
	self, err := os.Executable()
	if err != nil {
		fail(err)
	}
	folder := filepath.Dir(self)
	if !needsProcess() {
		for number := 0; ; number++ {
			socket := commands.Socket(folder, number)
			lock, err := os.Open(commands.Lock(socket))
			if err != nil {
				break // no more workers
			}
			if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil { //nolint:gosec // a descriptor
				_ = lock.Close()
				continue
			}
			code, err := ask(socket)
			if err != nil {
				fail(err)
			}
			os.Exit(code)
		}
	}
	fail(syscall.Exec(filepath.Join(filepath.Dir(folder), "claudeops"), os.Args, os.Environ())) //nolint:gosec // the program
}

// needsProcess reports whether the command starts other processes, ends by a signal, reads settings that Go looks up
// once in a process, or says what the process is.
func needsProcess() bool {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if _, set := os.LookupEnv(name); set {
			return true
		}
	}
	return len(os.Args) < 2 || slices.ContainsFunc(os.Args[1:], func(arg string) bool {
		return slices.Contains([]string{"serve", "mcp-server", "run", "demo", "scripts", "version"}, arg)
	})
}

// ask hands the command over and waits for its exit code.
func ask(socket string) (int, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return 0, err
	}
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: socket}); err != nil {
		return 0, err
	}
	if err := syscall.Sendmsg(fd, []byte{0}, syscall.UnixRights(0, 1, 2), nil, 0); err != nil {
		return 0, err
	}
	command, err := this()
	if err != nil {
		return 0, err
	}
	conn := os.NewFile(uintptr(fd), socket)
	if _, err := conn.Write(command.Encode()); err != nil {
		return 0, err
	}
	code := make([]byte, 1)
	if _, err := conn.Read(code); err != nil {
		return 0, fmt.Errorf("the worker ended: %w", err)
	}
	return int(code[0]), nil
}

// this returns the command of this process.
func this() (commands.Command, error) {
	dir, err := os.Getwd()
	umask := syscall.Umask(0)
	syscall.Umask(umask)
	return commands.Command{Dir: dir, Umask: umask, Args: os.Args, Env: os.Environ()}, err
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "ask:", err)
	os.Exit(70)
}
