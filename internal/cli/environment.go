package cli

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"

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

// load returns the contents of the file. A file that was not named explicitly may be missing.
func (f *environmentFile) load(path string, named bool) (map[string]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.read || f.path != path {
		f.read, f.path = true, path
		f.values, f.err = readEnvironmentFile(path, named)
	}
	return f.values, f.err
}

func readEnvironmentFile(path string, named bool) (values map[string]string, err error) {
	if path != "" {
		values, err = config.ReadEnvironmentFile(path)
	}
	if !named && errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return values, err
}

// said returns a variable by its flag or of the environment, without the environment file.
func (a *commandLine) said(name string) string {
	if flag := a.flags[name]; flag != nil && *flag != "" {
		return *flag
	}
	value, _ := a.process(name)
	return value
}

// sources returns the places that settings come from, the strongest first: flags, the environment, the environment file
// as it was when the command began.
func (a *commandLine) sources() config.Sources {
	values := map[string]string{}
	if a.file != nil {
		values, _ = a.file.load(a.environmentPath(a.process)) // checkEnvironmentFile says why it cannot be read
	}
	return a.sourcesWith(values)
}

// freshSources returns sources with the present environment file.
func (a *commandLine) freshSources() (config.Sources, error) {
	if a.file == nil {
		return a.sources(), nil
	}
	values, err := readEnvironmentFile(a.environmentPath(a.process))
	return a.sourcesWith(values), err
}

// sourcesWith returns the sources where the environment file holds the values.
func (a *commandLine) sourcesWith(values map[string]string) config.Sources {
	out := config.Sources{{Name: "the command line", Lookup: func(name string) (string, bool) {
		if flag := a.flags[name]; flag != nil && *flag != "" {
			return *flag, true
		}
		return "", false
	}}}
	if a.process == nil { // of tests
		return append(out, config.Environment(a.lookup)...)
	}
	out = append(out, config.Environment(a.process)...)
	if a.file == nil {
		return out
	}
	path, _ := a.environmentPath(a.process)
	return append(out, config.Source{Name: "the environment file " + path, Lookup: func(name string) (string, bool) {
		value, is := values[name]
		return value, is
	}})
}

// withFile has lookup read the operator's environment file for what the environment lacks.
func (a *commandLine) withFile() func(string) (string, bool) {
	return func(name string) (string, bool) { return a.sources()[1:].Lookup(name) }
}

func (a *commandLine) environmentPath(lookup func(string) (string, bool)) (path string, named bool) {
	if a.envFile != "" {
		return a.envFile, true
	}
	return config.EnvironmentFile(lookup), false
}

// checkEnvironmentFile refuses every command while the environment file cannot be used: unreadable settings are not
// replaced by others.
func (a *commandLine) checkEnvironmentFile() error {
	if a.file == nil || a.cmd.Name() == initName { // init writes the file
		return nil
	}
	if _, err := a.file.load(a.environmentPath(a.process)); err != nil {
		return app.Usage(err)
	}
	return nil
}

// checkSecretFiles refuses every command that has settings while the file of a secret is there and cannot be read: with
// another database or another key it would do other things than the operator wants.
func (a *commandLine) checkSecretFiles() error {
	if slices.Contains([]string{initName, "version"}, a.cmd.Name()) || a.cmd.HasParent() &&
		a.cmd.Parent().Name() == "completion" {
		return nil
	}
	if unreadable := config.UnreadableFiles(a.sources(), forges.All()); len(unreadable) > 0 {
		return app.Usage(errors.New(strings.Join(unreadable, "\n")))
	}
	return nil
}
