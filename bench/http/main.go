// Command http measures `claudeops serve` from outside, over loopback: requests a second, and how long one takes, for
// one client and for eight. The records hold as many attempts as asked for, most of which are about other repositories.
// /healthz of the same server in the same run is the floor, so that ratios hold on a noisy machine. Then the same for
// one client, with something recorded by another process before each request, so that no answer is one that was kept.
//
//	http [-rows 100000] [-for 3s] [-state FOLDER] [-fresh] BINARY
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	rows := flag.Int("rows", 100_000, "attempts on the record")
	each := flag.Duration("for", 3*time.Second, "how long each measurement takes")
	kept := flag.String("state", "", "state folder that is filled if it does not exist, and used as it is if it does")
	fresh := flag.Bool("fresh", false, "measure only what follows a record")
	flag.Parse()
	if err := run(context.Background(), flag.Arg(0), *kept, *rows, *each, *fresh); err != nil {
		fmt.Fprintln(os.Stderr, "http:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary, state string, rows int, each time.Duration, fresh bool) error {
	scratch, err := os.MkdirTemp("", "claudeops-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	root := filepath.Join(scratch, "root")
	if err := makeRepo(ctx, root); err != nil {
		return err
	}
	if state == "" {
		state = filepath.Join(scratch, "state")
	}
	if err := os.Mkdir(state, 0o700); err == nil {
		began := time.Now()
		if err := fill(ctx, state, rows); err != nil {
			return err
		}
		fmt.Printf("%d rows recorded in %s\n", rows, time.Since(began).Round(time.Second))
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	s, err := start(ctx, binary, scratch, state, root)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.settle(ctx); err != nil {
		return err
	}
	if !fresh {
		if err := measureAll(ctx, s, each); err != nil {
			return err
		}
	}
	return measureFresh(ctx, s, state, each)
}

// server is a claudeops serve of ours.
type server struct {
	cmd   *exec.Cmd
	url   string
	token string // which it made at its first start
}

// start starts the server in dry run on a free port of loopback, and waits until it listens.
func start(ctx context.Context, binary, scratch, state, root string) (*server, error) {
	cmd := exec.CommandContext(ctx, binary, "serve")
	cmd.Env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + scratch, "CLAUDEOPS_STATE_DIR=" + state, "CLAUDEOPS_LOCAL_ROOT=" +
			root, "CLAUDEOPS_TIER=2",
		"CLAUDEOPS_DRY_RUN=true", "CLAUDEOPS_ADDR=127.0.0.1:0", "CLAUDEOPS_REPOS_DIR=" + scratch,
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd}
	line, err := bufio.NewReader(out).ReadString('\n')
	if s.url = regexp.MustCompile(`http://[0-9.:]+`).FindString(line); s.url == "" {
		s.stop()
		return nil, fmt.Errorf("the server does not say where it listens: %q, %w", line, err)
	}
	token, err := os.ReadFile(filepath.Join(state, "operator-token"))
	if err != nil {
		s.stop()
		return nil, err
	}
	s.token = strings.TrimSpace(string(token))
	return s, nil
}

// settle waits until the server has verified the records that it found, which takes a processor for seconds.
func (s *server) settle(ctx context.Context) error {
	const patience = 5 * time.Minute
	for began := time.Now(); time.Since(began) < patience; time.Sleep(100 * time.Millisecond) {
		r, err := s.request(ctx, http.MethodGet, "/", "")
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		page, err := io.ReadAll(answer.Body)
		if _ = answer.Body.Close(); err != nil {
			return err
		}
		if !bytes.Contains(page, []byte("Not looked at yet")) {
			return nil
		}
	}
	return errors.New("the server does not say that it has verified the records")
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait() // its measurements are made
}

// memory is the server's resident memory now and at its largest, as the kernel has it.
func (s *server) memory() (now, most string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return "unknown", "unknown"
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "VmRSS":
			now = strings.TrimSpace(value)
		case "VmHWM":
			most = strings.TrimSpace(value)
		}
	}
	return now, most
}

// request is what one client sends again and again; n counts the requests of all clients.
type request func(ctx context.Context, n int64) (*http.Request, error)
