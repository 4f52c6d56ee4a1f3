package fileset

import (
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// From fewFiles files on, up to atOnce folders are worked in at the same time: most of the time goes by in waiting for
// the file system.
const (
	fewFiles = 32
	atOnce   = 8
)

// eachFile calls f for each index of names, until one fails; that is the error, and no call runs any more when it
// returns. Files of one folder are taken in their order, folders in any; few files all in their order. f must use the
// disk that it is given.
func eachFile(d disk, names []string, f func(d disk, i int) error) error {
	if len(names) < fewFiles {
		for i := range names {
			if err := f(d, i); err != nil {
				return err
			}
		}
		return nil
	}
	folders := byFolder(names)
	var next atomic.Int64
	var failed atomic.Bool
	var workers errgroup.Group
	for range min(atOnce, len(folders)) {
		workers.Go(func() error {
			own := d.forWorker()
			defer own.opened.close()
			for at := next.Add(1) - 1; at < int64(len(folders)); at = next.Add(1) - 1 {
				for _, i := range folders[at] {
					if failed.Load() {
						return nil
					}
					if err := f(own, i); err != nil {
						failed.Store(true)
						return err
					}
				}
			}
			return nil
		})
	}
	return workers.Wait()
}

// byFolder groups the indexes of paths by their folders, in the order of the first of each.
func byFolder(names []string) (out [][]int) {
	at := map[string]int{}
	for i, name := range names {
		dir := filepath.Dir(name)
		group, known := at[dir]
		if !known {
			group = len(out)
			at[dir] = group
			out = append(out, nil)
		}
		out[group] = append(out[group], i)
	}
	return out
}

// forWorker returns the disk with memories of its own, since they are not safe for concurrent use.
func (d disk) forWorker() disk {
	d.opened, d.folders = openBases{}, map[string]string{}
	return d
}
