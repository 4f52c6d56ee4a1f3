//go:build !unix

package files

import "os"

// syncFolder is nothing here: folders cannot be synced.
func syncFolder(*os.Root, string) error { return nil }
