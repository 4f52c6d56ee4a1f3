// Command http measures `claudeops serve` from outside, over loopback: requests a second, and how long one takes, for
// one client and for eight. The records hold as many attempts as asked for, most of which are about other repositories.
// /healthz of the same server in the same run is the floor, so that ratios hold on a noisy machine. Then the same for
// one client, with something recorded by another process before each request, so that no answer is one that was kept.
//
//	http [-rows 100000] [-for 3s] [-state FOLDER] [-fresh] BINARY
//
// Beside the folder of -state there is one for its repositories, FOLDER-root.
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

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
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
	if state == "" {
		state = filepath.Join(scratch, "state")
	}
	root := rootOf(state)
	if err := os.Mkdir(state, 0o700); err == nil {
		if err := makeRepo(ctx, root); err != nil {
			return err
		}
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
	if err := s.waitVerified(ctx); err != nil {
		return err
	}
	if !fresh {
		if err := measureAll(ctx, s, each); err != nil {
			return err
		}
	}
	return measureFresh(ctx, s, state, each)
}

// rootIdentity is that of each root that is made here, by which records tell repositories of one root from those of
// another.
const rootIdentity = "benchbenchbenchbench"

// rootOf returns the folder with the local repositories of the server of a state folder.
func rootOf(state string) string { return state + "-root" }

// recordsOf returns what the server itself opens its records with: what is recorded is about its own repositories.
func recordsOf() store.Options {
	return store.Options{LocalRoot: func() string { return rootIdentity }}
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

// waitVerified waits until the server has verified the records that it found, which takes a processor for seconds.
func (s *server) waitVerified(ctx context.Context) error {
	const patience = 5 * time.Minute
	for began := time.Now(); time.Since(began) < patience; time.Sleep(100 * time.Millisecond) {
		r, err := s.newRequest(ctx, http.MethodGet, "/metrics", "")
		if err != nil {
			return err
		}
		r.Header.Del("Accept-Encoding") // so that the client reads what comes compressed
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		metrics, err := io.ReadAll(answer.Body)
		if _ = answer.Body.Close(); err != nil {
			return err
		}
		if bytes.Contains(metrics, []byte("\nclaudeops_audit_verified_timestamp_seconds ")) {
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

// requestMaker is what one client sends again and again; n counts the requests of all clients.
type requestMaker func(ctx context.Context, n int64) (*http.Request, error)

// fill records attempts as the use case does, spread over the last 90 days: of ten, five are refused, three are dry
// runs, one was opened and one was reused.
func fill(ctx context.Context, stateDir string, rows int) error {
	now := time.Now()
	at := now
	options := recordsOf()
	options.Now = func() time.Time { return at }
	s, err := store.Open(ctx, stateDir, options)
	if err != nil {
		return err
	}
	for i := range rows {
		at = now.Add(-90 * 24 * time.Hour / time.Duration(rows) * time.Duration(rows-i))
		if err := fillOne(ctx, s, i, at); err != nil {
			return err
		}
	}
	return s.Close()
}

func fillOne(ctx context.Context, s *store.Store, i int, at time.Time) error {
	a := record.Attempt{
		Time: at, RequestID: fmt.Sprintf("filled-%08d", i), Door: record.DoorMCP, Caller: "claude-code/2.1",
		Tier:   gitprovider.TierInvestigate,
		Action: record.ActionCreate, Provider: "local", Owner: "filled", Repo: fmt.Sprintf("repo-%d", i%20), Base: "main",
		Title: fmt.Sprintf("Watch disk %d", i), Paths: []string{fmt.Sprintf("checks/disk-%d.md", i)},
		Digest:   fmt.Sprintf("digest-%d", i),
		Verdicts: []record.Verdict{{Gate: record.GateTier, Ruling: record.Pass, Detail: "tier 2, 1 file"}},
		Duration: 40 * time.Millisecond,
	}
	p := record.Proposal{
		ID: a.RequestID, CreatedAt: at, Door: a.Door, Caller: a.Caller, Tier: a.Tier, Provider: a.Provider, Owner: a.Owner,
		Repo: a.Repo,
		Base: a.Base, BaseCommit: strings.Repeat("ab", 20), ChangeType: gitprovider.TypeCheck, Title: a.Title,
		Body:   "It was full.\n",
		Digest: a.Digest,
		Files: []gitprovider.FileChange{{Path: a.Paths[0], Action: gitprovider.ActionCreate,
			Content: strings.Repeat("# Disk\n", 100)}},
	}
	switch i % 10 {
	case 0:
		if taken, err := s.Ledger.Reserve(ctx, p, record.Claim{Seen: 1 << 40}); err != nil || taken != nil {
			return fmt.Errorf("reserved by %v: %w", taken, err)
		}
		a.Outcome, a.PRNumber, a.PRURL = record.OutcomeOpened, i, fmt.Sprintf("https://git.example.org/%d", i)
		return s.Ledger.Finish(ctx, p.ID, record.Progress{State: record.StateOpened, PRNumber: a.PRNumber, PRURL: a.PRURL}, a)
	case 1:
		a.Outcome, a.PRNumber = record.OutcomeReused, i-1
		return s.Ledger.Record(ctx, a, nil)
	case 2, 3, 4:
		a.Outcome = record.OutcomeDryRun
		return s.Ledger.Record(ctx, a, &p)
	}
	gates := []record.Gate{record.GateScope, record.GateTier, record.GateContent, record.GateDuplicate, record.GateScope}
	a.Outcome, a.Code, a.Message = record.OutcomeRefused, fault.ScopeDenied, "1 path is outside the scope"
	a.Verdicts = append(a.Verdicts, record.Verdict{Gate: gates[i%5], Ruling: record.Deny, Violations: []fault.Violation{{
		Code: a.Code, Path: a.Paths[0], Rule: "prompts/**", Message: "the path is protected",
	}}})
	return s.Ledger.Record(ctx, a, nil)
}

// makeRepo makes the bare repository bench/infra below root, with 200 files.
func makeRepo(ctx context.Context, root string) error {
	dir := filepath.Join(root, "bench", "infra.git")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, ".claudeops-root"), []byte(rootIdentity+"\n"), 0o600); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("commit refs/heads/main\ncommitter Operator <operator@example.invalid> 1767225600 +0000\ndata 5\nSeed\n")
	for i := range 200 {
		content := fmt.Sprintf("# Check %d\n", i)
		fmt.Fprintf(&b, "M 100644 inline checks/check-%d.md\ndata %d\n%s\n", i, len(content), content)
	}
	for _, args := range [][]string{{"init", "--quiet", "--bare", "--initial-branch=main"}, {"fast-import", "--quiet"}} {
		cmd := exec.CommandContext(ctx, "git", args...) // #nosec G204: fixed words
		cmd.Dir, cmd.Stdin, cmd.Stderr = dir, strings.NewReader(b.String()), os.Stderr
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	return nil
}
