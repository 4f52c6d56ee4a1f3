package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Process describes a process for people: one that holds a lock, or one that blocks a newer version.
type Process struct {
	Version string
	Command string // the words of the command, without its arguments; such as "serve"
}

// String returns a text such as "claudeops 0.1.0 serve".
func (p Process) String() string {
	return strings.Join(slices.DeleteFunc([]string{"claudeops", p.Version, p.Command},
		func(s string) bool { return s == "" }), " ")
}

// processesFolder, in the state folder, has a file for each process that uses the database. It is locked for as long as
// the process uses it; a file that can be locked is of one that has ended. It is there to be read: nothing but a
// migration is decided by it.
const processesFolder = "processes"

// user is a process that uses the database, as far as it is known.
type user struct {
	PID     int       `json:"pid"`
	What    string    `json:"what"`             // Process.String, or the name of its program
	Since   time.Time `json:"since,omitzero"`   // when it began to use the database
	Writing time.Time `json:"writing,omitzero"` // when it began to write what it is still writing
}

// String returns a process for people.
func (u user) String() string {
	return fmt.Sprintf("process %d (%s)", u.PID, u.What)
}

// presence is the file of this process. The zero value has none: if it cannot be made it is left out: nothing else
// needs it.
type presence struct {
	mu   sync.Mutex
	file *os.File
	self user
}

// enter makes the file.
func (p *presence) enter(dir string, what Process, now time.Time, name string) {
	folder := filepath.Join(dir, processesFolder)
	err := os.Mkdir(folder, dirMode)
	if err == nil {
		err = os.Chmod(folder, dirMode) // whatever the umask
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return
	}
	file, err := os.OpenFile(filepath.Join(folder, fmt.Sprintf("%d-%s%s", os.Getpid(), name, lockSuffix)),
		os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return
	}
	_ = file.Chmod(fileMode) // likewise
	if locked, err := files.TryLock(file, true); err != nil || !locked {
		_ = errors.Join(file.Close(), os.Remove(file.Name()))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.file, p.self = file, user{PID: os.Getpid(), What: what.String(), Since: now}
	p.write()
}

// write replaces what the file says. Who reads at that moment reads nothing.
func (p *presence) write() {
	text, err := json.Marshal(p.self)
	if err == nil && p.file != nil && p.file.Truncate(0) == nil {
		_, _ = p.file.WriteAt(text, 0) // it is for people, and says too little then
	}
}

// writing notes that this process writes, once that has taken a while, until done is called.
func (p *presence) writing(now func() time.Time) (done func()) {
	const quiet = 500 * time.Millisecond
	began := now()
	note := func(at time.Time) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.self.Writing != at {
			p.self.Writing = at
			p.write()
		}
	}
	timer := time.AfterFunc(quiet, func() { note(began) })
	return func() {
		timer.Stop()
		note(time.Time{})
	}
}

func (p *presence) removePresence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		_ = errors.Join(os.Remove(p.file.Name()), p.file.Close())
		p.file = nil
	}
}

// users returns the processes that have files here, this one among them, and removes those of processes that have
// ended.
func (s stateFolder) users() (out []user) {
	folder := filepath.Join(s.dir, processesFolder)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !strings.HasSuffix(entry.Name(), lockSuffix) {
			continue
		}
		if u, there := readUser(filepath.Join(folder, entry.Name())); there {
			out = append(out, u)
		}
	}
	return out
}

func readUser(path string) (u user, there bool) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return user{}, false
	}
	defer func() { _ = file.Close() }()
	if free, err := files.TryLock(file, false); err != nil || free {
		if free {
			_ = os.Remove(path) // where this fails, the next one tries
		}
		return user{}, false
	}
	const most = 4096
	text := make([]byte, most)
	n, _ := file.ReadAt(text, 0) // the end of the file
	if json.Unmarshal(text[:n], &u) != nil || u.What == "" {
		u.What = "claudeops"
	}
	if u.PID == 0 {
		_, _ = fmt.Sscanf(filepath.Base(path), "%d-", &u.PID)
	}
	return u, true
}

// mayMigrate refuses to change the tables while another process uses them, which is of an older version: it would go on
// with tables that it does not know. One that only looks whether it can use them is gone after a moment.
func (s stateFolder) mayMigrate(ctx context.Context) error {
	const patience, pause = 3 * time.Second, 50 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		var others []string
		known := map[int]bool{os.Getpid(): true}
		for _, u := range s.users() {
			known[u.PID] = true
			others = append(others, u.String())
		}
		for _, u := range openedBy(s.path) {
			if !known[u.PID] {
				others = append(others, u.String())
			}
		}
		switch {
		case len(others) == 0:
			return nil
		case waited >= patience:
			return olderUsers("state folder "+s.dir, others)
		}
		select {
		case <-ctx.Done():
			return fault.From(ctx.Err())
		case <-time.After(pause):
		}
	}
}

// olderUsers returns the refusal to migrate.
func olderUsers(where string, who []string) error {
	const most = 5
	if more := len(who) - most; more > 0 {
		who = append(who[:most:most], fmt.Sprintf("and %d others", more))
	}
	return fault.New(fault.Misconfigured,
		"the records in the %s are of an older claudeops, which still uses them: %s. End it, and run this again; nothing "+
			"was changed",
		where, strings.Join(who, "; "))
}
