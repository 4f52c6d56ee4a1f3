package files

import (
	"errors"
	"os"
)

// fewFiles is the number of files that a Together syncs one by one. A sync of a file system waits for what other
// programs have written there, too, so that it pays for many files alone.
const fewFiles = 32

// Together puts files that are written together on the disk. The first 32 are synced one by one; the others at once by
// Flush, where the system can sync a whole file system, as Linux does. The zero value is ready; nil syncs each file.
// It is not safe for concurrent use.
type Together struct {
	synced  int
	systems map[uint64]*os.File // a file of each file system that Flush syncs
}

// Sync puts a file or a folder on the disk, now or with Flush; later reports which.
func (t *Together) Sync(f *os.File) (later bool, err error) {
	if t == nil {
		return false, f.Sync()
	}
	if t.synced < fewFiles {
		t.synced++
		return false, f.Sync()
	}
	if t.putOff(f) {
		return true, nil
	}
	return false, f.Sync()
}

// Flush puts on the disk what Sync has put off. After an error nothing is known to be there.
func (t *Together) Flush() (err error) {
	for _, f := range t.systems {
		err = errors.Join(err, syncFileSystem(f), f.Close())
	}
	t.systems = nil
	return err
}
