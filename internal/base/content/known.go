package content

import (
	"strings"

	"github.com/claudeops/claudeops/internal/base/content/secretrules"
)

const (
	// contextLines is the number of lines before and after a decoded part that are searched together with it.
	contextLines = 2
	// minBudget is the minimum number of bytes of joined pieces that are searched for a text, however short.
	minBudget = 1 << 20
)

// search is the search for credentials of others in one text.
type search struct {
	rules *secretrules.Set
	work  *secretrules.Work
	lines lineIndex
	seen  map[place]bool // what an earlier layer has shown
	here  map[place]bool // what this one shows
	found []hit
}

type place struct {
	rule string
	line int
}

// hit is a finding of a rule, by offsets in the original.
type hit struct {
	rule, description string
	at, last          int
}

// knownSecrets runs the rules over a text, over what its layers show beyond it, over both without comments, and over
// what line breaks part in all of these. The first layer is the text itself. Without enough work left, it stops.
func knownSecrets(w *secretrules.Work, rules *secretrules.Set, layers []layer) (found []hit) {
	text := layers[0].text
	s := &search{rules: rules, work: w, lines: newLineIndex(text), seen: map[place]bool{}, here: map[place]bool{}}
	j := &joiner{rules: rules, work: w, budget: max(len(text), minBudget), report: s.form}
	for i, l := range layers {
		if i > 0 {
			l = l.aroundChanges(contextLines)
		}
		s.look(l, s.any)
	}
	for i, l := range layers {
		if len(s.found) > MaxSecrets { // no more are listed
			break
		}
		if i > 0 {
			l = l.aroundChanges(maxPieces)
		}
		parts := []layer{l}
		if bare, ok := l.withoutMarkup(); ok {
			within := bare
			within.changed = bare.changedInWords()
			s.look(within.aroundChanges(contextLines), s.form)
			parts = append(parts, bare)
		}
		for _, part := range parts {
			beyond := j.layer(part)
			switch {
			case beyond >= 0 && len(s.found) > 0: // it is refused anyway
				return s.found
			case beyond >= 0:
				return append(s.found, hit{rule: DividedRule,
					description: "Too many words that may be parts of credentials to try them all.", at: beyond, last: len(text)})
			}
		}
		s.endLayer()
	}
	return s.found
}

// look runs the rules over a layer.
func (s *search) look(l layer, report func(secretrules.Finding, layer)) {
	for _, f := range s.rules.FindWithin(s.work, l.text) {
		report(f, l)
	}
	s.endLayer()
}

// any takes a finding of every rule.
func (s *search) any(f secretrules.Finding, in layer) {
	where := in.origin(f.Start)
	at := place{f.Rule, s.lines.line(where)}
	if s.seen[at] {
		return
	}
	s.here[at] = true
	s.found = append(s.found, hit{f.Rule, f.Description, where, max(where, in.lastOrigin(f.To))})
}

// form takes only findings of rules that look for one kind of credential, and no names that were put together.
func (s *search) form(f secretrules.Finding, in layer) {
	if hasForm(f.Rule) && !wordy(f.Secret) {
		s.any(f, in)
	}
}

func (s *search) endLayer() {
	for at := range s.here {
		s.seen[at] = true
	}
	clear(s.here)
}

// aroundChanges returns the part of a layer that its step has decoded, with a number of whole lines before and after.
func (l layer) aroundChanges(lines int) layer {
	var text strings.Builder
	var origins []int
	end := 0
	for _, c := range l.changed {
		if c.end < end {
			continue
		}
		from, to := max(c.start, end), c.end
		for range lines + 1 {
			at := strings.LastIndexByte(l.text[end:from], '\n')
			from = end + max(at, 0)
			if at < 0 {
				break
			}
		}
		if from > end {
			from++
		}
		for range lines + 1 {
			next := strings.IndexByte(l.text[to:], '\n')
			if next < 0 {
				to = len(l.text)
				break
			}
			to += next + 1
		}
		text.WriteString(l.text[from:to])
		origins = append(origins, l.origins[from:to]...)
		end = to
	}
	return layer{text: text.String(), origins: append(origins, l.origins[end])}
}
