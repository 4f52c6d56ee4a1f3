package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// servedProcess is the server that a script has started.
type servedProcess struct {
	cmd *exec.Cmd
	url string
}

// serveKey is where a script's environment keeps its server.
type serveKey struct{}

// startServer runs a server until endserve, and waits until it listens: serve COMMAND ARG...
func startServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serve COMMAND ARG...")
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		path, err = lookIn(ts.Getenv("PATH"), args[0])
	}
	ts.Check(err)
	stderr, err := os.Create(ts.MkAbs("served.err"))
	ts.Check(err)
	stdout, writer, err := os.Pipe()
	ts.Check(err)
	cmd := exec.CommandContext(context.Background(), path, args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), writer, stderr
	for _, name := range []string{"PATH", "HOME", "CLAUDEOPS_LOCAL_ROOT", "CLAUDEOPS_STATE_DIR", "CLAUDEOPS_REPOS_DIR",
		"CLAUDEOPS_TIER",
		"CLAUDEOPS_ADDR", "CLAUDEOPS_TOOLSETS", "CLAUDEOPS_MAX_TIER", "CLAUDEOPS_DOOR_SOCKET", "CLAUDEOPS_BOUNDARY",
		"GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	ts.Check(cmd.Start())
	ts.Check(writer.Close())
	ts.Defer(func() { _ = cmd.Process.Kill() })
	line := make([]byte, 4096)
	n, err := stdout.Read(line) // blocks until it says where it listens, or ends
	if err != nil && !errors.Is(err, io.EOF) {
		ts.Fatalf("%v", err)
	}
	ts.Check(os.WriteFile(ts.MkAbs("served.out"), line[:n], 0o600))
	url := regexp.MustCompile(`http://\S+`).FindString(string(line[:n]))
	if url == "" {
		ts.Fatalf("it does not say where it listens: %q", line[:n])
	}
	ts.Setenv("SERVED", strings.TrimSuffix(url, "/"))
	ts.Value(serveKey{}).(*servedProcess).cmd, ts.Value(serveKey{}).(*servedProcess).url = cmd, strings.TrimSuffix(url,
		"/")
}

func lookIn(path, name string) (string, error) {
	for _, dir := range strings.Split(path, string(os.PathListSeparator)) {
		if _, err := os.Stat(dir + "/" + name); err == nil {
			return dir + "/" + name, nil
		}
	}
	return "", fmt.Errorf("%s is not in the path", name)
}

// fetch asks the server, and prints what it answers: fetch METHOD PATH [BODY-FILE] [token=FILE]. A body is JSON, or a
// form if the file's name ends in .form; from a form it goes on to where that leads.
func fetch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fetch METHOD PATH [BODY-FILE] [token=FILE]")
	}
	var body io.Reader
	token, contentType := "", "application/json"
	for _, arg := range args[2:] {
		if name, isToken := strings.CutPrefix(arg, "token="); isToken {
			token = strings.TrimSpace(ts.ReadFile(name))
		} else {
			body = strings.NewReader(strings.TrimSpace(ts.ReadFile(arg)))
			if strings.HasSuffix(arg, ".form") {
				contentType = "application/x-www-form-urlencoded"
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, args[0], ts.Value(serveKey{}).(*servedProcess).url+args[1], body)
	ts.Check(err)
	if body != nil {
		r.Header.Set("Content-Type", contentType)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	ts.Check(err)
	_, err = ts.Stdout().Write(text)
	ts.Check(err)
}

// endServer tells the server to end as an operator does, and fails unless it ends well.
func endServer(ts *testscript.TestScript, _ bool, _ []string) {
	cmd := ts.Value(serveKey{}).(*servedProcess).cmd
	ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	ts.Check(cmd.Wait())
}
