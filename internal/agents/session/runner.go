// Package session runs the Claude CLI at a tier, reads what it says as it comes, and records how it ended. A Runner
// runs one session; a Supervisor allows one at a time for each state folder and goes on with the next tier where a
// session hands over and the operator permits it.
//
// The tier is the operator's: it comes with a Spec, is written into the MCP server's own environment, and nothing that
// the agent writes can raise it beyond Settings.MaxTier. What a session achieved is counted from the attempts that the
// MCP server recorded, never from what the agent says.
package session

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// Check says whether a session may start: tier_denied for a tier beyond what the operator permits, invalid_argument for
// a malformed spec, internal if the configuration is broken.
func (s Settings) Check(spec Spec) error {
	if spec.Tier < gitprovider.TierObserve || spec.Tier > gitprovider.TierRemediate {
		return fault.New(fault.InvalidArgument, "%d is not a tier; 1, 2 and 3 are", spec.Tier)
	}
	if spec.Tier > s.MaxTier {
		return fault.New(fault.TierDenied,
			"tier %s is above what sessions may have here, tier %s; the operator sets CLAUDEOPS_MAX_TIER",
			spec.Tier, s.MaxTier)
	}
	if spec.Ceiling != 0 && spec.Tier > spec.Ceiling {
		return fault.New(fault.TierDenied, "tier %s is above what this caller may start, tier %s", spec.Tier, spec.Ceiling)
	}
	if len(spec.Note) > MaxNote || !utf8.ValidString(spec.Note) || strings.ContainsRune(spec.Note, 0) {
		return fault.New(fault.InvalidArgument, "the note must be text of at most %d bytes", MaxNote)
	}
	if s.Problem != "" {
		return fault.New(fault.Misconfigured, "%s; no session can start until the operator corrects it", s.Problem)
	}
	if err := s.checkBoundary(); err != nil {
		return err
	}
	return s.Confinement.checkFiles()
}

// Run runs one session to its end and returns its record. Whatever goes wrong with the agent is in the record's State
// and Reason; an error means that nothing was started (see Settings.Check), or that the store failed. When ctx ends,
// the session is ended, and recorded all the same.
func (r *Runner) Run(ctx context.Context, spec Spec) (sessions.Record, error) {
	if err := r.Settings.Check(spec); err != nil {
		return sessions.Record{}, err
	}
	if spec.ID == "" {
		spec.ID = r.NewID()
	}
	record, err := r.recordStart(ctx, spec)
	if err != nil {
		return sessions.Record{}, err
	}
	return r.runToEnd(ctx, spec, record)
}

// recordStart records that a session has begun.
func (r *Runner) recordStart(ctx context.Context, spec Spec) (sessions.Record, error) {
	record := sessions.Record{
		ID: spec.ID, Parent: spec.Parent, Actor: actorOf(spec), Task: r.Settings.task(spec.Tier, spec.Trigger),
		StartedAt: r.Now().UTC(),
		Ending:    sessions.Ending{State: sessions.StateRunning, ExitCode: -1},
		Handover:  sessions.Handover{Received: spec.Handoff},
	}
	boundary := r.Settings.boundaryOf(spec.processes.account())
	record.Boundary = &boundary
	record.Note, record.Issue = r.Secrets.Redact(spec.Note), spec.Issue
	before, found, err := r.previous(ctx)
	if err != nil {
		return sessions.Record{}, err
	}
	if found {
		record.Open = before.Open
	}
	if err := r.Records.BeginSession(ctx, record); err != nil {
		return sessions.Record{}, err
	}
	r.Log.Info("session started", "session", record.ID, "tier", int(record.Tier), "trigger", record.Trigger)
	return record, nil
}

// actorOf returns a session as the one who acts.
func actorOf(spec Spec) record.Actor {
	s := &record.ActorSession{ID: spec.ID}
	if !spec.Starter.IsZero() {
		s.Starter = &spec.Starter
	}
	return record.Actor{Door: record.DoorMCP, Session: s}
}

// task describes what a session is started for, without the operator's note.
func (s Settings) task(tier gitprovider.Tier, trigger sessions.Trigger) sessions.Task {
	return sessions.Task{Tier: tier, Trigger: trigger, Model: s.Claude.Models[tier], DryRun: s.isDryRun(),
		Toolsets: s.Server.Toolsets}
}

