// This file writes counts with their nouns.

package fault

import "strconv"

// Count returns a count with its noun: "1 file", "12 files", "0 files".
func Count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + more
}

// CountFiles returns a count of files.
func CountFiles(n int) string { return Count(n, "file", "files") }
