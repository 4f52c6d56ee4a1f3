package content

import (
	"context"
	"strings"

	"github.com/claudeops/claudeops/internal/base/content/secretrules"
)

const (
	// contextLines is how many lines before and after what a layer has decoded are looked at with it.
	contextLines = 2
	// minBudget is how many bytes of pieces put together are looked at for a text that is no longer.
	minBudget = 1 << 20
)

// search is the search for credentials of others in one text.
type search struct {
	rules *secretrules.Set
	lines lineIndex
	seen  map[place]bool // what an earlier layer has shown
	here  map[place]bool // what this one shows
	found []Secret
}

type place struct {
	rule string
	line int
}

// knownSecrets runs the rules over a text, over what its layers show beyond it, over both without comments, and over
// what line breaks part in all of these. The first layer is the text itself.
func knownSecrets(ctx context.Context, rules *secretrules.Set, layers []layer) ([]Secret, error) {
	s := &search{rules: rules, lines: newLineIndex(layers[0].text), seen: map[place]bool{}, here: map[place]bool{}}
	j := &joiner{rules: rules, budget: max(len(layers[0].text), minBudget), report: s.form}
	for i, l := range layers {
		if i > 0 {
			l = l.aroundChanges(contextLines)
		}
		if err := s.look(ctx, l, s.any); err != nil {
			return nil, err
		}
	}
	for i, l := range layers {
		if i > 0 {
			l = l.aroundChanges(maxPieces)
		}
		parts := []layer{l}
		if bare, ok := l.withoutMarkup(); ok {
			within := bare
			within.changed = bare.changedInWords()
			if err := s.look(ctx, within.aroundChanges(contextLines), s.form); err != nil {
				return nil, err
			}
			parts = append(parts, bare)
		}
		for _, part := range parts {
			beyond, err := j.layer(ctx, part)
			if err != nil || beyond >= 0 && len(s.found) > 0 { // it is refused anyway
				return s.found, err
			}
			if beyond >= 0 {
				line, column := s.lines.position(beyond)
				return append(s.found, Secret{Rule: DividedRule,
					Description: "Too many words that may be parts of credentials to try them all.",
					Line:        line, Column: column, LastLine: len(s.lines.starts)}), nil
			}
		}
		s.endLayer()
	}
	return s.found, nil
}

// look runs the rules over a layer.
func (s *search) look(ctx context.Context, l layer, report func(secretrules.Finding, layer)) error {
	findings, err := s.rules.Find(ctx, l.text)
	for _, f := range findings {
		report(f, l)
	}
	s.endLayer()
	return err
}

// any takes a finding of every rule.
func (s *search) any(f secretrules.Finding, in layer) {
	line, column := s.lines.position(in.origin(f.Start))
	at := place{f.Rule, line}
	if s.seen[at] {
		return
	}
	s.here[at] = true
	last, _ := s.lines.position(in.lastOrigin(f.To))
	s.found = append(s.found, Secret{Rule: f.Rule, Description: f.Description, Line: line, Column: column,
		LastLine: max(line, last)})
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

// aroundChanges is the part of a layer that its step has decoded, with a number of whole lines before and after.
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
