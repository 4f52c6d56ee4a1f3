package git

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const nowhere = "/nonexistent"

// always returns the environment of every call, whatever the Runner and the call add: no variable of this process, of a
// repository's owner or of an address leads git to other configuration, programs or machines. protocols are those that
// the call may use, with colons; "" for none.
func always(protocols string) []string {
	return []string{
		"LC_ALL=C", // words that can be recognized
		"TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=true",                // is run, and answers nothing
		"GIT_ALLOW_PROTOCOL=" + protocols, // wins over every protocol.*.allow; an empty list allows none
		"GIT_NO_LAZY_FETCH=1",             // of objects that a partial clone lacks
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_REPLACE_OBJECTS=1", // the id of a commit means this commit, also where refs/replace came with a fetch
		"GIT_CEILING_DIRECTORIES=" + string(os.PathSeparator),
	}
}

// settings returns the settings of every call, which override the repository's configuration: programs that it would
// start, and the network.
func settings() []string {
	return []string{
		"core.hooksPath=/dev/null", "core.fsmonitor=false", "credential.helper=", "protocol.allow=never",
		"protocol.ext.allow=never",
		"gc.auto=0", "maintenance.auto=false",
	}
}

// environment returns all variables of a call, each once: always wins over the call's, and that over the Runner's.
func (r *Runner) environment(program string, c Call, remote added) []string {
	home, configured := r.Home, ""
	if home == "" {
		home, configured = nowhere, nowhere
	}
	list := []string{"PATH=" + filepath.Dir(program) + ":/usr/bin:/bin", "HOME=" + home}
	if configured != "" {
		list = append(list, "XDG_CONFIG_HOME="+configured)
	}
	list = slices.Concat(list, r.Env, c.Env, remote.env, always(remote.protocols))
	at := make(map[string]int, len(list))
	out := list[:0:0]
	for _, variable := range list {
		name, _, _ := strings.Cut(variable, "=")
		if i, has := at[name]; has {
			out[i] = variable
			continue
		}
		at[name] = len(out)
		out = append(out, variable)
	}
	return out
}

// started is a call as it is handed to the system.
type started struct {
	call           Call
	program, dir   string
	args, env      []string
	secret         []byte // what git's helpers find in their file 3
	stdout, stderr io.Writer
}

// prepare makes the arguments and the environment of a call. The call's own settings come first: those of every call
// win.
func (r *Runner) prepare(ctx context.Context, c Call) (*started, error) {
	program, err := r.find()
	if err != nil {
		return nil, err
	}
	var remote added
	if c.Remote != nil {
		if remote, err = c.Remote.adds(ctx, r); err != nil {
			return nil, err
		}
	}
	s := &started{call: c, program: program, dir: c.Dir, secret: remote.secret, env: r.environment(program, c, remote)}
	if c.GitDir != "" {
		s.args = append(s.args, "--git-dir="+c.GitDir)
	}
	for _, pair := range slices.Concat(c.Config, settings(), remote.config) {
		s.args = append(s.args, "-c", pair)
	}
	s.args = append(s.args, c.Args...)
	if s.dir == "" {
		s.dir = c.GitDir
	}
	if s.dir == "" { // not the folder of this process, which may be a repository, with a configuration of its own
		s.dir = string(os.PathSeparator)
	}
	return s, nil
}
