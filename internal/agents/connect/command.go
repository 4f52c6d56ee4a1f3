package connect

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

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
		return &usageError{fmt.Sprintf("%d is no tier; 1, 2 and 3 are", a.Lower.Tier)}
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
