//go:build unix

package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

const ourToken = "tok-7f3a9c2e51d84b60"

// memory is session.Records in memory. Its faults are errors that the next calls return.
type memory struct {
	mu       sync.Mutex
	records  []sessions.Record
	events   map[string][]sessions.Event
	counts   sessions.Counts
	faults   map[string]error
	ended    []string              // what CloseInterrupted reports
	asked    []string              // sessions that are to end
	saved    func(sessions.Record) // called before a record is saved; nil for nothing
	appended chan sessions.Event
}

func (m *memory) fault(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.faults[name]
}

func (m *memory) BeginSession(_ context.Context, r sessions.Record) error {
	if err := m.fault("begin"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = append(m.records, r)
	return nil
}

func (m *memory) AppendEvents(_ context.Context, id string, events []sessions.Event) error {
	if err := m.fault("append"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events[id] = append(m.events[id], events...)
	for _, e := range events {
		select {
		case m.appended <- e:
		default:
		}
	}
	return nil
}

func (m *memory) SaveSession(_ context.Context, r sessions.Record) error {
	if err := m.fault("save"); err != nil {
		return err
	}
	if m.saved != nil {
		m.saved(r)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.records {
		if m.records[i].ID == r.ID {
			m.records[i] = r
			return nil
		}
	}
	return fault.New(fault.NotFound, "there is no session %q", r.ID)
}

func (m *memory) Session(_ context.Context, id string) (sessions.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records {
		if r.ID == id {
			return r, nil
		}
	}
	return sessions.Record{}, fault.New(fault.NotFound, "there is no session %q", id)
}

func (m *memory) Sessions(_ context.Context, q sessions.Query) ([]sessions.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults["sessions"] != nil {
		return nil, m.faults["sessions"]
	}
	var out []sessions.Record
	for _, r := range slices.Backward(m.records) {
		if (q.Trigger == "" || r.Trigger == q.Trigger) && (q.Tier == 0 || r.Tier == q.Tier) &&
			(!q.Began || r.State != sessions.StateSkipped) {
			out = append(out, r)
		}
	}
	return out[:min(len(out), q.Limit)], nil
}

func (m *memory) SessionEvents(_ context.Context, id string, after int) ([]sessions.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.events[id][min(after, len(m.events[id])):], nil
}

func (m *memory) SessionCounts(context.Context, string) (sessions.Counts, error) {
	return m.counts, m.fault("counts")
}

func (m *memory) AskStop(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, id)
	return nil
}

func (m *memory) StopAsked(_ context.Context, id string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.asked, id), nil
}

func (m *memory) CloseInterrupted(context.Context) ([]string, error) {
	return m.ended, m.fault("close")
}

// quick looks for our own tokens alone: the rules for those of others take their time under the race detector.
type quick struct{ *content.Scanner }

func (quick) Secrets(context.Context, string, string) ([]content.Secret, error) { return nil, nil }

// broken cannot search.
type broken struct{ *content.Scanner }

func (broken) Secrets(context.Context, string, string) ([]content.Secret, error) { return nil, errFull }

// world is an operator's machine with a fake CLI.
type world struct {
	*memory
	runner *Runner
	dir    string
}

func newWorld(t *testing.T, act string) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w, err := makeWorld(dir, act)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// makeWorld makes a world in an empty folder, or enters one that another process has made.
func makeWorld(dir, act string) (*world, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &world{dir: dir, memory: &memory{events: map[string][]sessions.Event{}, faults: map[string]error{},
		appended: make(chan sessions.Event, 1000)}}
	for _, name := range []string{"state", "tmp", "repos"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	if err := os.Symlink(self, filepath.Join(dir, "claude")); err != nil && !os.IsExist(err) {
		return nil, err
	}
	w.runner = &Runner{
		Settings: Settings{
			Claude: Claude{
				Binary: filepath.Join(dir, "claude"), Models: map[gitprovider.Tier]string{1: "haiku", 2: "sonnet", 3: "opus"},
				Prompts: fstest.MapFS{
					"tier1-observe.md": {Data: []byte("observe")}, "tier2-investigate.md": {Data: []byte("investigate")},
					"tier3-remediate.md": {Data: []byte("remediate")},
				},
				Env: []string{"PATH=" + os.Getenv("PATH"), fakeMode + "=" + act, fakeArg + "=" + filepath.Join(dir, "seen"),
					"GORACE=atexit_sleep_ms=0"},
			},
			Server: Server{
				Command: []string{"/app/claudeops", "mcp-server"},
				Env:     map[string]string{"GITHUB_TOKEN": ourToken, "CLAUDEOPS_TIER": "3"},
			},
			Folders: Folders{
				Repos: filepath.Join(dir, "repos"), State: filepath.Join(dir, "state"), Temp: filepath.Join(dir, "tmp"),
				Hidden: []string{filepath.Join(dir, "state")},
			},
			MaxTier: gitprovider.TierRemediate,
			Limits: Limits{Time: time.Minute, Turns: 20, CostUSD: 5, Start: time.Minute, Grace: 10 * time.Second,
				Version: 30 * time.Second, Clear: 2 * time.Minute},
			Deny: []string{"Bash(git push *)"},
		},
		Records: w, Secrets: quick{content.NewScanner([]string{ourToken})}, Now: time.Now,
		NewID: rand.Text, // 26 letters and digits, as an id has
		Log:   slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	return w, nil
}

// supervise runs a session in a world until this process is killed.
func supervise(dir, act string) int {
	w, err := makeWorld(dir, act)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	impatient(&w.runner.Settings)
	if _, err := NewSupervisor(w.runner).Start(context.Background(), Spec{Tier: 1}); err != nil {
		fmt.Println(err)
		return 1
	}
	for e := range w.appended {
		fmt.Println(e.Text)
	}
	return 0
}

// run runs a session, and holds that nothing of it is left: no process, no folder.
func (w *world) run(t *testing.T, spec Spec) (sessions.Record, error) {
	t.Helper()
	record, err := w.runner.Run(t.Context(), spec)
	w.clean(t)
	return record, err
}

func (w *world) clean(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.dir, "tmp"))
	if err != nil || len(entries) > 0 {
		t.Errorf("left in the folder for temporary files: %v, %v", entries, err)
	}
	for _, r := range w.records {
		if pids := processtree.Marked(runMark + "=" + r.ID); len(pids) > 0 {
			t.Errorf("processes outlived session %s: %v", r.ID, pids)
		}
	}
}

// until waits for an event with the text.
func (w *world) until(t *testing.T, text string) {
	t.Helper()
	for {
		select {
		case e := <-w.appended:
			if e.Text == text {
				return
			}
		case <-t.Context().Done():
			t.Fatal("the event did not come")
		}
	}
}

// timeIsUpAfter lets the time limit of the session pass when its event with the text is recorded.
func (w *world) timeIsUpAfter(t *testing.T, text string) {
	const limit = time.Hour // of no other timer
	w.runner.Settings.Limits.Time = limit
	w.runner.Timer = func(d time.Duration) (<-chan time.Time, func()) {
		if d != limit {
			return realTimer(d)
		}
		c := make(chan time.Time, 1)
		go func() {
			w.until(t, text)
			c <- time.Now()
		}()
		return c, func() {}
	}
}

func (w *world) text() string {
	var b strings.Builder
	for _, events := range w.events {
		for _, e := range events {
			fmt.Fprintf(&b, "%s %s %s\n", e.Kind, e.Tool, e.Text)
		}
	}
	return b.String()
}

var errFull = errors.New("no space left on device")

func wantCode(t *testing.T, err error, code fault.Code, words ...string) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Fatalf("got %v, want the code %q", err, code)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}
