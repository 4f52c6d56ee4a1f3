package processtree

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Listener names the process that listens on a TCP port of this machine, such as "process 812 (python3)"; "" if it
// cannot be seen. It needs the right to look into that process: other users' processes are seen by root alone.
func Listener(port int) string {
	sockets := listening(port)
	for _, p := range processes() {
		folder := filepath.Join("/proc", strconv.Itoa(p.pid))
		entries, err := os.ReadDir(filepath.Join(folder, "fd"))
		if err != nil {
			continue
		}
		for _, entry := range entries {
			target, err := os.Readlink(filepath.Join(folder, "fd", entry.Name()))
			if err == nil && slices.Contains(sockets, target) {
				name, _ := os.ReadFile(filepath.Join(folder, "comm"))
				return fmt.Sprintf("process %d (%s)", p.pid, strings.TrimSpace(string(name)))
			}
		}
	}
	return ""
}

// listening returns the sockets that listen on a port, as links in /proc/PID/fd name them (proc_net(5)).
func listening(port int) (sockets []string) {
	const (
		local, state, inode = 1, 3, 9 // columns
		listens             = "0A"
	)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			columns := strings.Fields(line)
			if len(columns) > inode && columns[state] == listens &&
				strings.HasSuffix(columns[local], fmt.Sprintf(":%04X", port)) {
				sockets = append(sockets, "socket:["+columns[inode]+"]")
			}
		}
	}
	return sockets
}
