package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/claudeops/claudeops/internal/web/guard"
)

// portAttempts limits how many ports that the system chose are tried until one is free at both loopback addresses.
const portAttempts = 10

// listenFor listens at the configured address.
func listenFor(ctx context.Context, p *Parts) ([]net.Listener, guard.Own, error) {
	listeners, own, err := listen(ctx, p.Cfg.Web.Addr)
	if err != nil {
		return nil, own, cannotListen(p.Cfg.Web.Addr, err)
	}
	if own.Why != "" {
		p.Log.Warn("browsers of this machine have no address of their own", "why", own.Why)
	}
	return listeners, own, nil
}

// listen listens at an address. Names below localhost lead a browser to 127.0.0.1 and to ::1, whichever answers first.
// So where one of the two is listened at, the other is as well: another program there would get the login.
func listen(ctx context.Context, addr string) (all []net.Listener, own guard.Own, err error) {
	for attempt := 1; ; attempt++ {
		first, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
		if err != nil {
			return nil, own, err
		}
		second, own, err := listenBeside(ctx, first.Addr())
		if _, port, _ := net.SplitHostPort(addr); own.Why != "" && port == "0" && attempt < portAttempts {
			err = errors.Join(err, first.Close())
			if err == nil {
				continue
			}
		}
		all = []net.Listener{first}
		if second != nil {
			all = append(all, second)
		}
		return all, own, err
	}
}

// listenBeside listens at the loopback address of the other family, where the first listener leaves it free. On a
// machine without that family no other program can listen there.
func listenBeside(ctx context.Context, at net.Addr) (second net.Listener, own guard.Own, err error) {
	first, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return nil, own, err
	}
	network, other := "tcp6", netip.IPv6Loopback()
	switch addr := first.Addr().Unmap(); {
	case addr == netip.IPv6Unspecified(): // with IPv4, as Go listens
		return nil, guard.Own{Names: true}, nil
	case addr == netip.IPv6Loopback():
		network, other = "tcp4", netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case addr == netip.AddrFrom4([4]byte{127, 0, 0, 1}), addr == netip.IPv4Unspecified():
	case addr.IsLoopback():
		return nil, guard.Own{Why: fmt.Sprintf("Your browser has no address of its own here: names below localhost lead to "+
			"127.0.0.1, and the server listens at %s.", addr)}, nil
	default:
		return nil, own, nil
	}
	beside := net.JoinHostPort(other.String(), strconv.Itoa(int(first.Port())))
	second, err = new(net.ListenConfig).Listen(ctx, network, beside)
	switch {
	case err == nil:
		return second, guard.Own{Names: true}, nil
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT):
		return nil, guard.Own{Names: true}, nil
	}
	return nil, guard.Own{Why: fmt.Sprintf("Your browser has no address of its own here: the server cannot listen at %s, "+
		"where another program may be.", beside)}, nil
}

func closeAll(listeners []net.Listener) (err error) {
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}
