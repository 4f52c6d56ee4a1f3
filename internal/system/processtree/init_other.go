//go:build !linux

package processtree

// Init does nothing here: no container's process 1 is of this system.
func Init([]string) (exit int, is bool) { return 0, false }
