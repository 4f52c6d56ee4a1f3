package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
		"modes of what it may read": func(t targets) error {
			return withFile(t.File0, func(f *os.File) error { return f.Chmod(0o644) })
		},
		"attributes of what it may read": func(t targets) error {
			return withFile(t.File0, func(f *os.File) error { return unix.Fsetxattr(int(f.Fd()), "user.x", []byte("x"), 0) })
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

// withFile opens a file for reading.
func withFile(path string, do func(f *os.File) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return do(f)
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
	text, _ := json.Marshal(helperInput{
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
	case in32Bits:
		err = callsIn32Bits()
	default:
		err = attacks()[name](t)
	}
	if err != nil {
		fmt.Print(err)
		return 1
	}
	return 0
}

// kernelAttacks are those by system calls that no rule of files, users or ports sees.
func kernelAttacks() map[string]func(targets) error {
	out := map[string]func(targets) error{
		"memory that stays": func(targets) error {
			id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
			if err == nil {
				_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
			}
			return err
		},
		"semaphores that stay": func(targets) error { return removed(unix.SYS_SEMGET, unix.SYS_SEMCTL, 1) },
		"messages that stay":   func(targets) error { return removed(unix.SYS_MSGGET, unix.SYS_MSGCTL, 0) },
		"a queue that stays":   queueStays,
		"memory of the operator": func(t targets) error {
			at, err := unix.SysvShmAttach(t.Memory, 0, unix.SHM_RDONLY)
			if err == nil {
				_ = unix.SysvShmDetach(at)
			}
			return err
		},
		"a key of the operator": func(t targets) error { return readKey(t.Key) },
		"a key of the operator's user": func(t targets) error {
			const ofUser, ofSession = -4, -3 // KEY_SPEC_USER_KEYRING, KEY_SPEC_SESSION_KEYRING
			if _, _, e := unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_LINK, special(ofUser), special(ofSession)); e != 0 {
				return e
			}
			return readKey(t.UserKey)
		},
		"a ring of requests": func(targets) error {
			var params [120]byte
			fd, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])), 0)
			if e != 0 {
				return e
			}
			return unix.Close(int(fd))
		},
		"a socket to the hypervisor": func(targets) error { return makesSocket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
		"a socket of the kernel's ciphers": func(targets) error {
			return makesSocket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)
		},
		"news of the kernel": func(targets) error {
			return makesSocket(unix.AF_NETLINK, unix.SOCK_DGRAM,
				unix.NETLINK_KOBJECT_UEVENT)
		},
	}
	if runtime.GOARCH == "amd64" {
		out[in32Bits] = callsIn32BitsInAChild
	}
	return out
}

// netAttacks are ways to a port that may not be reached, and to be reached from outside.
func netAttacks() map[string]func(targets) error {
	out := listenAttacks()
	maps.Copy(out, map[string]func(targets) error{
		"a port":                   func(t targets) error { return connects(t, unix.AF_INET, 0) },
		"a port by MPTCP":          func(t targets) error { return connects(t, unix.AF_INET, unix.IPPROTO_MPTCP) },
		"a port by MPTCP and IPv6": func(t targets) error { return connects(t, unix.AF_INET6, unix.IPPROTO_MPTCP) },
		"a port by fast open": func(t targets) error {
			return sends(t, func(fd int, to *unix.SockaddrInet4) error {
				return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN,
					to)
			})
		},
		"a port by fast open of a message": func(t targets) error {
			return sends(t, func(fd int, to *unix.SockaddrInet4) error {
				return unix.Sendmsg(fd, []byte("x"), nil, to, unix.MSG_FASTOPEN)
			})
		},
		"a port by fast open of messages": func(t targets) error {
			return sends(t, func(fd int, to *unix.SockaddrInet4) error {
				text := []byte("x")
				part := unix.Iovec{Base: &text[0], Len: 1}
				name := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: uint16(to.Port)<<8 | uint16(to.Port)>>8, Addr: to.Addr}
				var one struct {
					head unix.Msghdr
					sent uint32
					_    uint32
				}
				one.head = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&name)), Namelen: unix.SizeofSockaddrInet4, Iov: &part}
				one.head.SetIovlen(1)
				_, _, e := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&one)), 1, unix.MSG_FASTOPEN, 0, 0)
				if e != 0 {
					return e
				}
				return nil
			})
		},
		"a port by fast open that was asked for before": func(t targets) error {
			return sends(t, func(fd int, to *unix.SockaddrInet4) error {
				if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1); err != nil {
					return err
				}
				if err := unix.Connect(fd, to); err != nil {
					return err
				}
				_, err := unix.Write(fd, []byte("x"))
				return err
			})
		},
		"a port by UDP": func(t targets) error {
			if t.Port == 0 {
				return errNoPort
			}
			c, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: t.Port})
			if err == nil {
				_ = c.Close()
			}
			return err
		},
		"a port once another connection was dissolved": func(t targets) error {
			return sends(t, func(fd int, to *unix.SockaddrInet4) error {
				allowed := &unix.SockaddrInet4{Port: 9, Addr: to.Addr}
				if err := unix.Connect(fd, allowed); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
					return err
				}
				if err := unspecified(unix.SYS_CONNECT, fd, to); err != nil {
					return err
				}
				return unix.Connect(fd, to)
			})
		},
	})
	return out
}

