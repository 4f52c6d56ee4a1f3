package processtree

import (
	"os"
	"runtime/debug"
	"strings"
)

// The percentages by which the heap of a command grows before the collector runs: Go's, and ours. Sessions and people
// wait for a command's start, and the packages of libraries allocate 4 MB when they are initialised: with Go's, a
// collection takes an eighth of the processor time.
const (
	usualGC = 100
	startGC = 200
)

// This package is initialised before the libraries that allocate most, since its name sorts before theirs. Another
// percentage than Go's is the operator's word (GOGC), and serve has a pace of its own.
func init() { //nolint:gochecknoinits // main comes after them
	if len(os.Args) < 2 || os.Args[1] == "serve" || strings.HasPrefix(os.Args[1], "-") {
		return
	}
	if given := debug.SetGCPercent(startGC); given != usualGC {
		debug.SetGCPercent(given)
	}
}
