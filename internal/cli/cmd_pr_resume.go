package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation/people"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
)

func prResumeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "resume",
		Short: "Settle what killed processes and unclear answers have left",
		Long: "resume looks at the provider for each proposal that a process left behind, or whose provider gave no clear answer: an open\n" +
			"pull request is recorded, a branch without one is removed if it is still ours. What was sent to a forge may arrive late, so\n" +
			"there a branch is removed no earlier than a quarter of an hour after its proposal; the identical proposal goes on with it at\n" +
			"once. Then resume looks, in the repositories that the records or the allowlist name, for branches of ours without a record:\n" +
			"those that carry our mark, are an hour old and have no pull request are removed. What another process is working on is left\n" +
			"alone. It ends with exit code 4 if something could not be settled. An mcp-server does the first part before its first\n" +
			"proposal, and claudeops serve does both as long as it runs.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := a.wire(needs{})
			var settled []prflow.Settled
			err := p.people().Do(cmd.Context(), people.Act{Action: people.Resume, By: a.caller(p)}, func(people.Row) (err error) {
				if settled, err = p.flow.Resume(cmd.Context()); err != nil {
					return err
				}
				lookAgain(cmd.Context(), p, settled)
				swept, err := prflow.NewRounds(p.flow, roundRecords{p.store.Rounds, p.store.History}).Sweep(cmd.Context())
				for _, b := range swept {
					settled = append(settled, prflow.Settled{Repo: b.Repo, Branch: b.Branch, Error: b.Error})
				}
				return err
			})
			if err != nil {
				return err
			}
			return printSettled(a, settled)
		},
	}
}

// lookAgain brings the records of the pull requests up to date with their providers: they may have ended since. What
// cannot be looked at now is looked at by the next round of a server.
func lookAgain(ctx context.Context, p *parts, settled []prflow.Settled) {
	follower := newFollower(p)
	for _, s := range settled {
		if s.Number > 0 {
			if err := follower.Look(ctx, s.Key, record.DoorCLI); err != nil {
				p.log.Warn("pull request not looked at", "number", s.Number, "error", fault.From(err).Message)
			}
		}
	}
}

// printSettled prints what was settled. Entries without a request id are branches without a record.
func printSettled(a *app, settled []prflow.Settled) error {
	failed := slices.ContainsFunc(settled, func(s prflow.Settled) bool { return s.Error != "" })
	err := a.print(listOf(settled), func(w *strings.Builder) {
		if len(settled) == 0 {
			w.WriteString("Nothing was left unfinished.\n")
		}
		for _, s := range settled {
			switch {
			case s.Live:
				fmt.Fprintf(w, "%s  %s  is being worked on\n", s.RequestID, s.Repo)
			case s.Late != "":
				fmt.Fprintf(w, "%s  %s  waits until %s: what was sent to the provider may still arrive\n", s.RequestID, s.Repo, s.Late)
			case s.RequestID == "" && s.Error != "":
				fmt.Fprintf(w, "%s  %s  branches not settled: %s\n", s.Repo, s.Branch, s.Error)
			case s.RequestID == "":
				fmt.Fprintf(w, "%s  %s  removed: it had no pull request\n", s.Repo, s.Branch)
			case s.Error != "":
				fmt.Fprintf(w, "%s  %s  not settled: %s\n", s.RequestID, s.Repo, s.Error)
			case s.Number > 0:
				fmt.Fprintf(w, "%s  %s  settled: it is #%d\n", s.RequestID, s.Repo, s.Number)
			default:
				fmt.Fprintf(w, "%s  %s  settled: nothing of it remains\n", s.RequestID, s.Repo)
			}
		}
	})
	if err == nil && failed {
		return silentExit(fault.ExitProvider)
	}
	return err
}
