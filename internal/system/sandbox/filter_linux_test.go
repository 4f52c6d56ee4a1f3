//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// asked is a system call as a filter sees it. Another machine's bytes stand the other way round than those of the
// filter's test, which does not matter to it.
type asked struct {
	arch, number uint32
	args         [6]uint32
}

func (a asked) bytes() []byte {
	out := make([]byte, argumentAt+len(a.args)*argumentBytes)
	binary.BigEndian.PutUint32(out[numberAt:], a.number)
	binary.BigEndian.PutUint32(out[archAt:], a.arch)
	for i, arg := range a.args {
		binary.BigEndian.PutUint32(out[argumentAt+i*argumentBytes:], arg)
	}
	return out
}

// A container has a filter of its own, which does not pass for ours.
func TestAnotherFilterDoesNotPassForOurs(t *testing.T) {
	alone := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread, which has the filters, ends with this function
		alone <- func() error {
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				return err
			}
			if err := installFilter([]bpf.Instruction{allow()}); err != nil {
				return err
			}
			var e helperInput
			if err := e.countFilters(); err != nil || !e.counted {
				return errors.Join(errors.New("the kernel does not tell how many filters there are"), err)
			}
			if e.verifyFiltered() == nil {
				return errors.New("the filter of the container passes for ours")
			}
			if err := e.filter(); err != nil {
				return err
			}
			return e.verifyFiltered()
		}()
	}()
	if err := <-alone; err != nil {
		t.Error(err)
	}
}

func TestFiltersAreCountedWhereTheKernelTells(t *testing.T) {
	for name, test := range map[string]struct {
		status  string
		n       int
		counted bool
		bad     bool
	}{
		"none":             {"Name:\tx\nSeccomp:\t0\nSeccomp_filters:\t0\nCpus:\t1\n", 0, true, false},
		"two":              {"Seccomp:\t2\nSeccomp_filters:\t2\n", 2, true, false},
		"before Linux 5.9": {"Seccomp:\t2\nCpus:\t1\n", 0, false, false},
		"not a number":     {"Seccomp_filters:\tmany\n", 0, false, true},
	} {
		n, counted, err := filtersIn(strings.NewReader(test.status))
		if n != test.n || counted != test.counted || (err != nil) != test.bad {
			t.Errorf("%s: got %d, %t, %v", name, n, counted, err)
		}
	}
}

