package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/claudeops/claudeops/internal/app"
)

// questions asks a person at a terminal for what flags did not say.
type questions struct {
	in        io.Reader
	out       io.Writer
	fromInput bool // standard input holds something else
}

var errInterrupted = errors.New("interrupted; nothing was written")

func (q questions) terminal() (fd int, ok bool) {
	file, isFile := q.in.(*os.File)
	if !isFile || q.fromInput || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	return int(file.Fd()), true
}

func (q questions) canAsk() bool {
	_, ok := q.terminal()
	return ok
}

// text is what was said, else what the person answers. Without a terminal it names the flag that is missing.
func (q questions) text(ctx context.Context, said, flag, question string) (string, error) {
	return q.answer(ctx, said, flag, question, readLine)
}

// secret is text that is not shown while it is typed.
func (q questions) secret(ctx context.Context, said, flag, question string) (string, error) {
	return q.answer(ctx, said, flag, question, func(fd int, _ io.Reader) (string, error) {
		text, err := term.ReadPassword(fd)
		return string(text), err
	})
}

func (q questions) answer(ctx context.Context, said, flag, question string,
	read func(fd int, in io.Reader) (string, error)) (string, error) {
	if said != "" {
		return said, nil
	}
	fd, ok := q.terminal()
	if !ok {
		return "", app.Usage(fmt.Errorf("%s is missing, and there is no terminal to ask at", flag))
	}
	for {
		fmt.Fprintf(q.out, "%s ", question)
		text, err := interruptible(ctx, fd, func() (string, error) { return read(fd, q.in) })
		if err != nil {
			fmt.Fprintln(q.out)
			return "", err
		}
		if text = strings.TrimSpace(text); text != "" {
			return text, nil
		}
	}
}

// choice is text that is one of several.
func (q questions) choice(ctx context.Context, said, flag, question string, choices ...string) (string, error) {
	for {
		text, err := q.text(ctx, said, flag, question)
		switch {
		case err != nil || slices.Contains(choices, text):
			return text, err
		case said != "":
			return "", app.Usage(fmt.Errorf("%s is %.20q; choose %s", flag, said, strings.Join(choices, ", ")))
		}
	}
}

// interruptible reads until ctx is done, and leaves the terminal as it was: a read that waits cannot be ended
// otherwise.
func interruptible(ctx context.Context, fd int, read func() (string, error)) (string, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	type answer struct {
		text string
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		text, err := read()
		done <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
		_ = term.Restore(fd, before)
		return "", app.Usage(errInterrupted)
	case a := <-done:
		if errors.Is(a.err, io.EOF) {
			return "", app.Usage(errInterrupted)
		}
		return a.text, a.err
	}
}

// readLine reads one line and nothing behind it, since others read from the same terminal.
func readLine(_ int, in io.Reader) (string, error) {
	var line []byte
	one := make([]byte, 1)
	for len(line) < maxLine {
		n, err := in.Read(one)
		switch {
		case n == 1 && one[0] == '\n':
			return string(line), nil
		case n == 1:
			line = append(line, one[0])
		case err != nil:
			return string(line), err
		}
	}
	return "", app.Usage(errors.New("the answer is too long"))
}

// maxLine bounds an answer, in bytes.
const maxLine = 4096
