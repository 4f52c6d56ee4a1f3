package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
)

// How long a command waits for the end of what it has begun, and how often it looks. Calls that write are finished
// first.
const (
	overWait = 45 * time.Second
	overLook = 200 * time.Millisecond
)

// actCommand returns the command of an act of people: its arguments are the fields of its input that name what it is
// about, and its flags the others. A list is a table.
func actCommand(a *commandLine, o operation.Operation, name string) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: cmp.Or(o.Shown.Short, o.Summary), Long: o.Shown.Help, Example: o.Shown.Example,
		Args: usageArgs(cobra.NoArgs)}
	if reads := o.Effect == operation.Read; reads && o.Shown.View == nil || !reads && o.Shown.Said == nil {
		panic("operation " + o.Name + ": its command has nothing to say") // so that no test passes with it
	}
	flags := inputFlags(cmd, o.Input)
	fields := slices.DeleteFunc(operation.Fields(o.Input), func(f operation.Field) bool { return f.Tag.Get("path") == "" })
	for _, f := range fields {
		cmd.Use, cmd.Args = cmd.Use+" "+strings.ToUpper(f.JSON), usageArgs(cobra.ExactArgs(len(fields)))
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.program().Wire(app.Needs{Records: !o.Shown.Fresh})
		in := flags()
		for i, f := range fields {
			in[f.JSON] = args[i]
		}
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		done := working(a, o.Summary)
		out, err := a.ask(cmd.Context(), o, raw)
		done()
		if fault.CodeOf(err) == fault.InvalidArgument { // an argument was typed wrongly
			return app.Usage(err)
		}
		if err != nil {
			return err
		}
		if o.Effect == operation.Read {
			return printView(a, o, out)
		}
		over, err := waitUntilOver(cmd.Context(), o, out)
		if err != nil {
			return err
		}
		return printDone(a, o, out, over)
	}
	return cmd
}

func printView(a *commandLine, o operation.Operation, out any) error {
	view, answer := o.Shown.View(out), out
	if o.Shown.JSON != nil {
		answer = o.Shown.JSON(out)
	}
	return a.print(asList(answer), func(w *strings.Builder) {
		if len(view.Table) < 2 && view.Empty != "" {
			w.WriteString(view.Empty + "\n")
			return
		}
		columns(w, view.Table)
	})
}

// printDone says what was done, and whether what was waited for is over.
func printDone(a *commandLine, o operation.Operation, out any, over bool) error {
	text, err := json.Marshal(out)
	members := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	if err != nil {
		return err
	}
	if o.Shown.Over != nil {
		members["ended"] = over
	}
	err = a.print(members, func(w *strings.Builder) {
		if o.Shown.View != nil {
			columns(w, o.Shown.View(out).Table)
		}
		if said := o.Shown.Said(out, over); said != "" {
			w.WriteString(said + "\n")
		}
	})
	if err == nil && o.Shown.Failed != nil && o.Shown.Failed(out) {
		return silentExit(fault.ExitProvider)
	}
	return err
}

// waitUntilOver reports whether what an act has begun is over, or still is not after a while.
func waitUntilOver(ctx context.Context, o operation.Operation, out any) (bool, error) {
	if o.Shown.Over == nil {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, overWait)
	defer cancel()
	for {
		over, err := o.Shown.Over(ctx, out)
		if ctx.Err() != nil {
			return false, nil //nolint:nilerr // its time is over
		}
		if err != nil || over {
			return over && err == nil, err
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-time.After(overLook):
		}
	}
}
