//go:build !unix

package session

import (
	"errors"
	"os"
)

// tryLock needs Unix: without it two sessions could run side by side.
func tryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }
