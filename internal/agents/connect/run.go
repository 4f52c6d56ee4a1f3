package connect

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Bounds of a connector where Options say nothing else.
const (
	firstPause   = 50 * time.Millisecond // between two attempts to connect; doubled each time
	longestPause = 2 * time.Second
	holdTime     = 10 * time.Second // for which messages wait for a door that is away; then calls are refused
	giveUpTime   = 5 * time.Minute  // after which a door is taken to be gone for good
	endTime      = 5 * time.Second  // for answers, after the connector was told to end by a signal
)

// Options configures a connector. Address and Hello are required.
type Options struct {
	Address string
	Hello   Hello
	// Dial reaches the door; nil for the function of that name.
	Dial func(ctx context.Context, address string, hello Hello) (Conn, error)
	// Tell receives an occasional sentence for people, without a line end; nil discards them.
	Tell func(text string)
	// Hold, GiveUp and End replace the bounds of the same names; 0 for those.
	Hold, GiveUp, End time.Duration
}

func (o Options) withDefaults() Options {
	if o.Dial == nil {
		o.Dial = Dial
	}
	if o.Tell == nil {
		o.Tell = func(string) {}
	}
	for value, fallback := range map[*time.Duration]time.Duration{&o.Hold: holdTime, &o.GiveUp: giveUpTime,
		&o.End: endTime} {
		if *value <= 0 {
			*value = fallback
		}
	}
	return o
}

// Run copies messages between a client and a door until in ends and all is answered, out breaks, or ctx ends; then it
// returns nil. While the door cannot be reached it keeps trying: pending calls of tools are answered with an error,
// since their outcome is unknown; everything else is sent once more, after the client's own initialize. An error says
// that the door refuses (*RefusedError), that its address is malformed, or that it could not be reached in time; all
// requests are answered before.
//
// A Read of in may outlive Run.
func Run(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	b := &bridge{options: o.withDefaults(), in: newReader(in), out: &writer{out: out}}
	defer b.in.stop()
	for {
		conn, err := b.dial(ctx)
		if conn == nil {
			if b.held != nil {
				b.refuse(*b.held)
			}
			b.answerAll(b.pending.lost(true))
			return err
		}
		over, why := b.copy(ctx, conn)
		b.answerAll(b.pending.lost(over))
		if over {
			return nil
		}
		b.options.Tell("the connection to Claude Ops broke" + why + "; trying again")
	}
}

// bridge is one run of a connector.
type bridge struct {
	options Options
	in      *reader
	out     *writer
	pending pending
	ended   bool   // the client sends nothing more
	held    *piece // that came while the door was away
	within  bool   // the last piece was a part of a long message, and more of it comes
	rest    bool   // what comes is the rest of a message whose beginning went to a door that is gone
}

func (b *bridge) answerAll(lines [][]byte) {
	for _, line := range lines {
		b.out.write(line)
	}
}

// dial connects, however long it takes. It returns nil, and perhaps no error, if there is nothing more to do.
func (b *bridge) dial(ctx context.Context) (Conn, error) {
	began, pause, told := time.Now(), firstPause, false
	for {
		conn, err := b.options.Dial(ctx, b.options.Address, b.options.Hello)
		if err == nil {
			return conn, nil
		}
		var refused *RefusedError
		var malformed *usageError
		switch away := time.Since(began); {
		case b.ended || ctx.Err() != nil:
			return nil, nil
		case errors.As(err, &refused) && !refused.Retry, errors.As(err, &malformed):
			return nil, err
		case away > b.options.GiveUp:
			return nil, fmt.Errorf("Claude Ops could not be reached for %s: %w", b.options.GiveUp, err) //nolint:staticcheck // a name
		default:
			if away > b.options.Hold && !told {
				told = true
				b.options.Tell("Claude Ops cannot be reached; trying again: " + err.Error())
			}
			b.wait(ctx, pause, away > b.options.Hold)
		}
		pause = min(2*pause, longestPause)
	}
}

// wait waits for the next attempt. With refuse, what the client sends meanwhile is answered; otherwise one piece is
// held, so that the client's end is noticed behind it.
func (b *bridge) wait(ctx context.Context, pause time.Duration, refuse bool) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	if refuse && b.held != nil {
		b.refuse(*b.held)
		b.held = nil
	}
	for !b.ended {
		pieces := b.in.pieces
		if b.held != nil {
			pieces = nil
		}
		select {
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		case p := <-pieces:
			switch {
			case p.ended:
				b.ended = true
			case refuse:
				b.refuse(p)
			default:
				b.held = &p
			}
		}
	}
}

// refuse answers what was never sent.
func (b *bridge) refuse(p piece) {
	b.within = p.part && !p.last
	if e, ok := look(p.text); ok && !p.part && e.isRequest() && !b.out.write(unsent().answer(e)) {
		b.ended = true
	}
}

// copy passes messages in both directions until the connection ends, and reports whether the client has ended it, and
// what else is known of the end, for people.
func (b *bridge) copy(ctx context.Context, conn Conn) (over bool, why string) {
	var closing sync.Once
	end := func() { closing.Do(func() { _ = conn.Close() }) } // what was not sent is lost, as with a broken connection
	defer end()
	received := make(chan struct{})
	go func() {
		defer close(received)
		defer end() // a write that waits for the door ends with it
		if err := b.receive(conn); err != nil && !errors.Is(err, io.EOF) {
			why = " (" + err.Error() + ")"
		}
	}()
	told := context.AfterFunc(ctx, func() {
		if b.pending.empty() {
			end()
			return
		}
		_ = conn.CloseWrite()
		time.AfterFunc(b.options.End, end)
	})
	defer told()
	b.send(ctx, conn, received)
	if b.ended || ctx.Err() != nil {
		_ = conn.CloseWrite() // a connection that is broken says so to receive
	}
	<-received
	return b.ended || ctx.Err() != nil || b.out.broken(), why
}

// send passes on what the client says, until it says nothing more or the connection ends.
func (b *bridge) send(ctx context.Context, conn io.Writer, received <-chan struct{}) {
	for _, line := range b.pending.again() {
		if _, err := conn.Write(line); err != nil {
			return
		}
	}
	b.rest = b.within
	if b.held != nil {
		p := *b.held
		b.held = nil
		if !b.pass(p, conn) {
			return
		}
	}
	for !b.ended {
		select {
		case p := <-b.in.pieces:
			if !b.pass(p, conn) {
				return
			}
		case <-received:
			return
		case <-ctx.Done():
			return
		}
	}
}

// pass passes a piece on; false if that failed.
func (b *bridge) pass(p piece, conn io.Writer) bool {
	b.ended, b.within = p.ended, p.part && !p.last
	if b.rest || p.ended {
		b.rest = b.rest && b.within
		return true
	}
	if !p.part {
		b.pending.sent(p.text)
	}
	_, err := conn.Write(p.text)
	return err == nil
}

// receive passes complete messages from the door to the client. It returns an error when the connection ends, and nil
// when the client has stopped reading.
func (b *bridge) receive(conn io.Reader) error {
	in := bufio.NewReaderSize(conn, readAhead)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return err
		}
		if b.pending.answered(line) && !b.out.write(line) {
			return nil
		}
	}
}
