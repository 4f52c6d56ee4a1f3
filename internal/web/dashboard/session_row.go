package dashboard

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/records"
	"github.com/claudeops/claudeops/internal/web/words"
)

func sessionPath(id string) string { return sessionsPath + "/" + url.PathEscape(id) }

// sessionRow is a session as pages show it.
type sessionRow struct {
	sessions.Record
	now time.Time
}

// row returns a session with what was proposed in it so far.
func (h *sessionPages) row(req *handler.Request, r sessions.Record) sessionRow {
	return sessionRow{records.CountNow(req.Context(), h.records, r), h.env.Now()}
}

// Link returns the address of the session, without the base.
func (s sessionRow) Link() string { return sessionPath(s.ID) }

// Running reports whether it runs.
func (s sessionRow) Running() bool { return s.State == sessions.StateRunning }

// Began reports whether it ever ran.
func (s sessionRow) Began() bool { return s.State != sessions.StateSkipped }

// Name says what it was started for: the first line of its note, or else the task of its tier.
func (s sessionRow) Name() string {
	if line, _, _ := strings.Cut(strings.TrimSpace(s.Note), "\n"); line != "" {
		return line
	}
	return map[gitprovider.Tier]string{
		gitprovider.TierObserve: "Round of checks", gitprovider.TierInvestigate: "Look into findings",
		gitprovider.TierRemediate: "Repair",
	}[s.Tier]
}

// StartedBy says what started it.
func (s sessionRow) StartedBy() string {
	from := 0
	if s.Tier == gitprovider.TierInvestigate {
		from = int(gitprovider.TierObserve) // only that tier hands over to it
	}
	by := ""
	if s.Actor.Session != nil && s.Actor.Session.Starter != nil {
		by = s.Actor.Session.Starter.String()
	}
	return words.Trigger(s.Trigger, by, from)
}

// Took returns its duration so far.
func (s sessionRow) Took() string {
	ended := s.EndedAt
	if ended.IsZero() {
		ended = s.now
	}
	if took := ended.Sub(s.StartedAt); took >= time.Second {
		return words.Length(took)
	}
	return "under 1 s"
}

// Proposals describes its proposals.
func (s sessionRow) Proposals() string {
	n := s.Counts
	text := inWords([]counted{
		{n.Opened, "opened"}, {n.Revised, "revised"}, {n.Reused, "open already"}, {n.DryRun, "in dry run"},
		{n.Refused, "refused"}, {n.Failed, "failed"},
	})
	if text == "" {
		return "nothing proposed"
	}
	return text
}

// NotKept describes the parts of its output that were not kept.
func (s sessionRow) NotKept() string {
	return inWords([]counted{
		{s.CutLines, "lines beyond the bound"}, {s.BadLines, "lines that were no event"},
		{s.Unstored, "events beyond what is kept"},
	})
}

// counted is a number of things.
type counted struct {
	count int
	word  string
}

// inWords says how many there are of each, leaving out what there is none of.
func inWords(list []counted) string {
	var words []string
	for _, c := range list {
		if c.count > 0 {
			words = append(words, strconv.Itoa(c.count)+" "+c.word)
		}
	}
	return strings.Join(words, ", ")
}
