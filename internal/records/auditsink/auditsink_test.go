package auditsink_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/auditsink"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/testkit/tamper"
)

// childFlag, as the first argument, makes this test binary append rows instead of testing: folder, sink, name, how
// many.
const childFlag = "-auditsink-child"

func TestMain(m *testing.M) {
	if len(os.Args) == 6 && os.Args[1] == childFlag {
		if err := appendAsChild(os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func appendAsChild(folder, sink, name, count string) error {
	w, err := newWorld(folder, sink)
	if err != nil {
		return err
	}
	defer w.close()
	var n int
	if _, err := fmt.Sscan(count, &n); err != nil {
		return err
	}
	for i := range n {
		if err := w.append(fmt.Sprintf("%s-%d", name, i)); err != nil {
			return err
		}
		fmt.Println(name, i)
	}
	return nil
}

// world is one process with a store that exports what it appends.
type world struct {
	store    *store.Store
	exporter *auditsink.Exporter
	folder   string
	mu       sync.Mutex
	warnings []string
}

func newWorld(folder string, addresses ...string) (*world, error) {
	w := &world{folder: folder}
	var err error
	w.store, err = store.Open(context.Background(), folder,
		store.Options{Appended: func(ctx context.Context) { w.exporter.Appended(ctx) }})
	if err != nil {
		return nil, err
	}
	w.exporter = auditsink.New(auditsink.Options{
		Addresses: addresses, Audit: w.store.Audit, Host: "here",
		Warn: func(_ context.Context, sink, problem string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.warnings = append(w.warnings, sink+": "+problem)
		},
	})
	return w, nil
}

func (w *world) close() {
	w.exporter.Close()
	_ = w.store.Close()
}

func start(t testing.TB, folder string, addresses ...string) *world {
	t.Helper()
	w := must.Get(newWorld(folder, addresses...))(t)
	t.Cleanup(w.close)
	return w
}

// startNew starts a process whose records are new, and which exports to a file that does not exist yet.
func startNew(t testing.TB) (w *world, sink string) {
	t.Helper()
	sink = filepath.Join(t.TempDir(), "heads")
	return start(t, t.TempDir(), sink), sink
}

// noteOnly has the records note no more than the first head, as if a process was killed before it noted the others.
func (w *world) noteOnly(t testing.TB, first record.Head) {
	t.Helper()
	db := must.Get(sql.Open("sqlite", w.store.Path()))(t)
	defer func() { _ = db.Close() }()
	must.Get(db.ExecContext(t.Context(), "UPDATE audit_exports SET seq = ?, hash = ?", first.Seq, first.Hash))(t)
}

func (w *world) append(id string) error {
	return w.store.Ledger.Record(context.Background(), record.Attempt{
		RequestID: id, Door: record.DoorMCP, Caller: "claude-code", Tier: 2, Action: "create_pr", Provider: "local",
		Owner: "demo", Repo: "x",
		Title: "a title that no sink may have", Outcome: record.OutcomeRefused, Code: fault.ScopeDenied, Message: "no",
	}, nil)
}

func (w *world) mustAppend(t testing.TB, ids ...string) {
	t.Helper()
	for _, id := range ids {
		must.Do(t, w.append(id))
	}
}

func (w *world) database() string { return filepath.Join(w.folder, "claudeops.db") }

// check is the comparison with the one sink, after the chain itself was found sound.
func (w *world) check(t testing.TB, after int64) record.HeadCheck {
	t.Helper()
	report, err := w.store.Audit.Verify(context.Background(), "")
	if err != nil || !report.OK() {
		t.Fatalf("the chain by itself: %+v, %v", report, err)
	}
	checks, err := w.exporter.Check(context.Background(), after)
	if err != nil || len(checks) != 1 {
		t.Fatalf("%+v, %v", checks, err)
	}
	return checks[0]
}

// agrees holds that the sink has that many heads, which are those of the audit.
func (w *world) agrees(t testing.TB, heads int) {
	t.Helper()
	if check := w.check(t, 0); check.Heads != heads || check.Result != record.HeadsAgree {
		t.Errorf("got %+v, want %d heads that agree", check, heads)
	}
}

func wantCheck(t testing.TB, got record.HeadCheck, result record.HeadComparison, says string) {
	t.Helper()
	if got.Result != result || !strings.Contains(got.Detail, says) {
		t.Errorf("got %+v, want %s with %q", got, result, says)
	}
}

func (w *world) heads(t testing.TB) []record.Head {
	t.Helper()
	return must.Get(w.store.Audit.HeadsAfter(context.Background(), 0, 1000))(t)
}

func read(t testing.TB, path string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(path))(t))
}

func write(t testing.TB, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

func ids(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("r%d", i+1))
	}
	return out
}

