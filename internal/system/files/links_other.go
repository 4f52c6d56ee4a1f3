//go:build !unix

package files

import "io/fs"

// HardLinked returns false here: the information does not tell how many names a file has.
func HardLinked(fs.FileInfo) bool { return false }
