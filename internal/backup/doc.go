// Package backup keeps the records of a state folder in one file, and brings them back.
//
// The file is a tar archive of plain files: manifest.json first, which says what is in it and its SHA-256, then claudeops.db,
// a SQLite database, and mark.key if there is one. The key is a secret: with it, anybody makes marks that Claude Ops takes for
// its own. So the file is for its owner only, and wants to be kept like a password.
package backup