func TestAFileHasTheHeadOfEachRowAndNothingElse(t *testing.T) {
	w, sink := startNew(t)
	w.mustAppend(t, ids(5)...)
	want := ""
	for _, h := range w.heads(t) {
		want += fmt.Sprintf(`{"seq":%d,"hash":"%s","time":"%s"}`+"\n", h.Seq, h.Hash, h.Time.UTC().Format(time.RFC3339Nano))
	}
	must.Equal(t, read(t, sink), want)
	check := w.check(t, 0)
	wantCheck(t, check, record.HeadsAgree, "")
	if check.Heads != 5 || check.LastSeq != 5 {
		t.Errorf("got %+v", check)
	}
	if info, err := os.Stat(sink); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestASinkThatIsNamedLaterGetsEveryRow(t *testing.T) {
	folder, sink := t.TempDir(), filepath.Join(t.TempDir(), "heads")
	w := start(t, folder)
	w.mustAppend(t, ids(1203)...)
	w.close()
	w = start(t, folder, "file:"+sink)
	wantCheck(t, w.check(t, 0), record.HeadsUnchecked, "nothing was exported")
	must.Do(t, w.exporter.Export(t.Context()))
	w.agrees(t, 1203)
	if check := w.check(t, 1200); check.Heads > 600 || check.Heads < 3 || check.Result != record.HeadsAgree {
		t.Errorf("of the end: %+v", check)
	}
}

func TestARewrittenAuditShowsInTheFile(t *testing.T) {
	for name, test := range map[string]struct {
		remove []int64
		says   string
	}{
		"rows in the middle":   {[]int64{3, 4}, "another hash of row 3"},
		"the first row":        {[]int64{1}, "another hash of row 1"},
		"the newest rows":      {[]int64{9, 10}, "head of row 9, which the audit does not have"},
		"all rows":             {[]int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, "head of row 1, which the audit does not have"},
		"nothing, hashed anew": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, sink := startNew(t)
			w.mustAppend(t, ids(10)...)
			kept := w.heads(t)
			w.close()
			must.Do(t, tamper.Rewrite(w.database(), test.remove...))
			w = start(t, w.folder, sink)
			want := record.HeadsDiffer
			if len(test.remove) == 0 {
				want = record.HeadsAgree // else this test proves nothing: the same rows give the same hashes
			}
			wantCheck(t, w.check(t, 0), want, test.says)
			byHeads := must.Get(auditsink.Compare(t.Context(), w.store.Audit, "file of heads x", kept))(t)
			wantCheck(t, byHeads, want, test.says)
			before := read(t, sink)
			w.mustAppend(t, "later-1", "later-2")
			wantCheck(t, w.check(t, 0), want, "")
			if want == record.HeadsDiffer {
				if got := read(t, sink); got != before {
					t.Errorf("the evidence was written on:\n%s", got)
				}
				if err := w.exporter.Required(t.Context()); fault.CodeOf(err) != fault.Misconfigured {
					t.Errorf("a policy that requires the sink: %v", err)
				}
				exports, err := w.store.Audit.Exports(t.Context())
				if err != nil || len(exports) != 1 || exports[0].Problem == "" || exports[0].ProblemAt.IsZero() ||
					len(w.warnings) == 0 {
					t.Errorf("noted is %+v, %v; told is %q", exports, err, w.warnings)
				}
			}
		})
	}
}

func TestASinkThatWasShortenedOrAlteredShows(t *testing.T) {
	for name, test := range map[string]struct {
		change func(text string) string
		says   string
	}{
		"the newest lines are gone": {func(s string) string { return lastLines(s, -2) },
			"ends with row 3, and had taken row 5"},
		"all lines are gone": {func(string) string { return "" }, "ends with row 0, and had taken row 5"},
		"the first lines are gone": {func(s string) string { return lastLines(s, 3) },
			"the heads of rows 1 to 2 are missing"},
		"a line in the middle": {func(s string) string {
			l := strings.SplitAfter(s, "\n")
			return strings.Join(append(l[:2:2], l[3:]...), "")
		}, "the heads of rows 3 to 3 are missing"},
		"a hash": {func(s string) string { return s[:20] + flip(s[20]) + s[21:] }, "another hash of row 1"},
		"a line of something else": {func(s string) string { return "hello\n" + s },
			"line 1 is none that claudeops has written"},
		"a long line": {func(s string) string { return strings.Repeat("x", 1<<17) + "\n" + s },
			"line 1 is none"},
		"a second object": {func(s string) string { return strings.Replace(s, "}\n", "}{}\n", 1) },
			"line 1 is none"},
	} {
		t.Run(name, func(t *testing.T) {
			w, sink := startNew(t)
			w.mustAppend(t, ids(5)...)
			write(t, sink, test.change(read(t, sink)))
			wantCheck(t, w.check(t, 0), record.HeadsDiffer, test.says)
		})
	}
	t.Run("the file is gone", func(t *testing.T) {
		w, sink := startNew(t)
		w.mustAppend(t, "r1")
		must.Do(t, os.Remove(sink))
		wantCheck(t, w.check(t, 0), record.HeadsDiffer, "it is gone")
		if err := os.Mkdir(sink, 0o700); err != nil { // or something else lies in its place
			t.Fatal(err)
		}
		wantCheck(t, w.check(t, 0), record.HeadsDiffer, "it is gone")
		w.mustAppend(t, "r2") // must not heal it in silence
		wantCheck(t, w.check(t, 0), record.HeadsDiffer, "")
	})
}

