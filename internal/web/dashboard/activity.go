package dashboard

import (
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/words"
)

// did is an attempt as a sentence: who, did what, to what, and why not.
type did struct {
	Who, Verb, Object, Why string // Who, Object and Why are untrusted
	Number                 int    // of a pull request; 0 for none
	Link                   string // without the base
	Agent                  bool
}

// Did says what somebody did, as a sentence.
func (a attempt) Did() did {
	d := did{
		Who: words.Caller(a.Caller, a.Door, a.Session != ""), Object: a.Title, Number: a.PRNumber, Link: auditRowPath(a.Seq),
		Agent: a.Door == record.DoorMCP,
	}
	if link := a.Pull(); link != nil && link.Page != "" {
		d.Link = link.Page
	}
	if !a.IsProposal() {
		d.Verb = lowered(words.Action(a.Action))
		if a.Outcome == record.OutcomeRefused || a.Outcome == record.OutcomeFailed {
			d.Verb, d.Why = "was refused: "+d.Verb, words.Refusal(a.Attempt)
		}
		return d
	}
	switch a.Outcome {
	case record.OutcomeRefused:
		d.Verb, d.Why, d.Link, d.Number = "was refused", words.Refusal(a.Attempt), a.Link(), 0
	case record.OutcomeFailed:
		d.Verb, d.Why, d.Link = "did not finish", words.Refusal(a.Attempt), a.Link()
	case record.OutcomeDryRun:
		d.Verb, d.Link = "tried out", a.Link()
	case record.OutcomeRevised:
		d.Verb = "revised"
	case record.OutcomeReused:
		d.Verb = "proposed again"
	default:
		d.Verb = "proposed"
	}
	return d
}

// lowered is a text as it stands within a sentence.
func lowered(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToLower(first)) + text[size:]
}
