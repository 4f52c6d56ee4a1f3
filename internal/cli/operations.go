package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
)

// callOperation does an operation for the person at the terminal, and shows that it is at work if it takes long.
func (a *commandLine) callOperation(ctx context.Context, o operation.Operation, arguments []byte) (any, error) {
	call, err := app.AtTerminal(ctx, a.program().Wire(app.Needs{}))
	if err == nil {
		err = app.MayAtTerminal(call, o.Needs)
	}
	if err != nil {
		return nil, err
	}
	call.Arguments = arguments
	defer working(a, o.Summary)()
	return o.Handle(ctx, call)
}

// act does an act of people for the person at the terminal, whose command has read the input itself.
func (a *commandLine) act(ctx context.Context, name string, in any) (any, error) {
	p := a.program().Wire(app.Needs{})
	o := app.ActNamed(app.Acts(func() *app.Parts { return p }), name)
	call, err := app.AtTerminal(ctx, p)
	if err == nil {
		err = app.MayAtTerminal(call, o.Needs)
	}
	if err != nil {
		return nil, err
	}
	call.Input = in
	return o.Handle(ctx, call)
}

// askFor is ask for an operation that has a command of its own, by its name. in is its input, or that as JSON.
func askFor[Out any](ctx context.Context, a *commandLine, name string, in any) (out Out, err error) {
	arguments, isJSON := in.([]byte)
	if !isJSON {
		if arguments, err = json.Marshal(in); err != nil {
			return out, err
		}
	}
	o := operation.Named(operation.List(a.program().Toolsets()...), name)
	if o.Handle == nil {
		return out, errors.New("there is no operation " + name)
	}
	result, err := a.callOperation(ctx, o, arguments)
	if err == nil {
		out, _ = result.(Out)
	}
	return out, err
}

// addOperations gives a command to each operation that has none yet. mcp-server, which starts with every session of an
// agent, does without them.
func (a *commandLine) addOperations(root *cobra.Command) {
	if len(a.args) > 0 && a.args[0] == "mcp-server" {
		return
	}
	for _, o := range append(operation.List(a.program().Toolsets()...),
		app.Acts(func() *app.Parts { return a.program().Wire(app.Needs{}) })...) {
		if o.Command == "" {
			continue
		}
		words := strings.Fields(o.Command)
		parent, last := root, len(words)-1
		for _, word := range words[:last] {
			found := child(parent, word)
			if found == nil {
				found = group(word, "Commands of "+word)
				parent.AddCommand(found)
			}
			parent = found
		}
		if child(parent, words[last]) == nil {
			if o.ForPeople() {
				parent.AddCommand(actCommand(a, o, words[last]))
			} else {
				parent.AddCommand(planFirst(a, o, a.operationCommand(o, words[last])))
			}
		}
	}
}

func child(parent *cobra.Command, name string) *cobra.Command {
	at := slices.IndexFunc(parent.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
	if at < 0 {
		return nil
	}
	return parent.Commands()[at]
}

// operationCommand returns the command of an operation: a flag for each field of its input that holds one value or a
// list of texts, and --from for the whole input as JSON. The answer is JSON.
func (a *commandLine) operationCommand(o operation.Operation, name string) *cobra.Command {
	var from string
	cmd := &cobra.Command{Use: name, Short: o.Summary, Long: o.Tool.Description, Example: o.Shown.Example,
		Args: usageArgs(cobra.NoArgs)}
	flags := inputFlags(cmd, o.Input)
	given, take := positional(cmd, o.Input, flags)
	cmd.Flags().StringVar(&from, "from", "", "file with the whole request as JSON; - reads stdin")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := take(args); err != nil {
			return err
		}
		in := given()
		if err := a.completeIDs(cmd.Context(), o, in); err != nil {
			return err
		}
		raw, err := json.Marshal(in)
		switch {
		case from != "" && len(given()) > 0:
			return app.Usage(errors.New("--from holds the whole request: leave the other flags out"))
		case from != "":
			raw, err = a.readInput(from)
		}
		if err != nil {
			return err
		}
		result, err := a.callOperation(cmd.Context(), o, raw)
		if form := a.formOf(o); form != nil {
			return a.printInForm(form, o, result, err)
		}
		if err != nil {
			return err
		}
		if strings.HasPrefix(o.Name, "list_") {
			result = asList(result)
		}
		return a.printJSON(result)
	}
	return cmd
}

