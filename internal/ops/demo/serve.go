package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// serverGrace is how long the server may take to end before it is killed.
const serverGrace = 40 * time.Second

// Serve plays the whole demo in front of a `claudeops serve` at addr (host:port), leaves a pull request and a dry run
// for a person, and stays until ctx is done. The error says which step failed, or why the server ended by itself.
func Serve(ctx context.Context, o Options, addr string) error {
	s, err := newStory(ctx, o, nil)
	if err != nil {
		return err
	}
	server, err := s.startServer(ctx, addr)
	if err != nil {
		return err
	}
	s.served = true
	s.printf("Open this address in your browser%s and watch:\n\n  %s\n", s.signIn(server), server.address)
	played := s.play(ctx, append(s.steps(),
		demoStep{"Another pull request, which a person wants changed", s.openAnother},
		demoStep{"A dry run that waits for a person", s.leaveDryRun},
	))
	if played != nil && ctx.Err() == nil {
		return errors.Join(played, server.shutDown())
	}
	if played == nil {
		s.printf("\n=== The demo is done, and the server stays. What to do next:\n\n")
		s.printf("Open the dashboard%s:\n\n  %s\n\n", s.signIn(server), server.address)
		s.printf("To sign in again later, paste what this prints:\n\n  cat %s\n",
			shellQuote(filepath.Join(s.state, "operator-token")))
		s.sayCommands("Or look around in a second terminal, in the same folder")
		s.printf("\nTo use your own repository: %s init\n", s.Command)
		s.printf("\nAll files are in %s. Ctrl-C ends the server.\n", s.Dir)
	}
	return server.wait(ctx)
}

// signIn says how a browser signs in. An address that other machines may reach, such as that of a container, carries no
// code: there the token of the demo does it.
func (b *sandbox) signIn(s *server) string {
	if strings.Contains(s.address, "code=") {
		return " (the address works once, within ten minutes)"
	}
	token, _, err := files.ReadPath(filepath.Join(b.state, "operator-token"), 4<<10)
	if err != nil {
		return ""
	}
	return ", sign in with the token " + strings.TrimSpace(string(token))
}

// server is a running `claudeops serve`.
type server struct {
	address string // that signs a browser in, or of the server where it gives none
	stop    context.CancelFunc
	gone    chan error
}

// startServer starts the server and waits until it listens.
func (b *sandbox) startServer(ctx context.Context, addr string) (*server, error) {
	lifetime, stop := context.WithCancel(context.WithoutCancel(ctx))
	cmd := processtree.Cmd(lifetime, processtree.Command{
		Path: b.Binary, Args: []string{b.Binary, "serve"}, Env: append(b.childEnv("2", false), "CLAUDEOPS_ADDR="+addr),
	})
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = serverGrace
	log, err := files.OpenAppend(b.log(), 0o644)
	if err != nil {
		stop()
		return nil, err
	}
	defer log.Close()
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		stop()
		return nil, err
	}
	address, readErr := announced(bufio.NewReader(out))
	s := &server{address: address, stop: stop, gone: make(chan error, 1)}
	go func() { s.gone <- cmd.Wait() }()
	if readErr != nil || s.address == "" {
		_ = errors.Join(readErr, s.shutDown()) // its log says why
		return nil, StartError{fmt.Sprintf("claudeops serve did not start: %s (the log is %s)", b.lastWords(), b.log())}
	}
	return s, nil
}

// announced reads where a server listens and how to sign in, and returns the address to open. It waits until the server
// says so, or ends.
func announced(out *bufio.Reader) (address string, err error) {
	for range 2 {
		line, err := out.ReadString('\n')
		if err != nil {
			return "", err
		}
		if found := regexp.MustCompile(`http://\S+`).FindString(line); found != "" {
			address = found
		}
	}
	return address, nil
}

// StartError says why the demo's server did not start.
type StartError struct{ why string }

// Error implements error.
func (e StartError) Error() string { return e.why }

// lastWords returns the server's reason for its end, from its log.
func (b *sandbox) lastWords() string {
	const ours = "claudeops: "
	words := "it said nothing"
	text, _, _ := files.ReadPath(b.log(), 1<<20) // one that cannot be read said nothing
	for line := range strings.Lines(string(text)) {
		if rest, isOurs := strings.CutPrefix(line, ours); isOurs {
			words = strings.TrimSpace(rest)
		}
	}
	return words
}

// log returns the file of what the server says.
func (b *sandbox) log() string { return b.Dir + "/serve.log" }

// shutDown ends the server, and waits for it.
func (s *server) shutDown() error {
	s.stop()
	err := <-s.gone
	if errors.Is(err, context.Canceled) { // by us, and with exit code 0
		return nil
	}
	return err
}

// wait waits until ctx is done, and ends the server then.
func (s *server) wait(ctx context.Context) error {
	select {
	case err := <-s.gone:
		if err == nil { // it was asked to end: a terminal's interrupt reaches both of us
			return nil
		}
		return fmt.Errorf("the server ended by itself: %w", errors.Join(errUnexpected, err))
	case <-ctx.Done():
		return s.shutDown()
	}
}
