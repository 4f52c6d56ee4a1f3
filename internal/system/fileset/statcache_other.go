//go:build !linux

package fileset

// handle is a folder that is open. Only on Linux is there a cheap way to ask about many files without following a link
// out of a folder; elsewhere nothing is recorded, and each plan is made anew of the hashes that are remembered.
type handle struct{}

func openBase(string) (handle, bool) { return handle{}, false }

func (handle) close() {}

func (handle) statFiles(string, string, []string) (StatFolder, bool) { return StatFolder{}, false }

func (StatFolder) isUnchanged(handle, []byte) bool { return false }

type statter struct {
	at      handle
	base    string
	folders []StatFolder
}

func (*statter) tree(string, int) bool { return false }
