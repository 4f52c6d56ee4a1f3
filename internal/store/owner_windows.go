package store

// ownFolder finds nothing wrong: files in a folder have the permissions of the folder.
func ownFolder(string) error { return nil }

func isReadOnlyDisk(error) bool { return false }
