//go:build !linux && !darwin

package gateway

import "net"

// credentials returns nothing: they are not known here.
func credentials(net.Conn) (Peer, error) { return Peer{}, nil }
