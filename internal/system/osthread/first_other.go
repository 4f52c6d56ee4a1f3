//go:build !linux

package osthread

func isFirst() bool { return false }
