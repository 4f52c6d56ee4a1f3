package dashboard

import (
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/web/words"
)

// moment is one thing of a session's timeline: something that the agent said or did, or an attempt at a proposal.
type moment struct {
	Base, ID   string
	At         time.Time
	Tone, Icon string
	Did        string // "" where the text says it
	Folded     bool   // its text is shown on demand
	Event      sessions.Event
	Attempt    *proposedMoment
}

// proposedMoment is an attempt at a proposal on the timeline.
type proposedMoment struct{ attempt }

// Verb describes the result.
func (p proposedMoment) Verb() string {
	switch p.Outcome {
	case record.OutcomeRefused:
		return "Proposal refused:"
	case record.OutcomeFailed:
		return "Proposal failed:"
	case record.OutcomeDryRun:
		return "Dry run:"
	case record.OutcomeRevised:
		return "Revised"
	case record.OutcomeReused:
		return "Proposed again"
	}
	return "Proposed"
}

// MaxRunes limits the characters of an event that are shown.
func (moment) MaxRunes() int { return eventRunes }

// Longer reports whether its event is longer than that.
func (m moment) Longer() bool { return len([]rune(m.Event.Text)) > eventRunes }

// gistRunes limits the characters of a folded text that are shown beside it.
const gistRunes = 100

// Gist returns the beginning of a folded text, in one line.
func (m moment) Gist() string {
	text := []rune(strings.Join(strings.Fields(m.Event.Text[:min(len(m.Event.Text), 8*gistRunes)]), " "))
	if len(text) > gistRunes {
		return string(text[:gistRunes]) + " …"
	}
	return string(text)
}

// eventMoment returns an event on the timeline.
func eventMoment(e sessions.Event) moment {
	m := moment{At: e.Time, Event: e, Tone: "mute", Icon: "info-circle", Did: strings.ReplaceAll(e.Kind, "_", " ")}
	switch e.Kind {
	case "text":
		m.Tone, m.Icon, m.Did = "done", "robot", ""
	case "tool_use":
		m.Icon, m.Did, m.Folded = "terminal-2", "Called", true
	case "tool_result":
		m.Icon, m.Did, m.Folded = "arrow-right", "Got", true
	case "denied":
		m.Tone, m.Icon, m.Did = "bad", "ban", "Was refused the tool"
	case "init":
		m.Icon, m.Did = "player-play", "Began"
	case "result":
		m.Icon, m.Did = "player-stop", "Ended"
	}
	return m
}

// talk fills in the timeline of the shown events and of the proposals meanwhile; kind narrows it.
func (v *sessionPage) talk(kind string) {
	s := v.Said
	for _, e := range s.Events {
		m := eventMoment(e)
		if kind == "" || kind == "tools" && m.Folded || kind == "errors" && m.Tone == "bad" {
			v.Talk = append(v.Talk, m)
		}
	}
	for i := range v.Attempts {
		a := proposedMoment{v.Attempts[i]}
		early := s.Older != "" && a.Time.Before(s.Events[0].Time)
		late := s.Newer != "" && a.Time.After(s.Events[len(s.Events)-1].Time)
		bad := a.Outcome == record.OutcomeRefused || a.Outcome == record.OutcomeFailed
		if kind == "proposals" || !early && !late && (kind == "" || kind == "errors" && bad) {
			w := words.Outcome(a.Outcome)
			m := moment{At: a.Time, Tone: string(w.Tone), Icon: w.Icon, Attempt: &a}
			if w.Tone == words.Good {
				m.Icon = "git-pull-request"
			}
			v.Talk = append(v.Talk, m)
		}
	}
	slices.SortStableFunc(v.Talk, func(a, b moment) int { return a.At.Compare(b.At) })
	for i := range v.Talk {
		v.Talk[i].Base, v.Talk[i].ID = v.Base, v.ID
	}
}

// link is a choice that is a link.
type link struct {
	To, Text string
	Chosen   bool
}

// Kinds returns the ways to narrow the timeline.
func (v sessionPage) Kinds() (out []link) {
	for _, k := range [][2]string{{"", "All"}, {"tools", "Tools"}, {"proposals", "Proposals"}, {"errors", "Errors"}} {
		to := v.Base + v.Link()
		if k[0] != "" {
			to += "?show=" + k[0]
		}
		out = append(out, link{to, k[1], v.Show == k[0]})
	}
	return out
}

// Ended says how it ended, as the beginning of a sentence.
func (v sessionPage) Ended() string { return words.Session(v.State).Text }

// Remedy says what to do about the way it ended, as rich text; "" for nothing.
func (v sessionPage) Remedy() string {
	switch v.State {
	case sessions.StateLimit:
		return "Raise the limit (`CLAUDEOPS_MAX_TURNS`, `CLAUDEOPS_MAX_COST_USD`), or split the task: start a session for " +
			"a part of it."
	case sessions.StateTimeout:
		return "Raise `CLAUDEOPS_SESSION_TIMEOUT`, or start a session for a part of the task."
	case sessions.StateFailed:
		return "See what it said last, and whether [Health](/doctor) names what agents lack."
	case sessions.StateInterrupted:
		return "What it has proposed stays. Start it again if its task is not done."
	case sessions.StateSkipped:
		return "Sessions by the schedule do not start while another one runs."
	}
	return ""
}
