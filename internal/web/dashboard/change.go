package dashboard

import (
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/words"
)

// What the page of a pull request and that of a proposal have in common: what our checks said, and the way of the
// change so far.

// gates is what our checks said of a change.
type gates struct {
	Verdicts       []record.Verdict
	Passed, Denied int
}

func gatesOf(verdicts []record.Verdict) gates {
	g := gates{Verdicts: verdicts}
	for _, v := range verdicts {
		switch v.Ruling {
		case record.Pass:
			g.Passed++
		case record.Deny:
			g.Denied++
		case record.Skipped:
		}
	}
	return g
}

// Said is what they said together.
func (g gates) Said() string {
	if g.Denied > 0 {
		return fmt.Sprintf("%d of %d checks refused it", g.Denied, len(g.Verdicts))
	}
	return fmt.Sprintf("%d of %d checks passed", g.Passed, len(g.Verdicts))
}

// Others says what became of the others.
func (g gates) Others() string {
	asked := g.Passed + g.Denied
	if g.Denied > 0 {
		return fmt.Sprintf("%d passed, %d were not asked", g.Passed, len(g.Verdicts)-asked)
	}
	if g.Passed == len(g.Verdicts) {
		return ""
	}
	return words.Count(len(g.Verdicts)-asked) + " did not apply"
}

// wayStep is something that happened to a change, or is to happen.
type wayStep struct {
	Icon          string
	Tone          words.Tone
	Before, After string // around Who
	Who           string // untrusted
	Sub           string
	Said          string // untrusted
	At            time.Time
	Link, Text    string // where more is, without the base, and what that is called
	Todo          bool
}

// proposedSteps are what an attempt at a proposal did.
func proposedSteps(a attempt) []wayStep {
	act := a.about.Act(a.RecordedAttempt)
	first := wayStep{Icon: "robot", Tone: words.Done, Who: act.Who, After: " " + act.Step(), At: a.Time,
		Sub: words.Door(a.Door)}
	if a.Session != "" {
		first.Sub, first.Link, first.Text = "in a", a.SessionLink(), "session of tier "+a.Tier.String()
	}
	g, took := gatesOf(a.Verdicts), words.Length(a.Duration)
	switch a.Outcome {
	case record.OutcomeRefused:
		second := wayStep{Icon: "ban", Tone: words.Bad, Before: g.Said(), At: a.Time, Sub: "after " + took + ": " +
			lowered(act.Reason)}
		if gates := a.Gates(); len(gates) > 0 {
			second.Before = "Stopped by " + words.Gate(gates[0])
		}
		return []wayStep{first, second}
	case record.OutcomeRevised:
		first.Icon = "git-commit"
	case record.OutcomeReused:
		first.Icon = "repeat"
	}
	switch a.Action {
	case record.ActionPromote:
		first.Icon = "player-play"
	case record.ActionSettle:
		first.Icon = "tool"
	}
	steps := []wayStep{first}
	if len(g.Verdicts) > 0 {
		word := words.Outcome(a.Outcome)
		steps = append(steps, wayStep{
			Icon: word.Icon, Tone: word.Tone, Before: g.Said(), At: a.Time, Sub: lowered(word.Text) + " after " + took,
			Link: auditRowPath(a.Seq), Text: "record",
		})
	}
	return steps
}

// reviewStep is what a person said.
func reviewStep(r gitprovider.Review) wayStep {
	word := words.Review(r.State)
	actions := map[gitprovider.ReviewState]string{
		gitprovider.ReviewApproved: "review.approve", gitprovider.ReviewChangesRequested: "review.request-changes",
		gitprovider.ReviewCommented: "review.comment",
	}
	after := ": " + lowered(word.Text)
	if action := actions[r.State]; action != "" {
		after = " " + record.StepOf(action)
	}
	s := wayStep{
		Icon:  word.Icon,
		Tone:  word.Tone,
		Who:   record.PersonName(r.Author),
		After: after,
		Said:  r.Body,
		At:    r.SubmittedAt,
	}
	if n := len(r.Comments); n > 0 {
		s.Sub = words.Many(n, "comment on a line", "comments on lines")
	}
	return s
}

// inOrder puts what happened in its order; what is to happen stays last.
func inOrder(steps []wayStep) []wayStep {
	slices.SortStableFunc(steps, func(a, b wayStep) int {
		if a.Todo || b.Todo {
			return 0
		}
		return a.At.Compare(b.At)
	})
	return steps
}

// actForm is something that a person may do to a change: its button, and the sheet that asks for what it needs.
type actForm struct {
	Verb, Text, Icon string
	Tone             string // class of its button
	Says             string // what it does
	Label            string // of the field
	Needs            bool   // a text
	InBar            bool   // a button of its own; the others are in the menu
	Obstacles        []string
	Box              bool   // a box has to be ticked
	Comment          string // what was written, of a form that comes back
	Failed           string // why it comes back
}

// ID is that of its sheet.
func (a actForm) ID() string { return "do-" + a.Verb }

// lowered is a text as it stands within a sentence.
func lowered(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToLower(first)) + text[size:]
}
