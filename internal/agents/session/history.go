package session

import (
	"context"
	"reflect"
	"slices"

	"github.com/claudeops/claudeops/internal/agents/checkouts"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// lookBackPages bounds how many pages of records are read to find one that fits, past sessions that were skipped.
const (
	lookBackPages = 4
	lookBackPage  = 50
)

// history holds what a new session is told of those before it.
type history struct {
	last    []sessions.Record // the last session of its tier that has ended, and those that it handed over to
	open    []sessions.Escalated
	pulls   []Pull
	journal []sessions.JournalEntry // newest first
	// unread says why the pull requests are not known; "" if they are.
	unread string
	copies []checkouts.State // of the working copies; nil if nobody updates them here
}

// recall reads what a session is told of those before it, and leaves out of its record the findings that are settled.
// What cannot be read is missing: a session does not fail of it.
func (r *Runner) recall(ctx context.Context, current *sessions.Record) history {
	var known history
	if r.Pulls != nil {
		var err error
		if known.pulls, err = r.Pulls.Recent(ctx, current.Tier); err != nil {
			known.unread = fault.From(err).Message
			r.Log.Warn("a session is told of no pull requests: they cannot be read", "session", current.ID, "error",
				known.unread)
		}
	}
	clean := cleaner{r.Secrets}
	for i := range known.pulls {
		known.pulls[i] = known.pulls[i].cleaned(clean)
	}
	current.Open = r.stillOpen(ctx, current, known.pulls)
	known.open = current.Open
	last, err := r.lastOf(ctx, current)
	if err != nil {
		r.Log.Warn("a session is told of none before it: they cannot be read", "session", current.ID, "error",
			fault.From(err).Message)
	}
	known.last = last
	if r.Journal != nil {
		if known.journal, err = r.Journal.Journal(ctx, sessions.JournalQuery{}); err != nil {
			r.Log.Warn("a session is not told what others noted: it cannot be read", "session", current.ID, "error",
				fault.From(err).Message)
		}
	}
	return known
}

// spoke are those whose words a session is told again, once each: in what earlier sessions left that were started
// with a note, and in what they noted in the journal.
func (h history) spoke() (out []record.Actor) {
	for _, s := range h.last {
		if s.Note != "" && s.Actor.Session != nil && s.Actor.Session.Starter != nil {
			out = append(out, *s.Actor.Session.Starter)
		}
	}
	for _, e := range toldEntries(h.journal) {
		if e.Actor.Session == nil {
			continue
		}
		for _, one := range e.Actor.Session.Read {
			same := func(other record.Actor) bool { return reflect.DeepEqual(one, other) }
			if !slices.ContainsFunc(out, same) {
				out = append(out, one)
			}
		}
	}
	return out
}

// previous is the newest session that began; found is false if there is none.
func (r *Runner) previous(ctx context.Context) (last sessions.Record, found bool, err error) {
	return r.newest(ctx, sessions.Query{}, func(s sessions.Record) bool { return s.State != sessions.StateSkipped })
}

// lastOf are the last session of the same tier that has left a report or a handoff, and those that it handed over to.
func (r *Runner) lastOf(ctx context.Context, current *sessions.Record) ([]sessions.Record, error) {
	last, found, err := r.newest(ctx, sessions.Query{Tier: current.Tier, Before: current.ID},
		func(s sessions.Record) bool {
			return s.Report != "" || s.Handoff != nil
		})
	if err != nil || !found {
		return nil, err
	}
	chain := []sessions.Record{last}
	for last.Next != "" && len(chain) < maxChain {
		if last, err = r.Records.Session(ctx, last.Next); fault.CodeOf(err) == fault.NotFound {
			return chain, nil // it never began
		} else if err != nil {
			return chain, err
		}
		if last.ID == current.ID {
			break
		}
		chain = append(chain, last)
	}
	return chain, nil
}

// maxChain is how many sessions hand over to each other at most: each has a higher tier than the one before.
const maxChain = 3

// newest is the newest session that fits.
func (r *Runner) newest(ctx context.Context, q sessions.Query, fits func(sessions.Record) bool) (sessions.Record, bool,
	error) {
	q.Limit = lookBackPage
	for range lookBackPages {
		page, err := r.Records.Sessions(ctx, q)
		if err != nil {
			return sessions.Record{}, false, err
		}
		for _, s := range page {
			if fits(s) {
				return s, true, nil
			}
		}
		if len(page) < q.Limit {
			break
		}
		q.Before = page[len(page)-1].ID
	}
	return sessions.Record{}, false, nil
}
