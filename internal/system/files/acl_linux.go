package files

import (
	"errors"

	"golang.org/x/sys/unix"
)

// readLists returns the access list of a file or folder, and the one that is given to what is made in a folder. Both
// are empty where the file system has none.
func readLists(path string, folder bool) (access, made accessList, err error) {
	if access, err = readList(path, "system.posix_acl_access"); err != nil || !folder {
		return access, nil, err
	}
	made, err = readList(path, "system.posix_acl_default")
	return access, made, err
}

func readList(path, attribute string) (accessList, error) {
	const most = 64 << 10 // of any attribute; linux/limits.h
	raw := make([]byte, 512)
	n, err := unix.Lgetxattr(path, attribute, raw)
	if errors.Is(err, unix.ERANGE) {
		raw = make([]byte, most)
		n, err = unix.Lgetxattr(path, attribute, raw)
	}
	switch {
	case errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOENT),
		errors.Is(err, unix.ENOSYS):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return parseList(raw[:n])
}
