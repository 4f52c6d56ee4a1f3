package facts

import "strings"

// splitLines gives the lines of a text without their ends.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	return lines
}

// changedLines says which lines of after are not in before, and which of before are not in after. What both begin and
// end with is the same; between, a line that was moved counts as the same, as often as it is there. Linear in the
// length of both.
func changedLines(before, after []string) (removed, added []bool) {
	removed, added = make([]bool, len(before)), make([]bool, len(after))
	if len(before) == 0 {
		for i := range added {
			added[i] = true
		}
		return removed, added
	}
	start := 0
	for start < len(before) && start < len(after) && before[start] == after[start] {
		start++
	}
	endBefore, endAfter := len(before), len(after)
	for endBefore > start && endAfter > start && before[endBefore-1] == after[endAfter-1] {
		endBefore, endAfter = endBefore-1, endAfter-1
	}
	left := map[string]int{}
	for _, line := range before[start:endBefore] {
		left[line]++
	}
	for i := start; i < endAfter; i++ {
		if left[after[i]] > 0 {
			left[after[i]]--
		} else {
			added[i] = true
		}
	}
	for i := endBefore - 1; i >= start; i-- { // the first ones of equal lines are those that were kept
		if left[before[i]] > 0 {
			left[before[i]]--
			removed[i] = true
		}
	}
	return removed, added
}
