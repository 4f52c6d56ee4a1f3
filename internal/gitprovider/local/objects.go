package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/git"
)

// objects reads objects one after the other from one git cat-file process. It is asked by object id only. It is not
// safe for concurrent use.
type objects struct {
	ctx  context.Context // of the call that opened it, and which it does not outlive
	git  *runner
	call command
	talk *git.Talk
	out  *bufio.Reader
}

// object says what an object is.
type object struct {
	id, kind string
	size     int64
}

var errMissing = errors.New("the object is missing")

// open starts the process; close must follow.
func (w *workspace) open(ctx context.Context) (*objects, error) {
	o := &objects{ctx: ctx, git: w.git, call: w.command(nil, nil, "cat-file", "--batch-command")}
	var err error
	if o.talk, err = w.git.git.Talk(ctx, w.git.callOf(o.call), w.git.limits(o.call)); err != nil {
		return nil, w.git.outcome(ctx, o.call, git.Result{}, err)
	}
	o.out = bufio.NewReader(o.talk.Out)
	return o, nil
}

// close ends the process. problem is an error that occurred meanwhile, or nil: a fault is returned unchanged; for
// another error, the reason that git gives is preferred.
func (o *objects) close(problem error) error {
	result, err := o.talk.Close()
	err = o.git.outcome(o.ctx, o.call, result, err)
	if known := (*fault.Error)(nil); errors.As(problem, &known) {
		return problem
	}
	if err == nil && problem != nil {
		err = fault.Wrap(problem, fault.UpstreamError,
			"an object of the repository cannot be read; ask the operator to run git fsck")
	}
	return err
}

// info says what an object is.
func (o *objects) info(name string) (object, error) {
	if _, err := fmt.Fprintf(o.talk.In, "info %s\n", name); err != nil {
		return object{}, err
	}
	return o.header()
}

// contents reads an object of at most maxOutput bytes.
func (o *objects) contents(name string) ([]byte, error) {
	if _, err := fmt.Fprintf(o.talk.In, "contents %s\n", name); err != nil {
		return nil, err
	}
	obj, err := o.header()
	if err != nil {
		return nil, err
	}
	if obj.size > maxOutput {
		return nil, git.ErrTooMuch
	}
	data := make([]byte, obj.size+1) // git ends the contents with a line feed
	if _, err := io.ReadFull(o.out, data); err != nil {
		return nil, err
	}
	return data[:obj.size], nil
}

// header reads "<id> <type> <size>", or "<name> missing".
func (o *objects) header() (object, error) {
	line, err := o.out.ReadString('\n')
	if err != nil {
		return object{}, err
	}
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return object{}, fmt.Errorf("%w: %.100q", errMissing, line)
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return object{}, fmt.Errorf("unexpected answer %.100q", line)
	}
	return object{id: fields[0], kind: fields[1], size: size}, nil
}
