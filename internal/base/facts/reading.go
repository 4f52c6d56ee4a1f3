package facts

import (
	"maps"
	"slices"
)

// Add returns the reading with facts of another reader, such as a checker of the operator, which may have classes of
// its own.
func (r Reading) Add(more []Fact) Reading {
	both := sorted(slices.Concat(r.Facts, more))
	counts := maps.Clone(r.Counts)
	if counts == nil {
		counts = map[Class]int{}
	}
	for _, f := range more {
		counts[f.Class]++
	}
	return Reading{Facts: both.Facts, Counts: counts, More: r.More + both.More}
}

// Found lists the classes of which there are facts: the gravest first, and after them those of checkers, by name.
func (r Reading) Found() []Class {
	found := slices.DeleteFunc(Classes(), func(c Class) bool { return r.Counts[c] == 0 })
	for _, c := range slices.Sorted(maps.Keys(r.Counts)) {
		if !slices.Contains(Classes(), c) && r.Counts[c] > 0 {
			found = append(found, c)
		}
	}
	return found
}
