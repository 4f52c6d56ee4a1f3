package prflow

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Settling is the act of a person who has settled what was left. All fields are required.
type Settling struct {
	Kernel func() *operation.Kernel
	Rounds func() *Rounds
	// Look brings the record of a pull request up to date with its provider: it may have ended since.
	Look func(ctx context.Context, key record.PullKey, by record.Door) error
	Log  func() *slog.Logger
}

// SettledList lists the settled proposals. Entries without a request id are branches without a record.
type SettledList struct {
	Items []Settled `json:"items"`
}

// Operation settles what killed processes and unclear answers have left.
func (s Settling) Operation() operation.Operation {
	return operation.Define(s.Kernel, "", operation.Operation{
		Name: "resume", Action: "create_pr.resume", Summary: "Settle what killed processes and unclear answers have left",
		Effect:  operation.Write,
		Command: "pr resume", Needs: operation.Needs{For: operation.Person, Policy: true, Writable: true},
		Shown: operation.Shown{
			Fresh: true,
			Help: "resume looks at the provider for each proposal that a process left behind, or whose provider gave no clear " +
				"answer: an open\n" +
				"pull request is recorded, a branch without one is removed if it is still ours. What was sent to a forge may " +
				"arrive late, so\n" +
				"there a branch is removed no earlier than a quarter of an hour after its proposal; the identical proposal goes " +
				"on with it at\n" +
				"once. Then resume looks, in the repositories that the records or the allowlist name, for branches of ours " +
				"without a record:\n" +
				"those that carry our mark, are an hour old and have no pull request are removed. What another process is " +
				"working on is left\n" +
				"alone. It ends with exit code 4 if something could not be settled. Before its first proposal in a repository, an\n" +
				"mcp-server does the first part there, and claudeops serve does both everywhere as long as it runs.",
			Said: func(out any, _ bool) string { return out.(SettledList).said() },
			Failed: func(out any) bool {
				return slices.ContainsFunc(out.(SettledList).Items, func(s Settled) bool { return s.Error != "" })
			},
		},
	}, operation.Way[struct{}]{Timeout: operation.Unbounded}, s.settle)
}

func (s Settling) settle(ctx context.Context, _ operation.Call, _ struct{}) (SettledList, error) {
	list, rounds := SettledList{[]Settled{}}, s.Rounds()
	settled, err := rounds.service.Resume(ctx)
	if err != nil {
		return list, err
	}
	list.Items = append(list.Items, settled...)
	for _, one := range settled {
		if one.Number == 0 {
			continue
		}
		if err := s.Look(ctx, one.Key, record.DoorCLI); err != nil { // the next round of a server looks at it
			s.Log().Warn("pull request not looked at", "number", one.Number, "error", fault.From(err).Message)
		}
	}
	swept, err := rounds.Sweep(ctx)
	for _, b := range swept {
		list.Items = append(list.Items, Settled{Repo: b.Repo, Branch: b.Branch, Error: b.Error})
	}
	return list, err
}

// said returns the list as the terminal has it.
func (l SettledList) said() string {
	lines := []string{}
	for _, s := range l.Items {
		what := "settled: nothing of it remains"
		switch {
		case s.Live:
			what = "is being worked on"
		case s.Late != "":
			what = fmt.Sprintf("waits until %s: what was sent to the provider may still arrive", s.Late)
		case s.Error != "" && s.RequestID == "":
			what = "branches not settled: " + s.Error
		case s.Error != "":
			what = "not settled: " + s.Error
		case s.RequestID == "":
			what = "removed: it had no pull request"
		case s.Number > 0:
			what = fmt.Sprintf("settled: it is #%d", s.Number)
		}
		if s.RequestID == "" {
			lines = append(lines, s.Repo+"  "+s.Branch+"  "+what)
			continue
		}
		lines = append(lines, s.RequestID+"  "+s.Repo+"  "+what)
	}
	if len(lines) == 0 {
		return "Nothing was left unfinished."
	}
	return strings.Join(lines, "\n")
}
