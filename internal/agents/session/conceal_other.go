//go:build !linux

package session

// Conceal needs Linux.
func Conceal() {}
