package dashboard

import (
	"slices"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/review"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/words"
)

// decision holds a person's possible decisions, and the last one.
type decision struct {
	Acts     []actForm
	Why      string    // why there are none
	Done     string    // what was just done
	Next     *waitItem // what else waits, after something was done; nil for nothing
	Warnings []string
}

// May reports whether there is something to do.
func (d decision) May() bool { return len(d.Acts) > 0 }

// InMenu reports whether there are acts without a button of their own.
func (d decision) InMenu() bool {
	return slices.ContainsFunc(d.Acts, func(a actForm) bool { return !a.InBar })
}

// reviewAction is a possible action of a person on a pull request.
type reviewAction struct {
	actForm
	done string
}

// reviewActions returns all of them.
func reviewActions() []reviewAction {
	const bound = "If the branch moves on, nothing is done. It is recorded under your name."
	return []reviewAction{
		{actForm{Verb: "comment", Text: "Comment", Icon: "message-2", Says: bound, Label: "What to say", Needs: true,
			InBar: true}, "Your comment is recorded."},
		{actForm{Verb: "request-changes", Text: "Request changes", Says: bound, Label: "What to change", Needs: true,
			InBar: true}, "You have asked for changes."},
		{actForm{Verb: "approve", Text: "Approve", Icon: "check", Tone: "go", Says: bound,
			Label: "What to say (may be empty)", InBar: true}, "You have approved it."},
		{actForm{
			Verb: mergeVerb, Text: "Merge", Icon: "git-merge", Says: "It removes the branch, and cannot be undone here.",
			Label: "For the message of the merge commit (may be empty)",
		}, "You have merged it."},
		{actForm{Verb: "close", Text: "Close without merging", Icon: "git-pull-request-closed", Tone: "no", Says: bound,
			Label: "Why (may be empty)"}, "You have closed it."},
		{actForm{
			Verb: review.LiftCooldown, Text: "Lift its cooldown", Icon: "clock",
			Says: "Agents may propose changes to its files again at once.", Label: "Why (may be empty)", InBar: true,
		}, "Its files may be proposed again at once."},
	}
}

// actsFor returns a person's possible actions on a pull request in the state. Merging has a button of its own once
// there are no obstacles.
func actsFor(state gitprovider.State, stands words.Word, obstacles []string) (out []actForm) {
	ready := len(obstacles) == 0 && stands == words.Standing(record.StandingReady)
	for _, a := range reviewActions() {
		lifts := a.Verb == review.LiftCooldown
		if lifts != (state == gitprovider.StateClosed) && a.Verb != "comment" || !lifts && state != gitprovider.StateOpen &&
			a.Verb != "comment" {
			continue
		}
		act := a.actForm
		switch {
		case act.Verb == mergeVerb:
			act.Obstacles, act.Box, act.InBar = obstacles, len(obstacles) > 0, ready
			if ready {
				act.Tone = "go"
			} else {
				act.Text = "Merge all the same"
			}
		case act.Verb == "approve" && ready:
			act.Tone = ""
		}
		out = append(out, act)
	}
	return out
}

// doneText says what was just done; "" for nothing.
func doneText(verb string) string {
	for _, a := range reviewActions() {
		if a.Verb == verb {
			return a.done
		}
	}
	return ""
}
