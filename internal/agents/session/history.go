package session

import (
	"context"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/files"
)

// lookBackPages bounds how many pages of records are read to find one that fits. Sessions that were skipped are not
// among them: a schedule that could not start for long would hide what was found before.
const (
	lookBackPages = 4
	lookBackPage  = 50
)

// history holds what a new session reads about those before it.
type history struct {
	last    []sessions.Record // the last session of its tier that has ended, and those that it handed over to
	open    []sessions.Escalated
	pulls   []Pull
	journal []sessions.JournalEntry // newest first
	// unread says why the pull requests are not known; "" if they are.
	unread string
	copies []CheckoutState // of the working copies; nil if they are not updated here
}

// recall loads what a session reads about those before it, and removes from its record the findings that are settled.
// What cannot be read is missing: it does not make a session fail.
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

// spoke returns the people whose words a session reads again, once each: in what earlier sessions left that were
// started with a note, and in their notes in the journal.
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

// previous returns the newest session that began; found is false if there is none.
func (r *Runner) previous(ctx context.Context) (last sessions.Record, found bool, err error) {
	return r.newestSession(ctx, sessions.Query{}, func(sessions.Record) bool { return true })
}

// lastOf returns the last session of the same tier that has left a report or a handoff, and those that it handed over
// to.
func (r *Runner) lastOf(ctx context.Context, current *sessions.Record) ([]sessions.Record, error) {
	last, found, err := r.newestSession(ctx, sessions.Query{Tier: current.Tier, Before: current.ID},
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

// maxChain limits how many sessions hand over to each other: each has a higher tier than the one before.
const maxChain = 3

// newestSession returns the newest session that fits.
func (r *Runner) newestSession(ctx context.Context, q sessions.Query, fits func(sessions.Record) bool) (sessions.Record,
	bool,
	error) {
	q.Limit, q.Began = lookBackPage, true
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

// Bounds of the journal.
const (
	maxJournalAdded = 20  // entries that one session may add
	maxJournalEntry = 500 // bytes
	maxJournalFile  = 16 << 10
	maxJournalTold  = 8 << 10 // bytes of the newest entries, for the agent's first message
)

// journalName is the file that an agent may leave beside the handoff, with one entry a line.
const journalName = "journal.txt"

// lineOf returns the entry in the form in which later sessions read it.
func lineOf(e sessions.JournalEntry) string {
	return e.Time.UTC().Format("2006-01-02T15:04Z") + " " + e.Text
}

// keepJournal records what the agent noted, if anything. What it copied from the journal is not kept twice.
func (r *Runner) keepJournal(ctx context.Context, f *folder, current *sessions.Record, known []sessions.JournalEntry) {
	if r.Journal == nil {
		return
	}
	raw := ""
	if err := f.account.As(func() error { // as with the handoff
		raw = readJournal(f.handoff)
		return nil
	}); err != nil {
		r.Log.Error("what an agent noted for later sessions cannot be read", "session", current.ID, "error", err)
		return
	}
	texts := journalLines(raw, cleaner{r.Secrets}, known)
	if len(texts) == 0 {
		return
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	if err := r.Journal.AppendJournal(ctx, noting(current), r.Now().UTC(), texts); err != nil {
		r.Log.Error("what an agent noted for later sessions could not be recorded", "session", current.ID, "error", err)
		return
	}
	current.Noted = len(texts)
}

// noting returns a session as the author of a note: it may repeat what it read in a person's note.
func noting(s *sessions.Record) record.Actor {
	by := record.Actor{Door: s.Actor.Door, Session: &record.ActorSession{ID: s.ID}}
	if was := s.Actor.Session; was != nil && was.Starter != nil {
		by.Session.Starter = was.Starter
		if s.Note != "" {
			by.Session.Read = []record.Actor{*was.Starter}
		}
	}
	return by
}

// journalLines returns the entries in a text, within the bounds and fit to be kept, without those that were copied
// unchanged from the first message: a repeated measurement is new. Of too many the last ones are kept.
func journalLines(raw string, clean cleaner, known []sessions.JournalEntry) (texts []string) {
	if strings.TrimSpace(raw) == "" {
		return nil
	}
	for line := range strings.Lines(clean.cleanText(raw, maxJournalFile)) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "- "))
		line = firstRunes(line, maxJournalEntry)
		copied := slices.ContainsFunc(known, func(e sessions.JournalEntry) bool { return lineOf(e) == line }) ||
			slices.Contains(texts, line)
		if line != "" && !copied {
			texts = append(texts, line)
		}
	}
	return texts[max(0, len(texts)-maxJournalAdded):]
}

// readJournal returns the text of the file; "" if there is none that can be read.
func readJournal(folder *files.Dir) string {
	f, err := openLeft(folder, journalName)
	if err != nil || f == nil {
		return ""
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxJournalFile))
	if err != nil {
		return ""
	}
	return string(raw)
}

// toldEntries returns the newest entries, for the agent's first message, newest first.
func toldEntries(entries []sessions.JournalEntry) []sessions.JournalEntry {
	size := 0
	for i, e := range entries {
		if size += len(lineOf(e)); size > maxJournalTold {
			return entries[:i]
		}
	}
	return entries
}

// tellJournal returns the entries for the agent's first message, oldest first, one line each.
func tellJournal(entries []sessions.JournalEntry) (lines []string) {
	for _, e := range toldEntries(entries) {
		lines = append(lines, lineOf(e))
	}
	slices.Reverse(lines)
	return lines
}
