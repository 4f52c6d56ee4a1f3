package cli

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/claudeops/claudeops/internal/app"
)

func TestAServerThatIsToldToEndAnswersWhatItHasBegun(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	entered, release := make(chan struct{}), make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-release
		if r.Context().Err() != nil {
			t.Error("the request was cancelled")
		}
		_, _ = io.WriteString(w, "done")
	})}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &app.Parts{Log: slog.New(slog.DiscardHandler)}
	ended := make(chan error, 1)
	go func() { ended <- app.ServeUntil(ctx, p, server, listener) }()
	answered := make(chan string, 1)
	go func() {
		answer, err := http.Get("http://" + listener.Addr().String())
		if err != nil {
			answered <- err.Error()
			return
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		answered <- string(text)
	}()
	<-entered
	stop()
	for { // it listens no more, and yet waits
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	select {
	case err := <-ended:
		t.Fatalf("it ended with a request under way: %v", err)
	default:
	}
	close(release)
	if got := <-answered; got != "done" {
		t.Errorf("the request got %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
