package stdioproxy

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
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
				b.answerUnsent(*b.held)
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
		b.answerUnsent(*b.held)
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
				b.answerUnsent(p)
			default:
				b.held = &p
			}
		}
	}
}

// answerUnsent answers what was never sent.
func (b *bridge) answerUnsent(p piece) {
	b.within = p.part && !p.last
	if e, ok := parseEnvelope(p.text); ok && !p.part && e.isRequest() && !b.out.write(unsent().errorReply(e)) {
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
	b.copyToServer(ctx, conn, received)
	if b.ended || ctx.Err() != nil {
		_ = conn.CloseWrite() // a connection that is broken says so to receive
	}
	<-received
	return b.ended || ctx.Err() != nil || b.out.broken(), why
}

// copyToServer passes on what the client says, until it says nothing more or the connection ends.
func (b *bridge) copyToServer(ctx context.Context, conn io.Writer, received <-chan struct{}) {
	for _, line := range b.pending.replayLines() {
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

// Exit codes of the program claudeops-connect; those of claudeops.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitRefused = 3
)

// usage is the help text of the program.
const usage = `usage: claudeops-connect --connect ADDRESS [--ticket-file FILE] [--tier N] [--dry-run] [--read-only]

Connects an MCP client, which starts this program, with a Claude Ops that runs already. It holds no token and no rights: those are
the other side's, and what is given here can only lower them.

`

// Command runs the program claudeops-connect and returns its exit code. args are without the program's name.
func Command(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	var a Arguments
	flags := flag.NewFlagSet("claudeops-connect", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.Usage = func() {
		fmt.Fprint(errOut, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&a.Address, "connect", "", "address of the door, such as unix:/run/claudeops/door/mcp.sock")
	flags.StringVar(&a.TicketFile, "ticket-file", "", "file that holds the ticket; by default "+TicketName+
		" beside the socket")
	flags.IntVar(&a.Lower.Tier, "tier", 0, "the highest tier of this connection: 1, 2 or 3")
	flags.BoolVar(&a.Lower.DryRun, "dry-run", false, "check everything, write nothing")
	flags.BoolVar(&a.Lower.ReadOnly, "read-only", false, "refuse every proposal")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitDone
		}
		return exitUsage
	}
	if a.Address == "" || flags.NArg() > 0 {
		flags.Usage()
		return exitUsage
	}
	if scheme, _, _ := strings.Cut(a.Address, ":"); scheme == "https" || scheme == "http" {
		fmt.Fprintln(errOut,
			"claudeops-connect: this program speaks no HTTP; a client reaches such an address by itself (claudeops mcp-config --url)")
		return exitUsage
	}
	err := a.Run(ctx, in, out, func(text string) { fmt.Fprintln(errOut, "claudeops-connect: "+text) })
	if err != nil {
		fmt.Fprintln(errOut, "claudeops-connect: "+err.Error())
	}
	return ExitCode(err)
}

// Arguments are the arguments of both programs.
type Arguments struct {
	Address    string
	TicketFile string // "" for the one beside the socket
	Lower      Lower
}

// Run reads the ticket and runs the connector; see the function Run.
func (a Arguments) Run(ctx context.Context, in io.Reader, out io.Writer, tell func(string)) error {
	const highest = 3
	if a.Lower.Tier < 0 || a.Lower.Tier > highest {
		return &usageError{fmt.Sprintf("%d is not a tier; 1, 2 and 3 are", a.Lower.Tier)}
	}
	file := a.TicketFile
	if file == "" {
		file = ticketFile(a.Address)
	}
	o := Options{Address: a.Address, Hello: Hello{Lower: a.Lower}, Tell: tell}
	if file != "" {
		ticket, err := ReadTicket(file)
		if err != nil {
			return &usageError{err.Error()}
		}
		o.Hello.Ticket = ticket
	}
	return Run(ctx, in, out, o)
}

// usageError is an argument that cannot be used.
type usageError struct{ Problem string }

func (e *usageError) Error() string { return e.Problem }

// ExitCode returns the exit code of a program that ended with the error.
func ExitCode(err error) int {
	var usage *usageError
	var refused *RefusedError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &refused):
		return exitRefused
	}
	return exitFailed
}

// readAhead is the size of the read buffers, in bytes.
const readAhead = 16 << 10

// piece is a whole message with its line end; or a part of one that is longer than MaxMessage.
type piece struct {
	text  []byte
	part  bool // of a longer message
	last  bool // its last part
	ended bool // there is no more; text is empty
}

// reader reads messages in a goroutine of its own, one ahead at most.
type reader struct {
	pieces  chan piece
	stopped chan struct{}
}

func newReader(in io.Reader) *reader {
	r := &reader{pieces: make(chan piece), stopped: make(chan struct{})}
	go r.readLoop(bufio.NewReaderSize(in, readAhead))
	return r
}

// stop lets the goroutine end at its next message. A Read that is under way is left behind.
func (r *reader) stop() { close(r.stopped) }

func (r *reader) readLoop(in *bufio.Reader) {
	defer r.give(piece{ended: true})
	var line []byte
	long := false
	for {
		chunk, err := in.ReadSlice('\n')
		line = append(line, chunk...)
		full := errors.Is(err, bufio.ErrBufferFull)
		long = long || len(line) > MaxMessage+2 // and CR LF
		switch {
		case full && !long:
			continue
		case long:
			if !r.give(piece{text: line, part: true, last: !full}) {
				return
			}
			long = full
		case len(line) > 0:
			if line[len(line)-1] != '\n' { // the last one
				line = append(line, '\n')
			}
			if !r.give(piece{text: line}) {
				return
			}
		}
		if err != nil && !full {
			return
		}
		line = nil
	}
}

func (r *reader) give(p piece) bool {
	select {
	case r.pieces <- p:
		return true
	case <-r.stopped:
		return false
	}
}

// writer writes whole messages, from several goroutines.
type writer struct {
	mu     sync.Mutex
	out    io.Writer
	failed error
}

// write writes a message; false if the reader is gone.
func (w *writer) write(line []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		_, w.failed = w.out.Write(line)
	}
	return w.failed == nil
}

// broken reports whether the reader is gone.
func (w *writer) broken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed != nil
}
