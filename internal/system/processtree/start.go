package processtree

import (
	"os"
	"runtime/debug"
	"strings"
)

// startGC is the percentage by which the heap of a command grows before the collector runs. Sessions and people wait for
// its start, and the packages of libraries allocate 4 MB when they are initialised: with Go's 100 a collection takes an
// eighth of the processor time. GOGC in the environment is kept, and serve has a pace of its own.
const startGC = 200

// This package is initialised before the libraries that allocate most, since its name sorts before theirs.
func init() { //nolint:gochecknoinits // main comes after them
	if len(os.Args) > 1 && os.Args[1] != "serve" && !strings.HasPrefix(os.Args[1], "-") && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(startGC)
	}
}
