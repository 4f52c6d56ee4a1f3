//go:build !linux && !darwin

package files

// Room is not known here.
func Room(string) (free, size uint64, known bool) { return 0, 0, false }
