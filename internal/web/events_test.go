package web_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/web/live"
)

// patience bounds everything that a test waits for.
const patience = time.Minute

// quick is Live for tests: what would take seconds takes milliseconds.
var quick = live.Limits{Poll: 5 * time.Millisecond, Heartbeat: 20 * time.Millisecond, Recheck: 20 * time.Millisecond}

// listening is a world behind a real listener.
type listening struct {
	*world
	server *http.Server
	addr   string
}

// listen serves the world; prepare may change the server.
func (w *world) listen(prepare func(*http.Server)) *listening {
	w.Helper()
	s := w.listening(prepare)
	return &listening{w, s.Config, s.Listener.Addr().String()}
}

// following is a stream of events as a client has it.
type following struct {
	testing.TB
	conn  net.Conn
	lines *bufio.Reader
}

// follow opens a stream over a connection of its own. head is sent beside the request line and Host.
func (l *listening) follow(target string, head ...string) (f following, status int) {
	l.Helper()
	conn, err := net.Dial("tcp", l.addr)
	must.Do(l, err)
	must.Do(l, conn.SetDeadline(time.Now().Add(patience)))
	lines := append([]string{"GET " + target + " HTTP/1.1", "Host: " + l.addr}, head...)
	if all := strings.Join(head, "\n"); l.person != "" && !strings.Contains(all, "Authorization:") &&
		!strings.Contains(all, "Cookie:") {
		lines = append(lines, "Authorization: Bearer "+l.person)
	}
	if _, err := io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		l.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	must.Do(l, err)
	l.Cleanup(func() { _, _ = conn.Close(), response.Body.Close() })
	return following{TB: l.TB, conn: conn, lines: bufio.NewReader(response.Body)}, response.StatusCode
}

// until reads up to a line that begins with the text, and returns the line.
func (f following) until(text string) string {
	f.Helper()
	for {
		line, err := f.lines.ReadString('\n')
		if strings.HasPrefix(line, text) {
			return strings.TrimSpace(line)
		}
		if err != nil {
			f.Fatalf("waiting for %q: %v", text, err)
		}
	}
}

// end reads up to the end of the stream.
func (f following) end() error {
	_, err := io.Copy(io.Discard, f.lines)
	return err
}

func TestAStreamTellsOfEveryChangeAndOutlivesTheLimitsOfRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Live.Limits = quick })
	l := w.listen(func(s *http.Server) {
		s.ReadTimeout, s.WriteTimeout = time.Second, time.Second
	})
	f, status := l.follow("/events")
	if status != 200 {
		t.Fatal(status)
	}
	if got := f.until("id: "); got != "id: audit:0,health:0" {
		t.Errorf("it begins with %q", got)
	}
	started := time.Now()
	for time.Since(started) < 2*time.Second { // longer than a request may take
		f.until(": still here")
	}
	for n := 1; n <= 3; n++ {
		w.refuse(1)
		f.until("event: change")
		if id, data := f.until("id: "), f.until("data: "); id != fmt.Sprintf("id: audit:%d,health:0", n) ||
			data != fmt.Sprintf(`data: {"topic":"audit","version":%d}`, n) {
			t.Errorf("%d: %s, %s", n, id, data)
		}
	}
}

func TestAClientThatComesBackIsToldWhatItMissed(t *testing.T) {
	t.Parallel()
	var jobs atomic.Int64
	jobs.Store(7)
	w := newWorld(t, func(w *world) {
		w.web.Live.Limits = quick
		w.web.Live.Topics = []live.Topic{{Name: "jobs",
			Version: func(context.Context) (int64, error) { return jobs.Load(), nil }}}
	})
	w.refuse(2)
	l := w.listen(nil)
	for name, row := range map[string]struct {
		target, last string
		events       int
	}{
		"behind in one":               {"/events", "audit:1,jobs:7,health:0", 1},
		"behind in both":              {"/events", "audit:1,jobs:6,health:0", 2},
		"nonsense":                    {"/events", "x,y:z", 3},
		"a page that was made before": {"/events?after=audit%3A1%2Cjobs%3A7%2Chealth%3A0", "", 1},
		"the header is newer than the page": {"/events?after=audit%3A1%2Cjobs%3A7%2Chealth%3A0",
			"audit:2,jobs:6,health:0", 1},
		"a record that was put back": {"/events", "audit:9,jobs:7,health:0", 1},
		"far too long":               {"/events", strings.Repeat("audit:2,jobs:7,", 100), 3},
	} {
		f, _ := l.follow(row.target, "Last-Event-ID: "+row.last)
		for range row.events {
			f.until("event: change")
		}
		for line := ""; line != ": still here"; line = f.until("") {
			if strings.HasPrefix(line, "event: ") {
				t.Errorf("%s: one event too many", name)
			}
		}
		_ = f.conn.Close()
	}
	f, _ := l.follow("/events", "Last-Event-ID: audit:2,jobs:7,health:0")
	f.until(": still here")
	jobs.Add(1)
	f.until(`data: {"topic":"jobs","version":8}`)
}