// listenAttacks make a port that programs outside can connect to. Landlock asks about bind(2) alone.
func listenAttacks() map[string]func(targets) error {
	prepared := func(family int, prepare func(fd int) error) func(targets) error {
		return func(t targets) error {
			if t.Port == 0 {
				return errNoPort
			}
			fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Close(fd) }()
			if err := prepare(fd); err != nil {
				return err
			}
			return unix.Listen(fd, 1)
		}
	}
	nothing := func(int) error { return nil }
	loopback := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	anywhere := &unix.SockaddrInet4{}
	return map[string]func(targets) error{
		"listening without a bind":          prepared(unix.AF_INET, nothing),
		"listening without a bind, on IPv6": prepared(unix.AF_INET6, nothing),
		"listening after a bind":            prepared(unix.AF_INET, func(fd int) error { return unix.Bind(fd, loopback) }),
		"listening after a bind of no family": prepared(unix.AF_INET, func(fd int) error {
			return unspecified(unix.SYS_BIND, fd, anywhere)
		}),
		"listening after a connect of no family": prepared(unix.AF_INET, func(fd int) error {
			return unspecified(unix.SYS_CONNECT, fd, loopback)
		}),
		"listening after a datagram": prepared(unix.AF_INET, func(fd int) error {
			if err := unix.Sendto(fd, []byte("x"), unix.MSG_NOSIGNAL, loopback); !errors.Is(err, unix.EPIPE) {
				return fmt.Errorf("sending without a connection: %w", err)
			}
			return nil
		}),
		"accepting on a socket that was handed over": func(t targets) error {
			return accepts(t, func(fd int) error {
				_, _, err := unix.Accept(fd)
				return err
			})
		},
		"accepting with flags on a socket that was handed over": func(t targets) error {
			return accepts(t, func(fd int) error {
				_, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
				return err
			})
		},
		"datagrams from anywhere": func(t targets) error {
			if t.Port == 0 {
				return errNoPort
			}
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Close(fd) }()
			return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: t.Port, Addr: loopback.Addr})
		},
	}
}

// accepts tries to take a connection from a socket that the process got from its parent: its input, which the kernel
// would have to look at first.
func accepts(t targets, accept func(fd int) error) error {
	if t.Port == 0 {
		return errNoPort
	}
	err := accept(0)
	if errors.Is(err, unix.ENOTSOCK) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EAGAIN) {
		return nil // the kernel looked at the socket, so the call was let through
	}
	return err
}

// unspecified makes a call with an address whose family is AF_UNSPEC.
func unspecified(call uintptr, fd int, at *unix.SockaddrInet4) error {
	name := unix.RawSockaddrInet4{Family: unix.AF_UNSPEC, Port: uint16(at.Port)<<8 | uint16(at.Port)>>8, Addr: at.Addr}
	_, _, e := unix.Syscall(call, uintptr(fd), uintptr(unsafe.Pointer(&name)), unix.SizeofSockaddrInet4)
	if e != 0 {
		return e
	}
	return nil
}

var errNoPort = errors.New("there is none")

