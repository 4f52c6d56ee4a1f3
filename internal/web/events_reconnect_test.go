package web_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/web/live"
)

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