func TestStreamsAreBoundedForEachCallerAndInAll(t *testing.T) {
	t.Parallel()
	limits := quick
	limits.All, limits.Each = 3, 2
	w := newWorld(t, func(w *world) { w.web.Live.Limits = limits })
	ann, bob := "Authorization: Bearer "+w.token("ann", 2, "read"), "Authorization: Bearer "+w.token("bob", 2, "read")
	l := w.listen(nil)
	var open []following
	for i, row := range []struct {
		who  string
		want int
	}{{ann, 200}, {ann, 200}, {ann, 429}, {bob, 200}, {bob, 503}} {
		f, status := l.follow("/events", row.who)
		if status != row.want {
			t.Errorf("%d: %d, want %d", i, status, row.want)
		}
		if status == 200 {
			f.until("id: ")
			open = append(open, f)
		}
	}
	_ = open[0].conn.Close()
	eventually(t, func() bool {
		_, status := l.follow("/events", bob)
		return status == 200
	})
}

func TestAStreamEndsWithTheTokenOrTheSessionOfItsCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.web.Live.Limits = quick })
	secret := w.token("ann", 2, "read")
	l := w.listen(nil)
	f, _ := l.follow("/events", "Authorization: Bearer "+secret)
	browser, _ := l.follow("/events", "Cookie: claudeops_session="+w.signIn(secret).Value)
	f.until(": still here")
	browser.until(": still here")
	w.revoke("ann")
	if err := errors.Join(f.end(), browser.end()); err != nil {
		t.Errorf("the streams did not end by themselves: %v", err)
	}
}

func TestAnEndingServerDoesNotWaitForItsStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { // nothing else that a stream waits for comes to it in time
		w.web.Live.Limits = live.Limits{Poll: time.Hour, Heartbeat: time.Hour, Recheck: time.Hour}
	})
	l := w.listen(nil)
	var open []following
	for range 10 {
		f, _ := l.follow("/events")
		f.until("id: ")
		open = append(open, f)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := l.server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	for _, f := range open {
		if err := f.end(); err != nil {
			t.Errorf("a stream was cut: %v", err)
		}
	}
	w.status(w.get("/events"), 503)
}

func TestAClientThatDoesNotReadIsDropped(t *testing.T) {
	t.Parallel()
	limits := quick
	limits.Write = 100 * time.Millisecond
	var version atomic.Int64
	w := newWorld(t, func(w *world) {
		w.web.Live.Limits = limits
		w.web.Live.Topics = []live.Topic{{Name: strings.Repeat("x", 1<<18),
			Version: func(context.Context) (int64, error) { return version.Add(1), nil }}}
	})
	l := w.listen(nil)
	slow, _ := l.follow("/events")
	eventually(t, func() bool { return strings.Contains(string(w.get("/metrics").body), "claudeops_event_streams 0") })
	if err := slow.end(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the stream ended with %v, want it cut", err)
	}
}

func TestNobodyListensToWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	w := newWorld(t, func(w *world) {
		w.web.Live.Limits = quick
		w.web.Live.Topics = []live.Topic{{Name: "jobs", Version: func(context.Context) (int64, error) {
			if broken.Load() {
				return 0, errors.New("the disk is gone")
			}
			return 1, nil
		}}}
	})
	l := w.listen(nil)
	f, _ := l.follow("/events")
	f.until("id: audit:0,jobs:1,health:0")
	broken.Store(true)
	if err := f.end(); err != nil {
		t.Errorf("the stream did not end by itself: %v", err)
	}
	if _, status := l.follow("/events"); status != 503 {
		t.Errorf("a new stream: %d", status)
	}
	if d := w.page("/changes", 200); attr(d.find("body")[0], "data-at") != "" {
		t.Error("a page follows what nobody can read")
	}
	broken.Store(false)
	eventually(t, func() bool {
		_, status := l.follow("/events")
		return status == 200
	})
}

func TestAHeadOfTheStreamTakesNoPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for range 20 {
		if a := w.do("HEAD", "/events", ""); a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%d %v", a.StatusCode, a.Header)
		}
	}
	w.want(w.get("/events?x=1"), 400, "invalid_argument")
}

