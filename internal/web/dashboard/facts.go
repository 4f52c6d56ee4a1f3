package dashboard

import (
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// factStrip is what the lines of a change name and would make an agent do, above its difference.
type factStrip struct {
	Unread    string        // why nothing is known; "" for a change that was read
	Note      string        // what the reading does not have
	Groups    []factGroup   // by class, the gravest first
	Grave     int           // facts of grave classes
	More      int           // facts that are not listed
	Asked     []facts.Class // that people are asked to confirm
	Doubt     bool          // not all of it was read, so that Asked may have more than there is
	Form      string        // id of the form that confirms them, where the box is not in it
	Elsewhere bool          // approving and merging happen where nobody is asked to confirm the classes of Asked
}

// factGroup holds the facts of one class.
type factGroup struct {
	Class facts.Class
	Count int // of those that are not listed, too
	Facts []shownFact
}

// Grave reports whether its facts stand open.
func (g factGroup) Grave() bool { return g.Class.Grave() }

// Text is its class, in words.
func (g factGroup) Text() string { return g.Class.Words() }

// shownFact is what a fact says, and all lines of which it does.
type shownFact struct {
	Says   string // the sentence up to Words
	Words  string
	Then   string // what follows on them
	Places []factPlace
}

// factPlace is a line of a fact, with its address on the page.
type factPlace struct {
	facts.Fact
	Link string // "" for none
	Next bool   // it is in the same file as the place before it
}

// factsOf returns the facts of a proposal for a page that shows diff, which may be nil, and marks their lines there.
func (h *renderer) factsOf(p record.Proposal, rules policy.FactRules, diff *pages.Diff) *factStrip {
	out := &factStrip{More: p.Facts.More, Asked: rules.Asked(p.FactTier(), p.Facts)}
	out.Doubt = !p.Facts.WasRead()
	switch {
	case !p.PrunedAt.IsZero():
		out.Unread = "What was read of it was removed with its contents."
		return out
	case !p.Facts.WasRead():
		out.Unread = "It was not read: it is of a version that did not read changes."
		return out
	}
	marks, of := map[pages.LineKey][]pages.LineFact{}, map[facts.Class][]shownFact{}
	for _, f := range p.Facts.Facts {
		key := pages.LineKey{Path: f.Path, Line: f.Line, Before: f.Removed}
		marks[key] = markOf(marks[key], f.Class)
	}
	for _, alike := range facts.Alike(p.Facts.Facts) {
		class := alike[0].Class
		of[class] = append(of[class], h.shownFact(alike, diff))
	}
	out.group(p.Facts.Counts, of)
	if diff != nil {
		diff.MarkFacts(marks)
	}
	return out
}

// group makes the groups of the facts that were counted.
func (s *factStrip) group(counts map[facts.Class]int, of map[facts.Class][]shownFact) {
	for _, class := range (facts.Reading{Counts: counts}).Found() {
		s.Groups = append(s.Groups, factGroup{class, counts[class], of[class]})
	}
}

// countedFacts returns what was counted in an attempt of which no change is kept; nil where nothing was.
func countedFacts(a *attempt) *factStrip {
	if a == nil || !a.Facts().WasRead() {
		return nil
	}
	out := &factStrip{Note: "The lines of a refused change are not kept with these."}
	out.group(a.Facts().Counts, nil)
	return out
}

// shownFact returns facts that say the same as one, with a link to each of their lines.
func (h *renderer) shownFact(alike []facts.Fact, diff *pages.Diff) shownFact {
	words, sentence := h.env.Redact(alike[0].Words), h.env.Redact(alike[0].Sentence)
	out := shownFact{Says: sentence, Words: words}
	if says, then, within := strings.Cut(sentence, ": "+words); within {
		out.Says, out.Then = says, then
	}
	for i, f := range alike {
		place := factPlace{Fact: f, Next: i > 0 && f.NextTo(alike[i-1])}
		if diff != nil {
			place.Link = diff.LineHref(pages.LineKey{Path: f.Path, Line: f.Line, Before: f.Removed})
		}
		out.Places = append(out.Places, place)
	}
	return out
}

// markOf adds the mark of a class to those of a line, once.
func markOf(marks []pages.LineFact, class facts.Class) []pages.LineFact {
	for _, m := range marks {
		if m.Text == class.Words() {
			return marks
		}
	}
	return append(marks, pages.LineFact{Text: class.Words(), Grave: class.Grave()})
}

// pullFacts returns the facts of a pull request: those of its newest change.
func (h *pullPages) pullFacts(view *pullPage) {
	made := make([]record.Proposal, len(view.Made))
	for i, step := range view.Made {
		made[i] = step.Proposal
	}
	newest, found := record.NewestChange(made)
	if !found {
		return
	}
	view.Would = h.factsOf(newest, h.factRules(), view.Diff)
	if view.Would.Unread == "" && newest.Commit != "" && newest.Commit != view.Head &&
		view.Status.State == gitprovider.StateOpen {
		view.Would.Note = "Commit " + pages.Short(newest.Commit) + " was read. What was added since was not."
		view.Would.Doubt, view.Would.Asked = true, h.factRules().Asked(newest.FactTier(), facts.Reading{})
	}
	view.Would.Elsewhere = !h.reviewer.Reviews(view.Target.provider)
}

// factRules returns what the policy in force says about facts; all are shown where none can be read.
func (h *pullPages) factRules() policy.FactRules { return rulesOfFacts(h.policy) }

func rulesOfFacts(effective func() (policy.Policy, error)) policy.FactRules {
	p, err := effective()
	if err != nil {
		return policy.FactRules{}
	}
	return p.Facts
}

// FactTags returns the words of its gravest classes, at most two: of its pull request as it is now, else of the
// attempt; and before them whether it moves where later proposals go.
func (a attempt) FactTags() []string {
	tags := a.Facts().Tags(2)
	if a.Seen.Number > 0 {
		tags = tagsIn(a.Seen.Tags)
	}
	if a.Redirects() {
		tags = append([]string{"redirects proposals"}, tags...)
	}
	return tags
}

// Redirects reports whether it moves where later proposals go.
func (a attempt) Redirects() bool { return slices.ContainsFunc(a.Warnings(), prflow.IsRedirect) }

// FactTags returns the words of its gravest classes, at most two.
func (w waitItem) FactTags() []string { return tagsIn(w.Tags) }

func tagsIn(joined string) []string {
	if joined == "" {
		return nil
	}
	return strings.Split(joined, record.BetweenTags)
}

// InWords are the classes that people are asked to confirm, in words.
func (s *factStrip) InWords() string { return policy.FactWords(s.Asked) }

// confirmBox is the box that confirms what a strip asks for.
type confirmBox struct {
	*factStrip
	ID   string
	Form string // id of the form, where the box is not in it
}

// Box returns the box of a form.
func (s *factStrip) Box(form string, within bool) confirmBox {
	out := confirmBox{s, form + "-seen", form}
	if within {
		out.Form = ""
	}
	return out
}

// Value names what the box confirms.
func (b confirmBox) Value() string { return policy.JoinClasses(b.Asked) }
