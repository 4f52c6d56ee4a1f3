package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
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

// question is one thing that init has to know.
type question struct {
	flag  string // that answers it beforehand
	intro string // printed once, before the first answer
	text  string
	usual string // what Enter answers; "" if there is nothing usual
	// check returns the value that an answer means, or why it cannot be taken.
	check func(answer string) (string, error)
	// hidden keeps the answer off the screen.
	hidden bool
}

// ask takes what was said beforehand, else what the person answers. A wrong answer is asked again, with the reason.
// Without a terminal the error names the flag.
func (q questions) ask(ctx context.Context, said string, one question) (string, error) {
	if said != "" {
		value, err := one.check(said)
		if err != nil {
			return "", app.Usage(fmt.Errorf("%s: %w", one.flag, err))
		}
		return value, nil
	}
	if !q.canAsk() {
		return "", app.Usage(fmt.Errorf("%s is missing, and there is no terminal to ask at", one.flag))
	}
	fmt.Fprint(q.out, one.intro)
	for {
		answer, err := q.read(ctx, one)
		if err != nil {
			return "", err
		}
		if answer = cmp.Or(strings.TrimSpace(answer), one.usual); answer == "" {
			fmt.Fprint(q.out, "  This needs an answer (Ctrl-C stops).\n")
			continue
		}
		value, err := one.check(answer)
		if err == nil {
			return value, nil
		}
		fmt.Fprintf(q.out, "  %s.\n", capital(err.Error()))
	}
}

// read prints a question with its usual answer, and reads one line.
func (q questions) read(ctx context.Context, one question) (string, error) {
	fmt.Fprint(q.out, one.text)
	if one.usual != "" {
		fmt.Fprintf(q.out, " [%s]", one.usual)
	}
	fmt.Fprint(q.out, " ")
	fd, _ := q.terminal()
	text, err := interruptible(ctx, fd, func() (string, error) {
		if one.hidden {
			secret, err := term.ReadPassword(fd)
			fmt.Fprintln(q.out)
			return string(secret), err
		}
		return readLine(fd, q.in)
	})
	if err != nil {
		fmt.Fprintln(q.out)
	}
	return text, err
}

// option is a line of a menu.
type option struct {
	value string
	text  string
	names []string // other answers that mean it, in lower case
}

// pick asks a question with a menu. Number, value and names are answers, in any letter case.
func (q questions) pick(ctx context.Context, said string, one question, options []option) (string, error) {
	values := make([]string, len(options))
	var menu strings.Builder
	for i, o := range options {
		values[i] = o.value
		fmt.Fprintf(&menu, "\n  %d  %s", i+1, o.text)
		if o.value == one.usual {
			one.usual = strconv.Itoa(i + 1)
		}
	}
	one.intro, one.text = one.text+menu.String()+"\n", fmt.Sprintf("Choose 1 to %d", len(options))
	one.check = func(answer string) (string, error) {
		answer = strings.ToLower(answer)
		for i, o := range options {
			if answer == o.value || answer == strconv.Itoa(i+1) && said == "" || slices.Contains(o.names, answer) {
				return o.value, nil
			}
		}
		return "", fmt.Errorf("%.20q is not one of %s", answer, strings.Join(values, ", "))
	}
	return q.ask(ctx, said, one)
}

// agree asks a question of yes or no. Without a terminal the answer is no.
func (q questions) agree(ctx context.Context, text string, usual bool) (bool, error) {
	if !q.canAsk() {
		return false, nil
	}
	one := question{text: text + " (y/n)", usual: "n", check: func(answer string) (string, error) {
		switch answer = strings.ToLower(answer); answer {
		case "y", "yes", "n", "no":
			return answer[:1], nil
		}
		return "", errors.New("answer y or n")
	}}
	if usual {
		one.usual = "y"
	}
	answer, err := q.ask(ctx, "", one)
	return answer == "y", err
}

// capital begins a sentence.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

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
