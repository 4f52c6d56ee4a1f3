package cli

import (
	"errors"
	"io/fs"
	"sync"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/settings/config"
)

// environmentFile reads the operator's environment file once for each path. It is safe for concurrent use.
type environmentFile struct {
	mu     sync.Mutex
	read   bool
	path   string
	values map[string]string
	err    error
}

// load returns what the file holds. A file that nobody named may be missing.
func (f *environmentFile) load(path string, named bool) (map[string]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.read || f.path != path {
		f.read, f.path, f.values, f.err = true, path, nil, nil
		if path != "" {
			f.values, f.err = config.ReadEnvironmentFile(path)
		}
		if !named && errors.Is(f.err, fs.ErrNotExist) {
			f.err = nil
		}
	}
	return f.values, f.err
}

// said is a variable by its flag or of the environment, without the environment file.
func (a *commandLine) said(name string) string {
	if flag := a.flags[name]; flag != nil && *flag != "" {
		return *flag
	}
	value, _ := a.process(name)
	return value
}

// withFile has lookup read the operator's environment file for what the environment lacks.
func (a *commandLine) withFile(lookup func(string) (string, bool)) func(string) (string, bool) {
	return config.Or(lookup, func() map[string]string {
		values, err := a.file.load(a.environmentPath(lookup))
		if err != nil { // which checkEnvironmentFile says
			return nil
		}
		return values
	})
}

func (a *commandLine) environmentPath(lookup func(string) (string, bool)) (path string, named bool) {
	if a.envFile != "" {
		return a.envFile, true
	}
	return config.EnvironmentFile(lookup), false
}

// checkEnvironmentFile refuses every command while the environment file cannot be used: settings that nobody can read
// are not replaced by others.
func (a *commandLine) checkEnvironmentFile() error {
	if a.file == nil || a.cmd.Name() == initName { // init writes the file
		return nil
	}
	if _, err := a.file.load(a.environmentPath(a.process)); err != nil {
		return app.Usage(err)
	}
	return nil
}
