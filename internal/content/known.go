package content

import (
	"context"
	"strings"

	"github.com/claudeops/claudeops/internal/content/secretrules"
)

// knownSecrets runs the rules over a text and what its layers show beyond it. The first layer is the text itself.
func knownSecrets(ctx context.Context, rules *secretrules.Set, layers []layer) ([]Secret, error) {
	original := layers[0].text
	type place struct {
		rule string
		line int
	}
	seen := map[place]bool{}
	var found []Secret
	look := func(part layer, guesses bool) error {
		findings, err := rules.Find(ctx, part.text)
		if err != nil {
			return err
		}
		here := map[place]bool{}
		for _, f := range findings {
			if heuristic(f.Rule) && !guesses || harmless(f.Rule, f.Secret) {
				continue
			}
			line, column := position(original[:part.origin(f.Start)])
			at := place{f.Rule, line}
			if seen[at] { // the layer before has shown it
				continue
			}
			here[at] = true
			found = append(found, Secret{Rule: f.Rule, Description: f.Description, Line: line, Column: column})
		}
		for at := range here {
			seen[at] = true
		}
		return nil
	}
	for i, l := range layers {
		if i > 0 {
			l = l.aroundChanges()
		}
		if err := look(l, true); err != nil {
			return nil, err
		}
	}
	for _, l := range layers {
		joined, ok := l.joinedLines()
		if !ok {
			continue
		}
		if err := look(joined, false); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// aroundChanges is the part of a layer that its step has decoded, with contextLines whole lines before and after.
func (l layer) aroundChanges() layer {
	const contextLines = 2
	var text strings.Builder
	var origins []int
	end := 0
	for _, c := range l.changed {
		from, to := c.start, c.end
		for range contextLines + 1 {
			from = strings.LastIndexByte(l.text[:from], '\n')
			if from < 0 {
				break
			}
		}
		from = max(from+1, end)
		for range contextLines + 1 {
			next := strings.IndexByte(l.text[to:], '\n')
			if next < 0 {
				to = len(l.text)
				break
			}
			to += next + 1
		}
		if to <= from {
			continue
		}
		text.WriteString(l.text[from:to])
		origins = append(origins, l.origins[from:to]...)
		end = to
	}
	return layer{text: text.String(), origins: append(origins, l.origins[end])}
}
