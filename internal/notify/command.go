package notify

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// CommandOptions say how the apprise command is run.
type CommandOptions struct {
	// Path is the program: a path, or a name that is looked for in PATH. Default: apprise.
	Path string
	// Env is the command's environment, to which PATH and LC_ALL are added where it lacks them. It inherits nothing, so
	// that it never sees the tokens of this process. See CommandEnvironment.
	Env []string
	// TempDir is where the private folder for the URL is made, one for each call. Default: os.TempDir().
	TempDir string
}

// CommandEnvironment picks from lookup (os.LookupEnv) what the apprise command may see: where programs, Python packages
// and certificates are, and proxies.
func CommandEnvironment(lookup func(string) (string, bool)) []string {
	var out []string
	for _, name := range []string{
		"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SystemRoot", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
		"PYTHONPATH", "PYTHONUSERBASE", "VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	} {
		if value, ok := lookup(name); ok {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// command runs the apprise command for one notification URL.
type command struct {
	name    string
	url     string
	timeout time.Duration
	options CommandOptions
}

// Exit codes of the command (apprise(1), "EXIT STATUS"; 1 for a failure, which may pass).
const (
	exitUsage  = 2
	exitNobody = 3
)

// Name implements Sender.
func (c *command) Name() string { return c.name }

// Send implements Sender. The URL reaches the command by a file that only this user can read and that is removed
// afterwards (a process that is killed in between leaves it), the text by standard input. The title stands among the
// arguments, where other users of the machine can see it, which is why Title says so little. The command's output may
// hold the URL and is thrown away.
func (c *command) Send(ctx context.Context, d Delivery) error {
	path, err := exec.LookPath(c.options.Path)
	if err != nil {
		return &Failure{Text: c.name + ": the apprise command was not found; install it, or name an Apprise API server in " +
			"CLAUDEOPS_APPRISE_URLS"}
	}
	folder, config, err := c.writeConfig()
	if folder != "" {
		defer func() { _ = os.RemoveAll(folder) }() // what cannot be removed is in a folder of ours alone
	}
	if err != nil {
		return &Failure{Text: c.name + ": the private configuration file of the apprise command could not be written; check " +
			"the space and permissions of the folder for temporary files"}
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	// #nosec G204: the operator names the program, and each argument is one option.
	cmd := exec.CommandContext(ctx, path, "--config="+config, "--title="+Title(d.Message),
		"--notification-type="+kind(d.Message.Event), "--input-format=text")
	cmd.Dir = folder
	cmd.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8"}, c.options.Env...)
	cmd.Stdin = strings.NewReader(Text(d.Message))
	cmd.WaitDelay = time.Second // for a child that keeps standard input open
	isolate(cmd)
	err = cmd.Run()
	return c.verdict(ctx, cmd, err)
}

// writeConfig makes the private folder and, in it, Apprise's text configuration: one URL on a line.
func (c *command) writeConfig() (folder, file string, err error) {
	folder, err = os.MkdirTemp(c.options.TempDir, "claudeops-apprise-")
	if err != nil {
		return "", "", err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return folder, "", err
	}
	file = filepath.Join(folder, "urls.conf")
	return folder, file, os.WriteFile(file, []byte(c.url+"\n"), 0o600)
}

// verdict turns the end of the command into nil or a Failure.
func (c *command) verdict(ctx context.Context, cmd *exec.Cmd, err error) error {
	if cmd.ProcessState == nil {
		return &Failure{Text: c.name + ": the apprise command could not be started"}
	}
	code := cmd.ProcessState.ExitCode()
	switch {
	case err == nil || code == 0:
		return nil
	case ctx.Err() != nil:
		endGroup(cmd)
		return &Failure{Text: c.name + ": the apprise command did not finish in time and was ended"}
	case code == exitUsage:
		return &Failure{Permanent: true, Text: c.name + ": the apprise command did not understand its options (exit code 2); " +
			"it may be too old"}
	case code == exitNobody:
		return &Failure{Permanent: true, Text: c.name + ": the apprise command found nobody to tell (exit code 3)"}
	}
	return &Failure{Text: fmt.Sprintf("%s: the apprise command failed (exit code %d); run it by hand with -v to see why",
		c.name, code)}
}