func flip(b byte) string {
	if b == '0' {
		return "1"
	}
	return "0"
}

// lastLines are the last n lines, or all but the last -n.
func lastLines(s string, n int) string {
	l := strings.SplitAfter(strings.TrimSuffix(s, "\n"), "\n")
	if n < 0 {
		return strings.Join(l[:len(l)+n], "")
	}
	return strings.Join(l[len(l)-n:], "") + "\n"
}

func TestAWriterThatIsKilledLeavesNoFalseAlarm(t *testing.T) {
	t.Run("after the row", func(t *testing.T) {
		w, sink := startNew(t)
		w.mustAppend(t, "r1")
		w.close()
		w = start(t, w.folder) // exports nothing, as one that is killed before it could
		w.mustAppend(t, "r2")
		w.close()
		w = start(t, w.folder, sink)
		wantCheck(t, w.check(t, 0), record.HeadsAgree, "")
		w.mustAppend(t, "r3")
		w.agrees(t, 3)
	})
	t.Run("before it was noted", func(t *testing.T) {
		w, _ := startNew(t)
		w.mustAppend(t, "r1", "r2", "r3")
		w.noteOnly(t, w.heads(t)[0])
		wantCheck(t, w.check(t, 0), record.HeadsAgree, "")
		w.mustAppend(t, "r4")
		w.agrees(t, 4)
	})
	t.Run("within a line", func(t *testing.T) {
		for _, left := range []int{1, 5, 30, 100} {
			w, sink := startNew(t)
			w.mustAppend(t, "r1", "r2")
			text := read(t, sink)
			first := strings.Index(text, "\n") + 1
			write(t, sink, text[:first+left])
			w.noteOnly(t, w.heads(t)[0])
			wantCheck(t, w.check(t, 0), record.HeadsAgree, "")
			w.mustAppend(t, "r3")
			w.agrees(t, 3)
		}
	})
}

func child(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{childFlag}, args...)...)
	cmd.Stderr = os.Stderr
	cmd.Env = []string{"GORACE=atexit_sleep_ms=0"}
	return cmd
}

func TestProcessesThatAppendAtOnceExportEachRowOnce(t *testing.T) {
	const rows = 15
	folder, sink := t.TempDir(), filepath.Join(t.TempDir(), "heads")
	start(t, folder).close()
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		wg.Go(func() {
			if err := child(t, folder, sink, name, fmt.Sprint(rows)).Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	w := start(t, folder, sink)
	w.agrees(t, 3*rows)
	must.Equal(t, strings.Count(read(t, sink), "\n"), 3*rows)
}

func TestKilledProcessesLeaveAFileThatAgrees(t *testing.T) {
	folder, sink := t.TempDir(), filepath.Join(t.TempDir(), "heads")
	start(t, folder).close()
	for round := range 5 {
		cmd := child(t, folder, sink, fmt.Sprint(round), "1000000")
		out := must.Get(cmd.StdoutPipe())(t)
		must.Do(t, cmd.Start())
		_, _ = io.ReadAtLeast(out, make([]byte, 4096), 4*(round+1)) // some rows
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		w := start(t, folder, sink)
		wantCheck(t, w.check(t, 0), record.HeadsAgree, "")
		must.Do(t, w.exporter.Export(t.Context()))
		seq, _, err := w.store.Audit.Head(t.Context())
		check := w.check(t, 0)
		wantCheck(t, check, record.HeadsAgree, "")
		if err != nil || check.LastSeq != seq {
			t.Errorf("row %d of %d, %v", check.LastSeq, seq, err)
		}
		w.close()
	}
}

// collector is a sink over HTTP.
type collector struct {
	mu     sync.Mutex
	status int
	bodies []string
	auth   []string
	asked  int
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.status != 0 {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(c.status)
		return
	}
	c.bodies, c.auth = append(c.bodies, string(body)), append(c.auth, r.Header.Get("Authorization"))
}

func (c *collector) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.bodies, "")
}

