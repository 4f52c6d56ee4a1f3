//go:build !linux

package store

// openedBy is known on Linux alone.
func openedBy(string) []user { return nil }

// lockedBy is known on Linux alone.
func lockedBy(string) int { return 0 }

func programOf(int) string { return "unknown" }
