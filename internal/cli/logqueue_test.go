package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestLinesArriveInTheirOrder(t *testing.T) {
	var out bytes.Buffer
	q := newLogWriter(&out, nil)
	want := ""
	for i := range 500 {
		line := fmt.Sprintf("line %d\n", i)
		want += line
		if n, err := q.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	q.Close(time.Minute)
	if out.String() != want {
		t.Errorf("got %.200q", out.String())
	}
}

func TestAPipeThatNobodyReadsStopsNobody(t *testing.T) {
	in, out, err := os.Pipe()
	must.Do(t, err)
	q := newLogWriter(out, nil)
	const lines = 20 * maxLines
	line := []byte(strings.Repeat("x", 199) + "\n")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range lines / 4 {
				_, _ = q.Write(line)
			}
		})
	}
	all.Wait()                     // with a writer that waits, for ever
	q.Close(50 * time.Millisecond) // returns though nothing can be written
	got, dropped := 0, 0
	read := bufio.NewScanner(in)
	for got+dropped < lines && read.Scan() {
		n := 0
		if _, err := fmt.Sscanf(read.Text(), "%d log lines were dropped", &n); err == nil {
			dropped += n
		} else {
			got++
		}
	}
	if got+dropped != lines || dropped == 0 || got < maxLines {
		t.Errorf("%d lines arrived and %d were dropped, of %d", got, dropped, lines)
	}
	_, _ = in.Close(), out.Close()
}

func TestFlushWaitsForWhatWasWrittenBefore(t *testing.T) {
	in, out := io.Pipe()
	q := newLogWriter(out, nil)
	_, _ = q.Write([]byte("one\n"))
	_, _ = q.Write([]byte("two\n"))
	q.Flush(time.Millisecond) // without a reader it gives up
	flushed := make(chan struct{})
	go func() {
		q.Flush(time.Minute)
		close(flushed)
	}()
	read := bufio.NewScanner(in)
	for _, want := range []string{"one", "two"} {
		select {
		case <-flushed:
			t.Fatalf("it waited for no %q", want)
		default:
		}
		if !read.Scan() || read.Text() != want {
			t.Fatalf("got %q, want %q", read.Text(), want)
		}
	}
	<-flushed
	q.Close(time.Minute)
}

func TestAHugeLineIsDropped(t *testing.T) {
	var out bytes.Buffer
	q := newLogWriter(&out, func(lines int) []byte { return fmt.Appendf(nil, "{%d}\n", lines) })
	_, _ = q.Write(make([]byte, maxBytes+1))
	q.Close(time.Minute)
	_, _ = q.Write([]byte("late\n"))
	if out.String() != "{1}\n" {
		t.Errorf("got %.100q", out.String())
	}
}
