package session

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/files"
)

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
	for line := range strings.Lines(clean.text(raw, maxJournalFile)) {
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