// runToEnd runs a session that has begun to its end; see Run.
func (r *Runner) runToEnd(ctx context.Context, spec Spec, record sessions.Record) (sessions.Record, error) {
	end := r.runClaude(ctx, spec, &record)
	record.State, record.Reason, record.EndedAt = end.state, cleaner{r.Secrets}.cleanReason(end.reason), r.Now().UTC()
	if end.state == sessions.StateFailed && strings.Contains(end.reason, credentialAdvice) {
		record.Cause = sessions.CauseLogin
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	var err error
	if record.Counts, err = r.Records.SessionCounts(ctx, record.ID); err != nil {
		return record, err
	}
	r.decideEscalation(&record, spec.Ceiling)
	if err := r.Records.SaveSession(ctx, record); err != nil {
		return record, err
	}
	r.Log.Info("session ended", "session", record.ID, "state", record.State, "reason", record.Reason)
	return record, nil
}

// updateCopies brings the working copies up to date. The record has those that may be older than their repositories.
func (r *Runner) updateCopies(ctx context.Context, record *sessions.Record) []CheckoutState {
	if r.Settings.Update == nil {
		return nil
	}
	states := r.Settings.Update(ctx)
	for _, s := range states {
		if s.Problem != "" {
			record.LeftOut = append(record.LeftOut, "the working copy "+s.String())
		}
		r.Log.Info("working copy", "session", record.ID, "folder", s.Folder, "commit", s.Commit, "updated", s.Updated,
			"problem", s.Problem)
	}
	return states
}

// runClaude prepares what the CLI needs, runs it, and says how that ended.
func (r *Runner) runClaude(ctx context.Context, spec Spec, record *sessions.Record) outcome {
	binary, version, err := r.probe(ctx)
	record.Claude = version
	if err != nil {
		if ctx.Err() != nil {
			return outcome{sessions.StateCancelled, "it was told to end before it began"}
		}
		return outcome{sessions.StateFailed, err.Error()}
	}
	prompt, err := r.Settings.systemPrompt(spec.Tier)
	if err != nil {
		return outcome{sessions.StateFailed, err.Error()}
	}
	copies := r.updateCopies(ctx, record)
	known := r.recall(ctx, record)
	known.copies = copies
	record.Actor.Session.Read = known.spoke()
	settings := r.Settings
	settings.Server.actor = record.Actor
	settings.Server.still = func(asked context.Context) error { return r.mayGoOn(asked, ctx, record.ID) }
	f, err := settings.makeFolder(record.ID, spec.Tier, prompt, spec.processes.account())
	if err != nil {
		return outcome{sessions.StateFailed, fmt.Sprintf("the session's private folder could not be made: %s", err)}
	}
	defer func() {
		if err := f.remove(); err != nil {
			r.Log.Error("the private folder of a session could not be removed", "session", record.ID, "error", err)
		}
	}()
	for _, refused := range f.offers.Refused {
		record.LeftOut = append(record.LeftOut, r.Secrets.Redact(refused))
		r.Log.Warn("a contribution of a mounted repository was refused", "session", record.ID, "what",
			r.Secrets.Redact(refused))
	}
	end := r.execute(ctx, binary, spec, f, known, record)
	if err := f.closeDoor(); err != nil {
		r.Log.Error("the socket of a session's MCP server was not closed as it should be", "session", record.ID, "error", err)
	}
	r.keepJournal(ctx, f, record, known.journal)
	r.keepHandoff(f, record)
	if record.HandoffProblem != "" && end.state == sessions.StateSucceeded {
		end = outcome{sessions.StateFailed, "what it left as a handoff cannot be used, though it was told so: " +
			record.HandoffProblem}
	}
	return end
}

// mayGoOn returns unauthenticated for a session that is to end: its calls that have written nothing yet must not write
// any more. life ends when this process knows of that; what another process was asked for is in the records first.
func (r *Runner) mayGoOn(ctx, life context.Context, id string) error {
	asked := life.Err() != nil
	if !asked {
		var err error
		if asked, err = r.Records.StopAsked(ctx, id); err != nil {
			return err
		}
	}
	if asked {
		return fault.New(fault.Unauthenticated, "session %s is to end; nothing was done", id)
	}
	return nil
}

// keepHandoff records what the agent left for the next tier, if anything.
func (r *Runner) keepHandoff(f *folder, record *sessions.Record) {
	var given *sessions.Handoff
	var notes []string
	err := f.account.As(func() (err error) { // whatever the agent put there, nothing is read that it may not read itself
		given, notes, err = takeHandoff(f.handoff, r.Secrets.Redact)
		return err
	})
	clean := cleaner{r.Secrets}
	for _, note := range notes {
		record.HandoffNotes = append(record.HandoffNotes, clean.cleanText(note, maxText))
	}
	if err != nil {
		record.HandoffProblem = clean.cleanText(err.Error(), maxText)
	}
	if given == nil {
		return
	}
	h := mapTexts(*given, func(text string) string { return clean.cleanText(text, len(text)+len(withheldLine)) })
	giveKeys(&h) // of what is clean
	record.Handoff = &h
}

// minVersion returns the oldest CLI that is known to have the options that we rely on.
func minVersion() [3]int { return [3]int{2, 1, 329} }

// versions remembers what a binary said, for as long as it stays the same file.
type versions struct {
	mu      sync.Mutex
	path    string
	size    int64
	changed time.Time
	version string
}

// probe finds the CLI and asks for its version. Errors say what the operator has to do.
func (r *Runner) probe(ctx context.Context) (path, version string, err error) {
	s := r.Settings
	if path, err = processtree.Find(s.Claude.Binary); err != nil {
		return "", "",
			fmt.Errorf("there is no claude to run (%s); install Claude Code, or name its binary in CLAUDEOPS_CLAUDE_BIN",
				s.Claude.Binary)
	}
	info, err := files.Stat(path)
	if err != nil {
		return path, "", fmt.Errorf("the binary %s cannot be looked at; check CLAUDEOPS_CLAUDE_BIN", path)
	}
	r.versions.mu.Lock()
	defer r.versions.mu.Unlock()
	v := &r.versions
	if v.path == path && v.size == info.Size() && v.changed.Equal(info.ModTime()) {
		return path, v.version, nil
	}
	if version, err = s.askVersion(ctx, path); err != nil {
		return path, version, err
	}
	v.path, v.size, v.changed, v.version = path, info.Size(), info.ModTime(), version
	return path, version, nil
}

// askVersion runs claude --version, bounded in time and in what is read.
func (s Settings) askVersion(ctx context.Context, path string) (string, error) {
	ran, err := processtree.Run(ctx, processtree.Spec{
		Command: processtree.Command{Path: path, Args: []string{path, "--version"}, Env: s.Claude.Env},
		Time:    s.Limits.Version, Output: maxStderr,
	})
	switch {
	case err == nil && (ran.TimedOut || ran.Canceled):
		return "", fmt.Errorf("%s --version did not answer within %s", path, s.Limits.Version)
	case err != nil, ran.Exit.Code != 0:
		return "", fmt.Errorf("%s --version failed: is it Claude Code, and does it run on this machine?", path)
	}
	return checkVersion(path, ran.Stdout.Text)
}

// checkVersion reads "2.1.329 (Claude Code)".
func checkVersion(path string, out []byte) (string, error) {
	m := regexp.MustCompile(`^(\d{1,6})\.(\d{1,6})\.(\d{1,6})\b[^\n]*\(Claude Code\)`).FindSubmatch(bytes.TrimSpace(out))
	if m == nil {
		return "", fmt.Errorf("%s --version does not answer as Claude Code does; check CLAUDEOPS_CLAUDE_BIN", path)
	}
	var got [3]int
	for i := range got {
		got[i], _ = strconv.Atoi(string(m[i+1])) // at most six digits
	}
	version, want := fmt.Sprintf("%d.%d.%d", got[0], got[1], got[2]), minVersion()
	for i := range got {
		if got[i] != want[i] {
			if got[i] < want[i] {
				return version, fmt.Errorf("claude is %s, and %d.%d.%d or newer is needed; update it", version, want[0], want[1],
					want[2])
			}
			break
		}
	}
	return version, nil
}
