package notify

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// CommandOptions say how the apprise command is run.
type CommandOptions struct {
	// Path is the program: a path, or a name that is looked for in PATH. Default: apprise.
	Path string
	// Env is the command's environment, to which PATH and LC_ALL are added where it lacks them. It inherits nothing, so
	// that it never sees the tokens of this process. See CommandEnvironment.
	Env []string
	// TempDir is the parent of the private folder for the URL, one for each call. Default: os.TempDir().
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

// endGrace is how long the command may take to end when it is told to.
const endGrace = time.Second

// command runs the apprise command for one notification URL.
type command struct {
	name    string
	url     string
	timeout time.Duration
	options CommandOptions
}

// Name implements Sender.
func (c *command) Name() string { return c.name }

// Send implements Sender. The URL reaches the command by a file that only this user can read and that is removed
// afterwards (a process that is killed in between leaves it), the text by standard input. The title stands among the
// arguments, where other users of the machine can see it, which is why Title says so little. The command's output may
// hold the URL and is thrown away.
func (c *command) Send(ctx context.Context, d Delivery) error {
	path, err := processtree.Find(cmp.Or(c.options.Path, "apprise"))
	if err != nil {
		return c.failure(false, "was not found; install it, or name an Apprise API server in CLAUDEOPS_APPRISE_URLS")
	}
	folder, err := files.MakeTemporary(c.options.TempDir, "claudeops-apprise-")
	var config string
	if err == nil {
		defer func() { _ = folder.Remove() }() // what cannot be removed is in a folder of ours alone
		config, err = folder.Write("urls.conf", []byte(c.url+"\n"))
	}
	if err != nil {
		return c.failure(false,
			"cannot be told the URL: its private file could not be written; check the space and permissions of the "+
				"folder for temporary files")
	}
	ran, err := processtree.Run(ctx, processtree.Spec{
		Command: processtree.Command{
			Path: path,
			Args: []string{path, "--config=" + config, "--title=" + Title(d.Message),
				"--notification-type=" + kind(d.Message.Event), "--input-format=text"},
			Env:   append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8"}, c.options.Env...),
			Stdin: strings.NewReader(Text(d.Message)),
		},
		Options: processtree.Options{Grace: endGrace}, Time: c.timeout,
	})
	switch {
	case err != nil:
		return c.failure(false, "could not be started")
	case ran.Exit == processtree.Exit{}:
		return nil
	case ran.TimedOut, ran.Canceled:
		return c.failure(false, "did not finish in time and was ended")
	default:
		code := ran.Exit.Code
		const usage, nobody = 2, 3 // apprise(1), "EXIT STATUS"; 1 is a failure, which may pass
		return c.failure(code == usage || code == nobody,
			fmt.Sprintf("failed (exit code %d); run it by hand with -v to see why", code))
	}
}

func (c *command) failure(permanent bool, what string) error {
	return &failure{Permanent: permanent, Text: c.name + ": the apprise command " + what}
}
