package files

import "io/fs"

// ownerOf knows nothing here: access is decided by lists that modes do not tell.
func ownerOf(fs.FileInfo) (uid, gid int, known bool) { return 0, 0, false }
