package api

import (
	"net/netip"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
)

func TestOneAddressDoesNotTakeThePlacesOfAllOthers(t *testing.T) {
	places := &hookPlaces{by: map[netip.Addr]int{}}
	stranger, forge := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.7")
	var leave []func()
	for range 100 {
		if l, err := places.acquireSlot(stranger); err == nil {
			leave = append(leave, l)
		} else if fault.CodeOf(err) != fault.LimitReached {
			t.Fatal(err)
		}
	}
	if len(leave) != maxHooksEach {
		t.Errorf("one address has %d places", len(leave))
	}
	if _, err := places.acquireSlot(netip.MustParseAddr("2001:db8::2")); err == nil { // the same subscriber
		t.Error("an address of the same network has another place")
	}
	l, err := places.acquireSlot(forge)
	if err != nil {
		t.Fatalf("the forge has no place: %v", err)
	}
	for _, l := range append(leave, l) {
		l()
	}
	if places.all != 0 || len(places.by) != 0 {
		t.Errorf("%d places are taken, of %d addresses", places.all, len(places.by))
	}
}