func (c *collector) answer(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

func TestASinkOverHTTPGetsWhatItMissed(t *testing.T) {
	c := &collector{}
	server := httptest.NewServer(c)
	defer server.Close()
	folder := t.TempDir()
	address := strings.Replace(server.URL, "http://", "http://ops:hunter2secret@", 1) + "/audit?key=query-secret"
	w := start(t, folder, address)
	for _, status := range []int{500, 302, 401, 429} {
		c.answer(status)
		w.mustAppend(t, fmt.Sprint("r", status))
		err := w.exporter.Export(t.Context())
		if fault.CodeOf(err) != fault.UpstreamError || !strings.Contains(err.Error(), fmt.Sprint("answered ", status)) {
			t.Errorf("%d: %v", status, err)
		}
		if strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("a secret in %v", err)
		}
		if err := w.exporter.Required(t.Context()); fault.CodeOf(err) != fault.UpstreamError {
			t.Errorf("required: %v", err)
		}
	}
	w.close() // the process ends, and what waits is exported by the next one
	c.answer(0)
	w = start(t, folder, address)
	w.mustAppend(t, "r5")
	must.Do(t, w.exporter.Required(t.Context()))
	heads := must.Get(auditsink.ReadHeads(strings.NewReader(c.text())))(t)
	seen := map[int64]bool{}
	for _, h := range heads {
		seen[h.Seq] = true
	}
	if len(seen) != 5 {
		t.Errorf("it got %s", c.text())
	}
	for _, auth := range c.auth {
		if auth != "Basic b3BzOmh1bnRlcjJzZWNyZXQ=" {
			t.Errorf("authorization %q", auth)
		}
	}
	for _, name := range w.exporter.Names() {
		if strings.Contains(name, "secret") {
			t.Errorf("the name %s has a secret", name)
		}
	}
	exports, err := w.store.Audit.Exports(t.Context())
	if err != nil || len(exports) != 1 || exports[0].Problem != "" || exports[0].Last.Seq != 5 {
		t.Errorf("noted is %+v, %v", exports, err)
	}
	wantCheck(t, w.check(t, 0), record.HeadsUnchecked, "cannot be read back")
	if strings.Contains(c.text(), "title") {
		t.Errorf("more than heads left: %s", c.text())
	}
}

func TestAppendingDoesNotWaitForASinkOverHTTP(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(release)
	w := start(t, t.TempDir(), server.URL)
	w.mustAppend(t, ids(3)...) // would hang
}

func TestSyslogGetsEachHead(t *testing.T) {
	udp := must.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	defer udp.Close()
	tcp := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer tcp.Close()
	got := make(chan string, 1)
	go func() {
		conn, err := tcp.Accept()
		if err != nil {
			return
		}
		text, _ := io.ReadAll(conn)
		got <- string(text)
	}()
	w := start(t, t.TempDir(), "syslog+udp://"+udp.LocalAddr().String(), "syslog+tcp://"+tcp.Addr().String())
	w.mustAppend(t, "r1")
	must.Do(t, w.exporter.Export(t.Context()))
	h := w.heads(t)[0]
	packet := make([]byte, 2048)
	n, _, err := udp.ReadFrom(packet)
	want := fmt.Sprintf(`<109>1 %s here claudeops - audit-head - {"seq":1,"hash":"%s",`, h.Time.Format(time.RFC3339Nano),
		h.Hash)
	if err != nil || !strings.HasPrefix(string(packet[:n]), want) {
		t.Errorf("got %q, %v; want %q", packet[:n], err, want)
	}
	framed := <-got
	var size int
	if _, err := fmt.Sscanf(framed, "%d ", &size); err != nil || !strings.Contains(framed, want) || len(framed) < size {
		t.Errorf("over TCP: %q", framed)
	}
	heads, err := auditsink.ReadHeads(strings.NewReader("Mar  1 12:00:00 here " + string(packet[:n]) + "\n"))
	if err != nil || len(heads) != 1 || heads[0].Hash != h.Hash {
		t.Errorf("read back: %v, %v", heads, err)
	}
}

