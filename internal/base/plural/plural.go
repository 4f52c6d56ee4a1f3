// Package plural writes counts with their nouns.
package plural

import "strconv"

// Of returns a count with its noun: "1 file", "12 files", "0 files".
func Of(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + more
}

// Files returns a count of files.
func Files(n int) string { return Of(n, "file", "files") }
