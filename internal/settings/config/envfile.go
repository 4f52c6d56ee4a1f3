package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/system/files"
)

// maxEnvironmentFile bounds an environment file, in bytes.
const maxEnvironmentFile = 64 << 10

// EnvironmentFile returns the operator's environment file that is read unless another one is named:
// $XDG_CONFIG_HOME/claudeops/environment, else ~/.config/claudeops/environment, "" without a home folder.
func EnvironmentFile(lookup func(string) (string, bool)) string {
	if dir, _ := lookup("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "claudeops", "environment")
	}
	if home, _ := lookup("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "claudeops", "environment")
	}
	return ""
}

// ReadEnvironmentFile reads a file of lines NAME=VALUE. Blank lines and lines that begin with # do not count; quotes
// around a whole value are taken off. The error says what to correct: the file is missing (fs.ErrNotExist), has a
// malformed line or a name twice, or is open to other users, though it may hold tokens.
func ReadEnvironmentFile(path string) (map[string]string, error) {
	text, info, err := files.ReadPath(path, maxEnvironmentFile)
	if err != nil {
		return nil, fmt.Errorf("the environment file %s cannot be read: %w", path, reasonOf(err))
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" { // where modes say nothing
		return nil,
			fmt.Errorf("the environment file %s is open to other users (mode %04o) and may hold tokens; run: chmod 600 %s",
				path, info.Mode().Perm(), path)
	}
	values := map[string]string{}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		_, twice := values[name]
		switch {
		case !ok || !isVariable(name):
			return nil, fmt.Errorf("line %d of the environment file %s is not of the form NAME=VALUE", i+1, path)
		case twice:
			return nil, fmt.Errorf("the environment file %s sets %s twice; remove one of the lines", path, name)
		}
		values[name] = unquoted(strings.TrimSpace(value))
	}
	return values, nil
}

// reasonOf returns an error without the path, which the message names already.
func reasonOf(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

func unquoted(value string) string {
	if len(value) < 2 || value[0] != value[len(value)-1] || !slices.Contains([]byte{'\'', '"'}, value[0]) {
		return value
	}
	return value[1 : len(value)-1]
}
