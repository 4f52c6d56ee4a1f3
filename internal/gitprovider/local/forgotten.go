package local

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// workspacePrefix begins the name of each workspace's folder.
const workspacePrefix = "claudeops-git-"

// forgottenAfter is the age at which a workspace belongs to nobody any more: no command of ours lasts nearly as long.
const forgottenAfter = 24 * time.Hour

// removeForgotten removes the workspaces of processes that were killed, where the folders are this user's.
func removeForgotten(temp string, now time.Time) {
	if temp == "" {
		temp = os.TempDir()
	}
	entries, err := os.ReadDir(temp)
	if err != nil {
		return // no workspace can be made there either, and that says why
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), workspacePrefix) {
			continue
		}
		info, err := entry.Info()
		if err == nil && info.IsDir() && isOurs(info) && now.Sub(info.ModTime()) > forgottenAfter {
			_ = os.RemoveAll(filepath.Join(temp, entry.Name())) // where this fails, the system's own cleaning is left
		}
	}
}
