package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// targets are the targets of an attack.
type targets struct {
	Supervisor int    // a process
	File       int    // a secret file that it holds open
	Abstract   string // a socket that it listens on
	State      string // a folder with a file "secret"
	Secrets    string // a file below a folder that may be read
	Policy     string // a file
	Other      string // the folder of another session
	Own        string // a folder that may be written
	File0      string // where all this is written down
	Port       int    // of a listener that may not be reached; 0 for none
	Key        int    // a key in its session's keyring; 0 for none
	UserKey    int    // a key in its user's keyring; 0 for none
	Memory     int    // System V's shared memory of its own
}

// proc is a file of the supervisor in /proc.
func (t targets) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(t.Supervisor), name)
}

// attacks returns the attacks that a shell may try. Each returns nil if it succeeded.
func attacks() map[string]func(targets) error {
	out := map[string]func(targets) error{
		"environment of the supervisor": func(t targets) error { return reads(t.proc("environ")) },
		"environment by its threads": func(t targets) error {
			return reads(t.proc("task/" + strconv.Itoa(t.Supervisor) + "/environ"))
		},
		"maps of the supervisor":        func(t targets) error { return reads(t.proc("maps")) },
		"memory of the supervisor":      func(t targets) error { return opens(t.proc("mem"), os.O_RDONLY) },
		"open files of the supervisor":  func(t targets) error { return reads(t.proc("fd/" + strconv.Itoa(t.File))) },
		"its root":                      func(t targets) error { return reads(t.proc("root" + t.State + "/secret")) },
		"its program":                   func(t targets) error { return opens(t.proc("exe"), os.O_RDONLY) },
		"its place in the oom order":    func(t targets) error { return opens(t.proc("oom_score_adj"), os.O_WRONLY) },
		"the environment of the reaper": func(targets) error { return reads(fmt.Sprintf("/proc/%d/environ", os.Getppid())) },
		"a signal":                      func(t targets) error { return unix.Kill(t.Supervisor, unix.SIGCONT) },
		"a signal to its thread": func(t targets) error {
			return unix.Tgkill(t.Supervisor, t.Supervisor,
				unix.SIGCONT)
		},
		"a signal to the reaper": func(targets) error { return unix.Kill(os.Getppid(), unix.SIGCONT) },
		"a signal by its pidfd": func(t targets) error {
			fd, err := unix.PidfdOpen(t.Supervisor, 0)
			if err != nil {
				return err
			}
			return unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
		},
		"its files by pidfd": func(t targets) error {
			fd, err := unix.PidfdOpen(t.Supervisor, 0)
			if err != nil {
				return err
			}
			_, err = unix.PidfdGetfd(fd, t.File, 0)
			return err
		},
		"tracing": func(t targets) error {
			if err := unix.PtraceSeize(t.Supervisor); err != nil {
				return err
			}
			return unix.PtraceDetach(t.Supervisor)
		},
		"memory by the system call": func(t targets) error {
			var b [8]byte
			local := []unix.Iovec{{Base: &b[0], Len: 8}}
			_, err := unix.ProcessVMReadv(t.Supervisor, local,
				[]unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&b[0])), Len: 8}}, 0)
			if errors.Is(err, unix.EFAULT) {
				return nil // it was let in, and nothing is at that address
			}
			return err
		},
		"limits of the supervisor": func(t targets) error {
			var now unix.Rlimit
			if err := unix.Prlimit(t.Supervisor, unix.RLIMIT_CORE, nil, &now); err != nil {
				return err
			}
			return unix.Prlimit(t.Supervisor, unix.RLIMIT_CORE, &now, nil)
		},
		"an abstract socket": func(t targets) error {
			c, err := net.DialTimeout("unix", "@"+t.Abstract, 5*time.Second)
			if err == nil {
				_ = c.Close()
			}
			return err
		},
	}
	maps.Copy(out, fileAttacks())
	maps.Copy(out, kernelAttacks())
	maps.Copy(out, netAttacks())
	return out
}

