package processtree

import (
	"os"
	"runtime/debug"
)

// startGC is the percentage by which mcp-server's heap grows before the collector runs. A session waits for its start,
// and the packages of libraries allocate 4 MB when they are initialised: with Go's 100 a collection takes an eighth of
// the processor time. GOGC in the environment is kept.
const startGC = 200

// This package is initialised before the libraries that allocate most, since its name sorts before theirs.
func init() { //nolint:gochecknoinits // main comes after them
	if len(os.Args) > 1 && os.Args[1] == "mcp-server" && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(startGC)
	}
}