func TestTheFilterRefusesEveryWayPastThePorts(t *testing.T) {
	const fastOpen, cloexec = unix.MSG_FASTOPEN, unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	socket := func(domain, kind, protocol uint32) asked {
		return asked{filterArch, unix.SYS_SOCKET, [6]uint32{domain, kind, protocol}}
	}
	option := func(level, name uint32) asked {
		return asked{filterArch, unix.SYS_SETSOCKOPT, [6]uint32{3, level, name}}
	}
	// The kinds of boundary in which each is let through: any network, the model's port, the model's port without UDP.
	const always, anyNet, withUDP, never = "any model address", "any", "any model", ""
	for name, test := range map[string]struct {
		call asked
		in   string
	}{
		"TCP":                          {socket(unix.AF_INET, unix.SOCK_STREAM|cloexec, 0), always},
		"TCP by its number":            {socket(unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP), always},
		"UDP":                          {socket(unix.AF_INET, unix.SOCK_DGRAM|cloexec, 0), withUDP},
		"UDP by its number":            {socket(unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP), withUDP},
		"MPTCP":                        {socket(unix.AF_INET, unix.SOCK_STREAM|cloexec, unix.IPPROTO_MPTCP), anyNet},
		"MPTCP over IPv6":              {socket(unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_MPTCP), anyNet},
		"SCTP":                         {socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP), anyNet},
		"SCTP by packets":              {socket(unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP), anyNet},
		"DCCP":                         {socket(unix.AF_INET, unix.SOCK_DCCP, 33), anyNet},
		"SMC":                          {socket(unix.AF_INET, unix.SOCK_STREAM, 256), anyNet},
		"UDP-Lite":                     {socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE), anyNet},
		"L2TP":                         {socket(unix.AF_INET, unix.SOCK_DGRAM, 115), anyNet},
		"ping":                         {socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP), anyNet},
		"raw packets":                  {socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW), anyNet},
		"a unix socket":                {socket(unix.AF_UNIX, unix.SOCK_STREAM, 0), always},
		"routes":                       {socket(unix.AF_NETLINK, unix.SOCK_RAW|cloexec, unix.NETLINK_ROUTE), always},
		"netlink otherwise":            {socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT), never},
		"packets":                      {socket(unix.AF_PACKET, unix.SOCK_RAW, 0x300), never},
		"vsock":                        {socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0), never},
		"TIPC":                         {socket(unix.AF_TIPC, unix.SOCK_STREAM, 0), never},
		"RDS":                          {socket(unix.AF_RDS, unix.SOCK_SEQPACKET, 0), never},
		"SMC's own family":             {socket(unix.AF_SMC, unix.SOCK_STREAM, 0), never},
		"XDP":                          {socket(unix.AF_XDP, unix.SOCK_RAW, 0), never},
		"ciphers":                      {socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0), never},
		"Bluetooth":                    {socket(unix.AF_BLUETOOTH, unix.SOCK_STREAM, 3), never},
		"KCM":                          {socket(unix.AF_KCM, unix.SOCK_DGRAM, 0), never},
		"a family that is yet to come": {socket(99, unix.SOCK_STREAM, 0), never},
		"a pair": {asked{filterArch, unix.SYS_SOCKETPAIR, [6]uint32{unix.AF_UNIX, unix.SOCK_STREAM}},
			always},
		"a pair of TIPC": {asked{filterArch, unix.SYS_SOCKETPAIR, [6]uint32{unix.AF_TIPC, unix.SOCK_STREAM}},
			never},
		"sending": {asked{filterArch, unix.SYS_SENDTO, [6]uint32{3: unix.MSG_NOSIGNAL}}, always},
		"sending that opens": {asked{filterArch, unix.SYS_SENDTO, [6]uint32{3: fastOpen | unix.MSG_NOSIGNAL}},
			anyNet},
		"a message":                  {asked{filterArch, unix.SYS_SENDMSG, [6]uint32{2: unix.MSG_NOSIGNAL}}, always},
		"a message that opens":       {asked{filterArch, unix.SYS_SENDMSG, [6]uint32{2: fastOpen}}, anyNet},
		"messages":                   {asked{filterArch, unix.SYS_SENDMMSG, [6]uint32{3: unix.MSG_DONTWAIT}}, always},
		"messages that open":         {asked{filterArch, unix.SYS_SENDMMSG, [6]uint32{3: fastOpen}}, anyNet},
		"an option of TCP":           {option(unix.IPPROTO_TCP, unix.TCP_NODELAY), always},
		"an option of sockets":       {option(unix.SOL_SOCKET, unix.TCP_FASTOPEN_CONNECT), always},
		"fast open by option":        {option(unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT), anyNet},
		"another protocol by option": {option(unix.IPPROTO_TCP, unix.TCP_ULP), anyNet},
		"listening":                  {asked{filterArch, unix.SYS_LISTEN, [6]uint32{3, 16}}, anyNet},
		"accepting":                  {asked{filterArch, unix.SYS_ACCEPT, [6]uint32{3}}, anyNet},
		"accepting with flags":       {asked{filterArch, unix.SYS_ACCEPT4, [6]uint32{3, 0, 0, cloexec}}, anyNet},
		"a ring":                     {asked{filterArch, unix.SYS_IO_URING_SETUP, [6]uint32{}}, never},
		"a key":                      {asked{filterArch, unix.SYS_KEYCTL, [6]uint32{}}, never},
		"asking for a key":           {asked{filterArch, unix.SYS_REQUEST_KEY, [6]uint32{}}, never},
		"shared memory":              {asked{filterArch, unix.SYS_SHMAT, [6]uint32{7}}, never},
		"a queue":                    {asked{filterArch, unix.SYS_MQ_OPEN, [6]uint32{}}, never},
		"a file":                     {asked{filterArch, unix.SYS_OPENAT, [6]uint32{}}, always},
		"another architecture":       {asked{unix.AUDIT_ARCH_I386, unix.SYS_OPENAT, [6]uint32{}}, never},
		"numbers of x32":             {asked{filterArch, otherNumbers | unix.SYS_GETPID, [6]uint32{}}, never},
	} {
		for kind, e := range map[string]helperInput{
			"any": {}, "model": {Profile: Profile{Ports: []uint16{443}}},
			"address": {Profile: Profile{Ports: []uint16{8080}, NoUDP: true}},
		} {
			for _, boundary := range []Kind{User, Landlock} {
				e.Boundary.Kind = boundary
				vm, err := bpf.NewVM(e.filterProgram())
				must.Do(t, err)
				answer, err := vm.Run(test.call.bytes())
				must.Do(t, err)
				let := answer == unix.SECCOMP_RET_ALLOW
				if want := slices.Contains(strings.Fields(test.in), kind); let != want {
					t.Errorf("%s, %s, %s: it is let through: %t, want %t", boundary, kind, name, let, want)
				}
			}
		}
	}
}
