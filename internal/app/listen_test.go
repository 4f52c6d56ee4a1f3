package app

import (
	"net"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/web/guard"
)

// Names below localhost lead a browser to both addresses of loopback, so that a program at the other one would be shown
// its login.
func TestBothAddressesOfLoopbackAreListenedAt(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:0": "[::1]", "[::1]:0": "127.0.0.1", "0.0.0.0:0": "[::1]", ":0": "", "localhost:0": "",
	} {
		all, own, err := listen(t.Context(), addr)
		if err != nil {
			if strings.Contains(addr, "::1") { // a machine without IPv6
				continue
			}
			t.Fatal(err)
		}
		if own != (guard.Own{Names: true}) {
			t.Errorf("%s: %+v", addr, own)
		}
		_, port, _ := net.SplitHostPort(all[0].Addr().String())
		if _, err := net.Listen("tcp", want+":"+port); want != "" && err == nil { //nolint:noctx // it must fail
			t.Errorf("%s: another program may listen at %s", addr, want)
		}
		if err := closeAll(all); err != nil {
			t.Error(err)
		}
	}
}

func TestWhereAnotherProgramHasTheOtherAddressBrowsersAreToldSo(t *testing.T) {
	for first, second := range map[string]string{"[::1]": "127.0.0.1", "127.0.0.1": "[::1]"} {
		taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", first+":0")
		if err != nil {
			continue // a machine without IPv6
		}
		_, port, _ := net.SplitHostPort(taken.Addr().String())
		all, own, err := listen(t.Context(), second+":"+port)
		if err != nil || len(all) != 1 || own.Names || !strings.Contains(own.Why, first+":"+port) {
			t.Errorf("%s: %d listeners, %+v, %v", second, len(all), own, err)
		}
		if err := closeAll(append(all, taken)); err != nil {
			t.Error(err)
		}
	}
	all, own, err := listen(t.Context(), "127.0.0.2:0") // names below localhost do not lead there
	if err == nil && (own.Names || !strings.Contains(own.Why, "listens at 127.0.0.2") || len(all) != 1) {
		t.Errorf("%+v", own)
	}
	if err := closeAll(all); err != nil {
		t.Error(err)
	}
}
