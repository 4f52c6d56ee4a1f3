package content

import (
	"context"
	"fmt"
	"strings"

	"github.com/zricethezav/gitleaks/v8/detect"
	"github.com/zricethezav/gitleaks/v8/report"
)

// knownSecrets runs the rules over a text and what its layers show beyond it. The first layer is the text itself.
func knownSecrets(ctx context.Context, detector *detect.Detector, layers []layer) ([]Secret, error) {
	original := layers[0].text
	type place struct {
		rule string
		line int
	}
	seen := map[place]bool{}
	var found []Secret
	look := func(part layer, guesses bool) error {
		reports, err := scan(ctx, detector, part.text)
		if err != nil {
			return err
		}
		starts, here := lineStarts(part.text), map[place]bool{}
		for _, r := range reports {
			if heuristic(r.RuleID) && !guesses || harmless(r.RuleID, r.Secret) {
				continue
			}
			line, column := position(original[:part.origin(reportOffset(starts, part.text, r))])
			at := place{r.RuleID, line}
			if seen[at] { // the layer before has shown it
				continue
			}
			here[at] = true
			found = append(found, Secret{Rule: r.RuleID, Description: r.Description, Line: line, Column: column})
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

// scan runs the rules. A panic of the library is an error: a text that it cannot read is not a clean text.
func scan(ctx context.Context, detector *detect.Detector, text string) (reports []report.Finding, err error) {
	defer func() {
		if p := recover(); p != nil {
			reports, err = nil, fmt.Errorf("the scanner failed (%T)", p) // the value itself may quote text
		}
	}()
	// No file path: the library's exceptions and rules by path stay out of play.
	reports = detector.DetectContext(ctx, detect.Fragment{Raw: text}) //nolint:staticcheck // version 8 has no other
	if err := ctx.Err(); err != nil {
		return nil, err // the library stops early without saying so
	}
	return reports, nil
}

// lineStarts gives the byte offset of each line of text.
func lineStarts(text string) []int {
	starts := []int{0}
	for at := 0; ; {
		newline := strings.IndexByte(text[at:], '\n')
		if newline < 0 {
			return starts
		}
		at += newline + 1
		starts = append(starts, at)
	}
}

// reportOffset is the byte offset of a finding. The library counts lines from 0, and columns in bytes from 1 on the first
// line and from 2 on all others.
func reportOffset(starts []int, text string, r report.Finding) int {
	row := min(max(r.StartLine, 0), len(starts)-1)
	column := r.StartColumn - 1
	if row > 0 {
		column--
	}
	return min(starts[row]+max(column, 0), len(text))
}