func connects(t targets, family, protocol int) error {
	if t.Port == 0 {
		return errNoPort
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM, protocol)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	loopback := [4]byte{127, 0, 0, 1}
	if family == unix.AF_INET {
		return unix.Connect(fd, &unix.SockaddrInet4{Port: t.Port, Addr: loopback})
	}
	to := &unix.SockaddrInet6{Port: t.Port, Addr: [16]byte{10: 0xff, 11: 0xff}}
	copy(to.Addr[12:], loopback[:])
	return unix.Connect(fd, to)
}

// sends sends something to the port, with a socket of TCP that is not connected.
func sends(t targets, send func(fd int, to *unix.SockaddrInet4) error) error {
	if t.Port == 0 {
		return errNoPort
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return send(fd, &unix.SockaddrInet4{Port: t.Port, Addr: [4]byte{127, 0, 0, 1}})
}

func makesSocket(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// removed makes something of System V's, and removes it again.
func removed(get, control, most uintptr) error {
	var id uintptr
	var e syscall.Errno
	if get == unix.SYS_SEMGET {
		id, _, e = unix.Syscall(get, unix.IPC_PRIVATE, most, unix.IPC_CREAT|0o600)
	} else {
		id, _, e = unix.Syscall(get, unix.IPC_PRIVATE, unix.IPC_CREAT|0o600, 0)
	}
	if e != 0 {
		return e
	}
	if get == unix.SYS_SEMGET {
		_, _, e = unix.Syscall(control, id, 0, unix.IPC_RMID)
	} else {
		_, _, e = unix.Syscall(control, id, unix.IPC_RMID, 0)
	}
	if e != 0 {
		return e
	}
	return nil
}

func queueStays(targets) error {
	name, err := unix.BytePtrFromString(fmt.Sprintf("claudeops-attack-%d", unix.Getpid()))
	if err != nil {
		return err
	}
	fd, _, e := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_RDWR|unix.O_CREAT, 0o600, 0, 0, 0)
	if e != 0 {
		return e
	}
	_, _, e = unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0)
	if e != 0 {
		return e
	}
	return unix.Close(int(fd))
}

// special is the number of one of a process's own keyrings, as keyctl(2) takes it.
func special(id int) uintptr { return uintptr(id) }

func readKey(id int) error {
	if id == 0 {
		return errors.New("there is none")
	}
	var text [16]byte
	n, _, e := unix.Syscall6(unix.SYS_KEYCTL, unix.KEYCTL_READ, uintptr(id), uintptr(unsafe.Pointer(&text[0])),
		uintptr(len(text)), 0, 0)
	if e != 0 {
		return e
	}
	if n == 0 {
		return errors.New("nothing read")
	}
	return nil
}

// addKey adds a key to a keyring of this process; 0 where there are no keys.
func addKey(keyring int) int {
	id, err := unix.AddKey("user", "claudeops-attack", []byte("secret"), keyring)
	if err != nil {
		return 0
	}
	return id
}

// in32Bits is the attack that may end the program that tries it.
const in32Bits = "a system call of 32 bits"

// callsIn32BitsInAChild tries it in a program of its own: a kernel or a hypervisor without such calls answers with a
// signal. That is a refusal, with the signal's name in the error.
func callsIn32BitsInAChild(t targets) error {
	cmd := exec.Command("/proc/self/exe") //nolint:noctx // it ends by itself
	cmd.Args = []string{"attack", "attack-one", t.File0, in32Bits}
	said, err := cmd.CombinedOutput()
	if err != nil {
		const most = 300 // bytes: the name of a signal stands at the beginning
		return fmt.Errorf("%w: %.*s", err, most, said)
	}
	return nil
}

// callsIn32Bits asks for the id of the process as a program of 32 bits does: mov eax, 20; int 0x80; movsxd rax, eax;
// ret.
func callsIn32Bits() error {
	code := []byte{0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0x48, 0x63, 0xc0, 0xc3}
	page, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	copy(page, code)
	if err := unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		return err
	}
	entry := uintptr(unsafe.Pointer(&page[0]))
	function := uintptr(unsafe.Pointer(&entry))
	call := *(*func() int)(unsafe.Pointer(&function))
	got := call()
	runtime.KeepAlive(&entry)
	if got != unix.Getpid() {
		return syscall.Errno(-got)
	}
	return nil
}
