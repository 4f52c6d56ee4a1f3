package local

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/system/files"
)

// workspacePrefix begins the name of each workspace's folder.
const workspacePrefix = "claudeops-git-"

// forgottenAfter is the age at which a workspace counts as abandoned: none of our commands runs nearly as long.
const forgottenAfter = 24 * time.Hour

// removeForgotten removes the workspaces of processes that were killed, where the folders are this user's.
func removeForgotten(temp string, now time.Time) {
	if temp == "" {
		temp = os.TempDir()
	}
	folder, err := files.OpenDir(temp)
	if err != nil {
		return // as below
	}
	defer func() { _ = folder.Close() }()
	entries, _, err := folder.Entries(".", maxEntries)
	if err != nil {
		return // no workspace can be made there either, and that says why
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), workspacePrefix) {
			continue
		}
		info, err := entry.Info()
		if err == nil && info.IsDir() && isOurs(info) && now.Sub(info.ModTime()) > forgottenAfter {
			// where this fails, the system's own cleaning is left
			_ = files.Temporary{Path: filepath.Join(temp, entry.Name())}.Remove()
		}
	}
}