func TestAddressesThatAreNoSinks(t *testing.T) {
	for address, says := range map[string]string{
		"heads":                         "is not a sink",
		"file:heads":                    "absolute path",
		"http://ops.example.org/secret": "needs https",
		"https://":                      "cannot be understood",
		"syslog+udp://nowhere":          "HOST:PORT",
		"ftp://user:hunter2secret@host": "is not a sink",
	} {
		e := auditsink.New(auditsink.Options{Addresses: []string{address}})
		if len(e.Problems) != 1 || !strings.Contains(e.Problems[0], says) || strings.Contains(e.Problems[0], "secret") ||
			len(e.Names()) != 0 {
			t.Errorf("%s: %q", address, e.Problems)
		}
		if err := e.Required(t.Context()); fault.CodeOf(err) != fault.Misconfigured {
			t.Errorf("%s: required: %v", address, err)
		}
	}
}

func TestFilesThatAreNoSinks(t *testing.T) {
	folder := t.TempDir()
	w := start(t, t.TempDir(), folder)
	w.mustAppend(t, "r1")
	if err := w.exporter.Required(t.Context()); fault.CodeOf(err) != fault.UpstreamError {
		t.Errorf("a folder: %v", err)
	}
	text := filepath.Join(folder, "text")
	write(t, text, "something of somebody else\n")
	w = start(t, t.TempDir(), text)
	w.mustAppend(t, "r1")
	if got := read(t, text); got != "something of somebody else\n" {
		t.Errorf("a file of somebody else was written: %q", got)
	}
	if err := w.exporter.Required(t.Context()); fault.CodeOf(err) != fault.Misconfigured {
		t.Errorf("a file of somebody else: %v", err)
	}
}

func TestALogTellsOfEachRowOfEveryProcess(t *testing.T) {
	folder := t.TempDir()
	other := start(t, folder)
	other.mustAppend(t, "before", "newest")
	w := start(t, folder)
	var told []int64
	log := &auditsink.Log{Audit: w.store.Audit, Tell: func(h record.Head) { told = append(told, h.Seq) }}
	log.Catch(t.Context())
	other.mustAppend(t, "r3")
	w.mustAppend(t, "r4")
	log.Catch(t.Context())
	log.Catch(t.Context())
	if fmt.Sprint(told) != "[2 3 4]" {
		t.Errorf("told are %v", told)
	}
}

func TestReadHeads(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	for name, line := range map[string]string{
		"a sink": `{"seq":7,"hash":"` + hash + `","time":"2026-03-01T12:00:00Z"}`,
		"a log as JSON": `{"time":"2026-03-01T12:00:00Z","level":"INFO","msg":"audit head","seq":7,"hash":"` + hash +
			`","row_time":"x"}`,
		"a log as text":  `time=2026-03-01T12:00:00Z level=INFO msg="audit head" seq=7 hash=` + hash + ` row_time=x`,
		"audit verify":   `{"ok": true, "rows": 7, "head": "` + hash + `", "head_seq": 7}`,
		"on many lines":  "{\n  \"ok\": true,\n  \"head\": \"" + hash + "\",\n  \"head_seq\": 7\n}\n",
		"between others": "nothing\n" + `{"seq":7,"hash":"` + hash + `","time":"2026-03-01T12:00:00Z"}` + "\nnothing",
	} {
		heads, err := auditsink.ReadHeads(strings.NewReader(line))
		if err != nil || len(heads) != 1 || heads[0].Seq != 7 || heads[0].Hash != hash {
			t.Errorf("%s: %v, %v", name, heads, err)
		}
	}
	for _, text := range []string{"", "nothing", `{"seq":0,"hash":"` + hash + `"}`, `{"seq":7,"hash":"` + hash[1:] + `"}`,
		`{"seq":99999999999999999999,"hash":"` + hash + `"}`} {
		if heads, err := auditsink.ReadHeads(strings.NewReader(text)); err == nil {
			t.Errorf("%q: %v", text, heads)
		}
	}
}

func FuzzReadHeads(f *testing.F) {
	f.Add(`{"seq":7,"hash":"` + strings.Repeat("ab", 32) + `","time":"2026-03-01T12:00:00Z"}`)
	f.Add(`seq=7 hash=` + strings.Repeat("0f", 32))
	f.Fuzz(func(t *testing.T, text string) {
		heads, err := auditsink.ReadHeads(strings.NewReader(text))
		if (err == nil) != (len(heads) > 0) {
			t.Errorf("%d heads with %v", len(heads), err)
		}
		for _, h := range heads {
			if h.Seq < 1 || len(h.Hash) != 64 || !strings.Contains(text, h.Hash) {
				t.Errorf("%+v is not in the text", h)
			}
		}
	})
}
