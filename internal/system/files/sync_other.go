//go:build !unix

package files

import "os"

// syncFolder does nothing here: folders cannot be synced.
func syncFolder(*os.Root, string) error { return nil }
