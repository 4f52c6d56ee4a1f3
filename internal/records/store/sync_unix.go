//go:build unix

package store

import (
	"errors"
	"os"
)

// syncDir makes a renaming in the folder last through a loss of power.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
