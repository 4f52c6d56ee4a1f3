package pubgrub

import (
	"cmp"
	"slices"
)

// term holds if the package ends up in one of the states of the set.
type term struct {
	of  int
	set set
}

// clause is terms that must not hold all at once, one for each package, in the order of packages.
type clause struct {
	terms []term
	fact  *Fact   // that it says; nil for one that was concluded
	from  *clause // what it was concluded from
	and   *clause
	known bool // the packages have it in their lists
}

// Fact is a statement of the world or of the caller.
type Fact struct {
	Wish *Wish // of the caller; nil for none
	// Of needs Need in these versions, from the lowest to the highest. Need is empty for versions that are broken.
	Of       string
	Versions []string
	Need     Need
	Missing  bool // there is no version of what is needed at all
	Unmet    bool // there is none that satisfies the constraint

	place  int // among facts, in the order in which they were found
	of     *pack
	set    set // Versions
	broken string
}

// Who names the versions that need something, such as "a 1.0.0 or 1.1.0".
func (f Fact) Who() string { return f.of.some(f.set, "every version of ") }

// newClause joins terms of the same package. always is true if they can never hold together.
func (s *solver) newClause(fact *Fact, terms ...term) (c *clause, always bool) {
	fact.place = s.facts
	s.facts++
	slices.SortStableFunc(terms, func(a, b term) int { return cmp.Compare(a.of, b.of) })
	c = &clause{fact: fact}
	for _, t := range terms {
		if last := len(c.terms) - 1; last >= 0 && c.terms[last].of == t.of {
			c.terms[last].set = c.terms[last].set.and(t.set)
			continue
		}
		c.terms = append(c.terms, t)
	}
	for _, t := range c.terms {
		always = always || t.set.empty()
	}
	c.terms = slices.DeleteFunc(c.terms, func(t term) bool { return s.packages[t.of].all.within(t.set) })
	return c, always
}

// resolve returns the clause that follows from two clauses that share a package: in whatever state the package ends up,
// one of the two forbids the other terms, unless the state is in neither clause's set.
func (s *solver) resolve(a, b *clause, about int) *clause {
	out := &clause{from: a, and: b, terms: make([]term, 0, len(a.terms)+len(b.terms))}
	add := func(t term) {
		if !s.packages[t.of].all.within(t.set) {
			out.terms = append(out.terms, t)
		}
	}
	for i, j := 0, 0; i < len(a.terms) || j < len(b.terms); {
		switch {
		case j == len(b.terms) || i < len(a.terms) && a.terms[i].of < b.terms[j].of:
			add(a.terms[i])
			i++
		case i == len(a.terms) || b.terms[j].of < a.terms[i].of:
			add(b.terms[j])
			j++
		default:
			t := term{a.terms[i].of, a.terms[i].set.and(b.terms[j].set)}
			if t.of == about {
				t.set = a.terms[i].set.or(b.terms[j].set)
			}
			add(t)
			i, j = i+1, j+1
		}
	}
	return out
}
