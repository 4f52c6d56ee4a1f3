//go:build !linux

package processtree

// Conceal needs Linux.
func Conceal() {}
