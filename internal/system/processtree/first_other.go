//go:build !linux

package processtree

func isFirst() bool { return false }
