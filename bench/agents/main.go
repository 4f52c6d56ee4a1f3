// Command agents measures many agents at once at one claudeops serve, which it starts in an empty state folder: how
// many calls a second they get answered, how long each waits, and what a connection costs in memory. usage: agents [-n
// 100] [-calls 20] BINARY
//
// Each agent has a token and a session of its own, and calls tools/list, one call after the other.
//
// With -at ADDRESS it measures another server of Streamable HTTP that runs already, of which PID is the process; what
// a file holds is shown as `Authorization: Bearer`: agents [-n 100] [-calls 20] -at http://127.0.0.1:8082/mcp
// [-token-file FILE] PID
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/store"
)

func main() {
	n, calls := flag.Int("n", 100, "agents"), flag.Int("calls", 20, "calls of each")
	at := flag.String("at", "", "the address of a server that runs already; then its process id is the argument")
	file := flag.String("token-file", "", "with -at: the file of the token that all agents show")
	flag.Parse()
	var token []byte
	var err error
	if *file != "" {
		token, err = os.ReadFile(*file)
	}
	if err == nil {
		err = run(context.Background(), *n, *calls, *at, strings.TrimSpace(string(token)), flag.Arg(0))
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, n, calls int, at, token, binary string) error {
	tokens := slices.Repeat([]string{token}, n)
	pid := binary
	if at == "" {
		dir, err := os.MkdirTemp("", "agents")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // scratch
		if tokens, err = makeTokens(ctx, dir, n); err != nil {
			return err
		}
		server, address, err := startServer(ctx, binary, dir)
		if err != nil {
			return err
		}
		defer server.Wait()                       //nolint:errcheck // it was told to end
		defer server.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
		at, pid = address+"/mcp", fmt.Sprint(server.Process.Pid)
	}
	before := resident(pid)
	agents := make([]*client, n)
	for i := range agents {
		var err error
		if agents[i], err = connectClient(ctx, at, tokens[i]); err != nil {
			return err
		}
	}
	open, spent := resident(pid), processor(pid)
	took, waits, err := measure(ctx, agents, calls)
	if err != nil {
		return err
	}
	spent = processor(pid) - spent
	slices.Sort(waits)
	fmt.Printf("%d agents, %d calls: %.0f calls/s, %s of processor time a call, p50 %s, p99 %s\n", n, len(waits),
		float64(len(waits))/took.Seconds(), (spent / time.Duration(len(waits))).Round(time.Microsecond),
		waits[len(waits)/2].Round(10*time.Microsecond), waits[len(waits)*99/100].Round(10*time.Microsecond))
	after := resident(pid)
	const quiet = 5 * time.Second // a server gives memory back that a burst of calls needed
	time.Sleep(quiet)
	fmt.Printf("%d KiB a connection when it is idle, %d KiB right after the calls, %d KiB %s later; %d bytes an answer\n",
		(open-before)/n, (after-before)/n, (resident(pid)-before)/n, quiet, agents[0].answer)
	return nil
}

// measure has all agents call at once, each one call after the other.
func measure(ctx context.Context, agents []*client, calls int) (time.Duration, []time.Duration, error) {
	waits := make([]time.Duration, len(agents)*calls)
	failures := make([]error, len(agents))
	var all sync.WaitGroup
	began := time.Now()
	for i, a := range agents {
		all.Go(func() {
			for call := range calls {
				start := time.Now()
				if failures[i] = a.call(ctx, call+10, "tools/list", "{}"); failures[i] != nil {
					return
				}
				waits[i*calls+call] = time.Since(start)
			}
		})
	}
	all.Wait()
	return time.Since(began), waits, errors.Join(failures...)
}

// makeTokens makes a token for each agent in a new state folder, before the server starts.
func makeTokens(ctx context.Context, dir string, n int) (tokens []string, err error) {
	records, err := store.Open(ctx, filepath.Join(dir, "state"), store.Options{Now: time.Now})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	for i := range n {
		secret, err := access.NewSecret(rand.Reader)
		if err != nil {
			return nil, err
		}
		if err := records.Access.InsertToken(ctx, access.Token{
			ID: fmt.Sprintf("%016d", i), Name: fmt.Sprintf("agent-%d", i), Hash: access.Hash(secret), Agent: true,
			MaxTier: gitprovider.TierInvestigate, CreatedAt: time.Now(),
		}); err != nil {
			return nil, err
		}
		tokens = append(tokens, secret)
	}
	return tokens, nil
}

func serverEnv(dir string) []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + dir, "CLAUDEOPS_STATE_DIR=" + dir + "/state",
		"CLAUDEOPS_TIER=2", "CLAUDEOPS_MAX_TIER=2", "CLAUDEOPS_ADDR=127.0.0.1:0"}
}

// startServer starts the server, and finds its address in its log.
func startServer(ctx context.Context, binary, dir string) (*exec.Cmd, string, error) {
	cmd := exec.CommandContext(ctx, binary, "serve")
	cmd.Env = serverEnv(dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, rest, found := strings.Cut(lines.Text(), "http://127.0.0.1:"); found {
			port, _, _ := strings.Cut(strings.Map(func(r rune) rune {
				if r < '0' || r > '9' {
					return ' '
				}
				return r
			}, rest), " ")
			go io.Copy(io.Discard, out) //nolint:errcheck // the rest of a log
			return cmd, "http://127.0.0.1:" + port, nil
		}
	}
	return nil, "", errors.New("the server says no address")
}

// resident is the memory of a process in KiB.
func resident(pid string) int {
	text, _ := os.ReadFile("/proc/" + pid + "/status")
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	var kib int
	_, _ = fmt.Sscan(rest, &kib)
	return kib
}

// processor is how long a process has had a processor.
func processor(pid string) time.Duration {
	text, _ := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, _ := strings.Cut(string(text), ") ") // the name of the program may hold anything
	fields := strings.Fields(rest)
	const user, system, tick = 11, 12, 10 * time.Millisecond
	if len(fields) <= system {
		return 0
	}
	var of [2]int
	_, _ = fmt.Sscan(fields[user]+" "+fields[system], &of[0], &of[1])
	return time.Duration(of[0]+of[1]) * tick
}

const greeting = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`

func connectClient(ctx context.Context, at, token string) (*client, error) {
	a := &client{http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}, at: at, token: token}
	return a, a.call(ctx, 1, "initialize", greeting)
}

// client speaks Streamable HTTP.
type client struct {
	http               *http.Client
	at, token, session string
	answer             int // bytes of the last one
}

func (c *client) call(ctx context.Context, id int, method, params string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.at, bytes.NewBufferString(rpcMessage(id, method,
		params)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it is read
	text, err := io.ReadAll(answer.Body)
	if err != nil || !bytes.Contains(text, []byte(`"result"`)) {
		return fmt.Errorf("%s %.200s: %w", answer.Status, text, err)
	}
	c.answer = len(text)
	if session := answer.Header.Get("Mcp-Session-Id"); session != "" {
		c.session = session
	}
	return nil
}

func rpcMessage(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
}
