package store

import (
	"embed"
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// Where the migrations are. The same number does the same on both.
const (
	sqliteMigrations   = "migrations/sqlite"
	postgresMigrations = "migrations/postgres"
)

// newestVersion is the number of the last migration that this program knows: the digits that its file's name begins
// with.
func newestVersion(dir string) (int64, error) {
	entries, err := migrations.ReadDir(dir) // sorted by name
	if err != nil || len(entries) == 0 {
		return 0, errors.Join(err, fs.ErrNotExist)
	}
	digits, _, _ := strings.Cut(path.Base(entries[len(entries)-1].Name()), "_")
	return strconv.ParseInt(digits, 10, 64)
}
