package backup

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/keyfile"
)

// format names the layout of the archive. Another layout gets another name.
const format = "claudeops-backup-v1"

// Names in the archive.
const (
	manifestName = "manifest.json"
	databaseName = "claudeops.db"
	keyName      = keyfile.Name
)

// Bounds of what is read into memory, in bytes.
const (
	maxManifest = 64 << 10
	maxKey      = 4 << 10
)

// Manifest says what a backup holds.
type Manifest struct {
	Format  string    `json:"format"`
	MadeAt  time.Time `json:"made_at"`
	Version string    `json:"version"` // of the program that made it
	Schema  int64     `json:"schema"`
	Rows    int64     `json:"rows"` // of the audit
	Head    string    `json:"head"` // hash of the last of them; keep it elsewhere and give it to restore as --expect-head
	Files   []File    `json:"files"`
}

// File is one file of a backup.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// HoldsKey reports whether the key of the marks is in the backup.
func (m Manifest) HoldsKey() bool {
	return slices.ContainsFunc(m.Files, func(f File) bool { return f.Name == keyName })
}

// notOne is the refusal of a file that is no whole backup.
func notOne(cause error, why string) error {
	return fault.Wrap(cause, fault.InvalidArgument, "this is no whole backup of claudeops: %s", why)
}

// parseManifest reads a manifest and refuses what Write never writes.
func parseManifest(raw []byte) (m Manifest, err error) {
	if err := json.Unmarshal(raw, &m); err != nil {
		return Manifest{}, notOne(err, "its manifest cannot be read")
	}
	if m.Format != format {
		return Manifest{}, notOne(nil, "its manifest does not say "+format)
	}
	for i, f := range m.Files {
		want := databaseName
		if i > 0 {
			want = keyName
		}
		sum, err := hex.DecodeString(f.SHA256)
		if i > 1 || f.Name != want || f.Size <= 0 || i > 0 && f.Size > maxKey || err != nil || len(sum) != 32 {
			return Manifest{}, notOne(err, "its manifest lists a file that does not belong there")
		}
	}
	if len(m.Files) == 0 {
		return Manifest{}, notOne(nil, "its manifest lists no database")
	}
	return m, nil
}