// fileAttacks are those on files.
func fileAttacks() map[string]func(targets) error {
	return map[string]func(targets) error{
		"the state":               func(t targets) error { return reads(t.State + "/secret") },
		"a secret in the system":  func(t targets) error { return reads(t.Secrets) },
		"the folder of the state": func(t targets) error { _, err := os.ReadDir(t.State); return err },
		"writing to the state":    func(t targets) error { return opens(t.State+"/secret", os.O_WRONLY|os.O_APPEND) },
		"a new file in the state": func(t targets) error { return os.WriteFile(t.State+"/new", nil, 0o600) },
		"cutting off":             func(t targets) error { return os.Truncate(t.State+"/cut", 0) },
		"removing":                func(t targets) error { return os.Remove(t.State + "/removed") },
		"moving away":             func(t targets) error { return os.Rename(t.State+"/moved", t.Own+"/moved") },
		"moving over":             func(t targets) error { return os.Rename(t.Own+"/mine", t.State+"/over") },
		"changing modes":          func(t targets) error { return os.Chmod(t.State, 0o700) }, //nolint:gosec // it has the mode
		"changing modes by a link": func(t targets) error {
			if err := os.Symlink(t.State+"/modes", t.Own+"/modes"); err != nil {
				return err
			}
			return os.Chmod(t.Own+"/modes", 0o600)
		},
		"attributes":         func(t targets) error { return unix.Setxattr(t.State+"/secret", "user.x", []byte("x"), 0) },
		"writing the policy": func(t targets) error { return opens(t.Policy, os.O_WRONLY|os.O_APPEND) },
		"another session":    func(t targets) error { return reads(t.Other + "/ticket") },
		"a symbolic link": func(t targets) error {
			if err := os.Symlink(t.State+"/secret", t.Own+"/link"); err != nil {
				return err
			}
			return reads(t.Own + "/link")
		},
		"a hard link": func(t targets) error {
			if err := os.Link(t.State+"/secret", t.Own+"/hard"); err != nil {
				return err
			}
			return reads(t.Own + "/hard")
		},
		"a mount in a namespace of its own": func(t targets) error { return inNamespace(t, "mount over") },
		"the state as root of a namespace":  func(t targets) error { return inNamespace(t, "the state") },
		"a core file": func(targets) error {
			return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20})
		},
		"to be root":      func(targets) error { return becomesRoot() },
		"a helper's user": helpItself,
	}
}

func reads(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	n, err := f.Read(make([]byte, 16))
	if n > 0 {
		return nil
	}
	return fmt.Errorf("nothing read: %w", err)
}

func opens(path string, how int) error {
	f, err := os.OpenFile(path, how, 0)
	if err == nil {
		_ = f.Close()
	}
	return err
}

// becomesRoot tries to.
func becomesRoot() error {
	if os.Geteuid() == 0 {
		return errors.New("it is already")
	}
	return errors.Join(syscall.Setresgid(0, 0, 0), syscall.Setresuid(0, 0, 0))
}

// helpItself asks the helper for another user.
func helpItself(t targets) error {
	text, _ := json.Marshal(entry{
		Path: "/bin/sh", Args: []string{"sh", "-c", "cat " + t.State + "/secret"}, Dir: "/",
		Profile: Profile{Boundary: Boundary{Kind: User}, Account: &Account{UID: os.Getuid() + 1, GID: 1}},
	})
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	_, _ = out.Write(text)
	_ = out.Close()
	cmd := exec.Command("/proc/self/exe") //nolint:noctx // it ends by itself
	cmd.Args = []string{"claudeops", HelperCommand}
	cmd.ExtraFiles = []*os.File{in}
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

// inNamespace runs an attack as root of a new user namespace, with its own mounts.
func inNamespace(t targets, name string) error {
	cmd := exec.Command("/proc/self/exe") //nolint:noctx // it ends by itself
	cmd.Args = []string{"attack", "attack-one", t.File0, name}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

func readTargets(file string) (t targets) {
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(text, &t); err != nil {
		panic(err)
	}
	return t
}

// attackAll tries everything and prints, one line each, what came of it.
func attackAll(file string) int {
	t := readTargets(file)
	for name, attack := range attacks() {
		result := "done"
		if err := attack(t); err != nil {
			result = "refused: " + strings.Join(strings.Fields(err.Error()), " ")
		}
		fmt.Printf("%s\t%s\n", name, result)
	}
	return 0
}

// attackOne tries one thing.
func attackOne(file, name string) int {
	t := readTargets(file)
	var err error
	switch name {
	case "mount over":
		err = unix.Mount("/", "/mnt", "", unix.MS_BIND|unix.MS_REC, "")
		if err == nil {
			err = reads("/mnt" + t.State + "/secret")
		}
	default:
		err = attacks()[name](t)
	}
	if err != nil {
		fmt.Print(err)
		return 1
	}
	return 0
}
