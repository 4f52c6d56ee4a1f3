package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/agents/connections"
	"github.com/claudeops/claudeops/internal/agents/tokens"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/ops/allowed"
	"github.com/claudeops/claudeops/internal/ops/retention"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/settings/sources"
)

// acts are what people do, whatever they come through. Making them touches nothing.
func acts(p func() *parts) []operation.Operation {
	kernel := func() *operation.Kernel { return p().kernel }
	return slices.Concat(
		connections.Acts{Kernel: kernel, Store: func() connections.Store { return p().store.Connections() }, Now: time.Now}.Operations(),
		newTokens(p).Operations(),
		newSessionActs(p).Operations(),
		newAllowed(p).Operations(),
		[]operation.Operation{newRetention(p).Operation(), newSettling(p).Operation()},
		deploy.Acts{
			Kernel: kernel, Service: func() *deploy.Service { return p().tools.deploy() }, Audit: func() operation.Audit { return p().store.Ledger },
		}.Operations(),
	)
}

// actNamed is the act of a name.
func actNamed(acts []operation.Operation, name string) operation.Operation {
	at := slices.IndexFunc(acts, func(o operation.Operation) bool { return o.Name == name })
	return acts[at]
}

func newAllowed(p func() *parts) allowed.Acts {
	return allowed.Acts{
		Kernel: func() *operation.Kernel { return p().kernel }, Audit: func() operation.Audit { return p().store.Ledger },
		File: func() (sources.File, error) {
			file := p().allowedSources()
			if file.Path == "" {
				return file, fault.New(fault.Misconfigured, "%s", p().cfg.Records.Problem)
			}
			return file, nil
		},
		Policy: func() (policy.Policy, error) {
			if problem := p().rules.problem(); problem != "" {
				return policy.Policy{}, fault.New(fault.Misconfigured, "%s", problem)
			}
			return p().rules.policy, nil
		},
	}
}

func newTokens(p func() *parts) tokens.Acts {
	return tokens.Acts{
		Kernel: func() *operation.Kernel { return p().kernel }, Store: func() tokens.Store { return p().store.Access },
		Random: rand.Reader, Now: time.Now, NewID: newID,
	}
}

func newRetention(p func() *parts) retention.Acts {
	return retention.Acts{
		Kernel: func() *operation.Kernel { return p().kernel }, Store: func() retention.Store { return p().store.Retention },
		Keep: func() time.Duration { return p().cfg.Records.Retention }, Now: time.Now,
	}
}

func newSettling(p func() *parts) prflow.Settling {
	return prflow.Settling{
		Kernel: func() *operation.Kernel { return p().kernel }, Log: func() *slog.Logger { return p().log },
		Rounds: func() *prflow.Rounds {
			return prflow.NewRounds(p().flow, roundRecords{p().store.Rounds, p().store.History})
		},
		Look: func(ctx context.Context, key record.PullKey, by record.Door) error {
			return newFollower(p()).Look(ctx, key, by)
		},
	}
}

// How long a command waits for the end of what it has begun, and how often it looks. Calls that write are finished
// first.
const (
	overWait = 45 * time.Second
	overLook = 200 * time.Millisecond
)

// actCommand is the command of an act of people: its arguments are the fields of its input that name what it is about,
// and its flags the others. A list is a table.
func actCommand(a *app, o operation.Operation, name string) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: cmp.Or(o.Shown.Short, o.Summary), Long: o.Shown.Help, Example: o.Shown.Example, Args: usageArgs(cobra.NoArgs)}
	if reads := o.Effect == operation.Read; reads && o.Shown.View == nil || !reads && o.Shown.Said == nil {
		panic("operation " + o.Name + ": its command has nothing to say") // so that no test passes with it
	}
	flags := inputFlags(cmd, o.Input)
	fields := slices.DeleteFunc(operation.Fields(o.Input), func(f operation.Field) bool { return f.Tag.Get("path") == "" })
	for _, f := range fields {
		cmd.Use, cmd.Args = cmd.Use+" "+strings.ToUpper(f.JSON), usageArgs(cobra.ExactArgs(len(fields)))
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.wire(needs{records: !o.Shown.Fresh})
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
			return usageError{err}
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

func printView(a *app, o operation.Operation, out any) error {
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
func printDone(a *app, o operation.Operation, out any, over bool) error {
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