// eventually polls until a condition holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal("it never came to hold")
		}
	}
}

// reconnect opens a stream as a client that is behind does, waits for what it missed, and vanishes. It returns the
// status.
func reconnect(addr, token string) (status int, err error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetLinger(0); err != nil { // vanish, and leave no port behind
		return 0, err
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintf(conn,
		"GET /events HTTP/1.1\r\nHost: %s\r\nLast-Event-ID: audit:1\r\nAuthorization: Bearer %s\r\n\r\n", addr,
		token); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	// in this order: a body is read to its end before it is closed
	defer func() { _, _ = conn.Close(), response.Body.Close() }()
	if response.StatusCode != 200 {
		return response.StatusCode, nil
	}
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil || strings.HasPrefix(line, "event: change") {
			return response.StatusCode, err
		}
	}
}

// held returns the resources of the process: goroutines and bytes in use.
func held() (goroutines int, bytes uint64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), m.HeapAlloc
}

func TestTenThousandReconnectsLeaveNothingBehind(t *testing.T) {
	const reconnects, clients = 10_000, 8
	w := newWorld(t, func(w *world) { w.web.Live.Limits = live.Limits{Each: 256} })
	w.refuse(3)
	l := w.listen(nil)
	for range 100 { // what is made once is made now
		if _, err := reconnect(l.addr, w.person); err != nil {
			t.Fatal(err)
		}
	}
	goroutines, bytes := held()
	var begun, told, turnedAway atomic.Int64
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for begun.Add(1) <= reconnects {
				switch status, err := reconnect(l.addr, w.person); {
				case err == nil && status == 200:
					told.Add(1)
				case err == nil && (status == 429 || status == 503): // those that vanished are still being noticed
					turnedAway.Add(1)
				default:
					t.Errorf("%d %v", status, err)
				}
			}
		})
	}
	group.Wait()
	if told.Load() < reconnects*9/10 || told.Load()+turnedAway.Load() != reconnects {
		t.Errorf("%d were told, %d turned away", told.Load(), turnedAway.Load())
	}
	eventually(t, func() bool { return strings.Contains(string(w.get("/metrics").body), "claudeops_event_streams 0\n") })
	eventually(t, func() bool { n, _ := held(); return n <= goroutines })
	if _, after := held(); after > bytes+8<<20 {
		t.Errorf("%d bytes are held, %d before", after, bytes)
	}
	t.Logf("%d told, %d turned away, %d goroutines before", told.Load(), turnedAway.Load(), goroutines)
}

// followScripts counts the scripts of a page without the one that applies the theme.
func followScripts(d document) (n int) {
	for _, script := range d.find("script") {
		if !strings.Contains(attr(script, "src"), "/static/theme.") {
			n++
		}
	}
	return n
}

func TestPagesThatFollowSayWhereTheyStand(t *testing.T) {
	t.Parallel()
	w, id := dryWorld(t, func(w *world) { w.web.Network.BasePath = "" })
	for target, follows := range map[string]bool{
		"/": true, "/changes": true, "/proposals/" + id: true, "/doctor?ask=forges": true, "/audit": true, "/policy": false,
		"/doctor": true, "/sign-in": false,
	} {
		d := w.page(target, 200)
		body, regions := d.find("body")[0], 0
		d.each(func(n *html.Node) {
			if hasAttr(n, "data-live") {
				regions++
			}
		})
		scripts := followScripts(d)
		want := map[bool]string{true: "audit:1,health:0", false: ""}[follows]
		if attr(body, "data-at") != want || scripts != 2*min(1, len(want)) || (regions > 0) != follows {
			t.Errorf("%s: at %q, %d scripts, %d regions", target, attr(body, "data-at"), scripts, regions)
		}
	}
	if d := w.page("/proposals/nothing", 404); followScripts(d) != 0 {
		t.Error("an error follows")
	}
}

func TestARefreshAfterTheSessionHasEndedIsNotLedToAnotherPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers)
	w.status(w.get("/audit", browser, header("HX-Request", "true")), 401)
	w.status(w.get("/audit", browser), 303) // without a script
	w.want(w.get("/events", header("Accept", "text/event-stream")), 401, fault.Unauthenticated)
	w.want(w.get("/events", header("Accept", "text/event-stream"), bearer(w.token("bob", 2, "propose"))), 403,
		fault.Forbidden)
}

// atOnce does something n times at the same time, and waits for all.
func atOnce(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}
