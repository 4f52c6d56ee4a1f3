package app

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// UsageError reports a command that was called wrongly, or with a file, folder or address that it cannot use. It is
// printed without a code; the exit code is 2.
type UsageError struct {
	Err      error
	WaitsFor string // as of a fault.Error; the exit code is 5 then
}

// WaitsFor names the condition that an error waits for and that may come true by itself; "" for other errors, and for
// nil.
func WaitsFor(err error) string {
	var usage UsageError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &usage):
		return usage.WaitsFor
	}
	return fault.From(err).WaitsFor
}

// Usage makes a UsageError of what was wrong.
func Usage(err error) error { return UsageError{Err: err} }

// Error implements error.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap gives what was wrong.
func (e UsageError) Unwrap() error { return e.Err }

// cannotListen says what to do about an address at which no server can listen.
func cannotListen(addr string, err error) error {
	var reason *net.OpError
	if errors.As(err, &reason) {
		err = reason.Err
	}
	what, waitsFor := "correct the address", ""
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && (dns.IsTemporary || dns.IsTimeout):
		what, waitsFor = "names cannot be looked up now: choose an address", "a name server"
	case errors.Is(err, syscall.EADDRINUSE):
		waitsFor = "its address, where another program listens"
		what = cmp.Or(holderOf(addr), "another program") + " listens there: end it, or choose another address"
	case errors.Is(err, syscall.EACCES):
		what = "this user may not: choose a port from 1024"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		waitsFor = "its address, which this machine does not have yet"
		what = "this machine has no such address: choose one of its own"
	}
	err = fmt.Errorf("cannot listen on %s (%w); %s with --addr or CLAUDEOPS_ADDR", addr, err, what)
	return UsageError{Err: err, WaitsFor: waitsFor}
}

// holderOf names the process that listens at an address; "" if it cannot be seen.
func holderOf(addr string) string {
	_, text, err := net.SplitHostPort(addr)
	port, portErr := strconv.Atoi(text)
	if err != nil || portErr != nil {
		return ""
	}
	return processtree.Listener(port)
}