// positional lets a command take the fields with the tag positional without their flags, too, in their order; the last
// one takes all remaining words if it is a list. take receives the words, and given returns the values set in either
// way.
func positional(cmd *cobra.Command, input reflect.Type, flags func() map[string]any) (given func() map[string]any,
	take func(words []string) error) {
	named := map[string]any{}
	given = func() map[string]any {
		all := flags()
		maps.Copy(all, named)
		return all
	}
	var fields []string
	lists := map[string]bool{}
	for _, f := range operation.Fields(input) {
		if f.Tag.Get("positional") == "true" {
			fields = append(fields, f.JSON)
			lists[f.JSON] = f.Type.Kind() == reflect.Slice
			cmd.Use += " [" + strings.ToUpper(f.JSON) + "]"
		}
	}
	if len(fields) == 0 {
		return given, func([]string) error { return nil }
	}
	most := len(fields)
	if lists[fields[most-1]] {
		cmd.Use, most = cmd.Use+"...", math.MaxInt
	}
	cmd.Args = usageArgs(cobra.MaximumNArgs(most))
	return given, func(words []string) error {
		for i, word := range words {
			field := fields[min(i, len(fields)-1)]
			switch set := flags(); {
			case set[field] != nil:
				return app.Usage(fmt.Errorf("%s is given twice, with its flag and without", field))
			case lists[field]:
				list, _ := named[field].([]string)
				named[field] = append(list, word)
			default:
				named[field] = word
			}
		}
		return nil
	}
}

// inputFlags adds the flags of an input type. given returns the flags that were set, by the names in JSON.
func inputFlags(cmd *cobra.Command, input reflect.Type) (given func() map[string]any) {
	values := map[string]func() any{} // by the name of the flag
	names := map[string]string{}
	for _, f := range operation.Fields(input) {
		flag := strings.ReplaceAll(f.JSON, "_", "-")
		usage := usageOf(f.StructField)
		kind := f.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		switch {
		case kind.Kind() == reflect.String:
			v := cmd.Flags().String(flag, "", usage)
			values[flag] = func() any { return *v }
		case kind.Kind() == reflect.Int:
			v := cmd.Flags().Int(flag, 0, usage)
			values[flag] = func() any { return *v }
		case kind.Kind() == reflect.Bool:
			v := cmd.Flags().Bool(flag, false, usage)
			values[flag] = func() any { return *v }
		case kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.String:
			v := cmd.Flags().StringArray(flag, nil, usage+"; may be repeated")
			values[flag] = func() any { return *v }
		default:
			continue // by --from
		}
		names[flag] = f.JSON
	}
	return func() map[string]any {
		set := map[string]any{}
		for flag, name := range names {
			if cmd.Flags().Changed(flag) {
				set[name] = values[flag]()
			}
		}
		return set
	}
}

// usageOf returns the help of a field's flag: its doc, and what may be given.
func usageOf(f reflect.StructField) string {
	parts := []string{}
	if doc := f.Tag.Get("doc"); doc != "" {
		parts = append(parts, doc)
	}
	if enum := f.Tag.Get("enum"); enum != "" {
		parts = append(parts, "one of "+strings.ReplaceAll(enum, ",", ", "))
	}
	if most := f.Tag.Get("maxLength"); most != "" {
		parts = append(parts, "at most "+most+" characters")
	}
	if f.Tag.Get("required") == "true" {
		parts = append(parts, "required")
	}
	return strings.Join(parts, "; ")
}

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
		if err := a.completeIDs(cmd.Context(), o, in); err != nil {
			return err
		}
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		out, err := a.callOperation(cmd.Context(), o, raw)
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
		viewRows(w, view)
	})
}

// viewRows adds the table of a view. One that does not say how it gives way is cut where sentences stand.
func viewRows(w *strings.Builder, v operation.View) {
	if len(v.Text)+len(v.Goes) == 0 || len(v.Table) == 0 {
		columns(w, v.Table)
		return
	}
	listing(w, layout{text: v.Text, goes: v.Goes}, v.Table)
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
			viewRows(w, o.Shown.View(out))
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
