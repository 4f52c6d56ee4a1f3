// Package pubgrub chooses versions of packages that go together, or says why none do. It is pure: what packages there
// are, and what their constraints admit, it asks of a World.
//
// The search is driven by conflicts, as in PubGrub. Knowledge is held as clauses: sets of terms that must not all hold
// at once. "a 1.0.0 needs b ^2" is the clause "a is 1.0.0, and b is outside of ^2". A term is a set of possible states
// of a package: one of its versions, or not installed. Choices narrow these sets through the clauses. A clause whose
// terms all hold is a conflict: it is resolved with the clauses that led to it, until a new clause is found that
// forbids the choice which was wrong. The search goes back to that choice, and never makes the mistake again. The
// clause without terms means that there is no solution, and the clauses that it was derived from are the reason.
//
// Of all solutions it gives the first: packages are decided in the order in which they are wished for (the caller's
// wishes, then those of each package that was decided), and of each the version that its Order has first among those
// that lead to a solution. A clause forbids only what has no solution, so that nothing is passed over.
package pubgrub

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
)

// World knows the packages.
type World interface {
	// Package returns the versions of a package; none for one that does not exist. It is called once for each.
	Package(name string) (Package, error)
	// Admits says which versions of a package, by their places in Versions, satisfy a constraint. It is called once for
	// each pair.
	Admits(name, constraint string) (func(version int) bool, error)
}

// Package lists the versions of a package.
type Package struct {
	Versions []Version // from the lowest to the highest
	Order    []int     // in which they are tried, as places in Versions; nil for from the highest down
}

// Version is one version of a package.
type Version struct {
	Text  string // as people read it
	Needs []Need // each package once
	// Broken says why it cannot be chosen, as what follows "a 1.0.0"; "" if it can.
	Broken string
}

// Need is a package that is needed, and which versions of it are.
type Need struct{ Package, Constraint string }

// Wish is a need of the caller's.
type Wish struct {
	Need
	Why string // a sentence without its end, such as "a ^1.0.0 is asked for"
}

// Solve chooses a version for each wish, and for everything that the chosen versions need. The answer has places in
// Versions. An error is a *Refusal if no versions go together, that of the World, or that of the context.
func Solve(ctx context.Context, world World, wishes []Wish) (map[string]int, error) {
	s := newSolver(ctx, world)
	refuted, err := s.resolveWishes(wishes)
	if err != nil {
		return nil, err
	}
	if refuted != nil {
		return nil, s.explainConflict(refuted)
	}
	out := map[string]int{}
	for _, id := range s.queue {
		out[s.packages[id].name] = s.packages[id].domain.first()
	}
	return out, nil
}

// term holds if the package ends up in one of the states of the set.
type term struct {
	of  int
	set bitset
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
	set    bitset // Versions
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
	c.terms = slices.DeleteFunc(c.terms, func(t term) bool { return s.packages[t.of].all.isSubset(t.set) })
	return c, always
}

// resolve returns the clause that follows from two clauses that share a package: in whatever state the package ends up,
// one of the two forbids the other terms, unless the state is in neither clause's set.
func (s *solver) resolve(a, b *clause, about int) *clause {
	out := &clause{from: a, and: b, terms: make([]term, 0, len(a.terms)+len(b.terms))}
	add := func(t term) {
		if !s.packages[t.of].all.isSubset(t.set) {
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

// bitset is a set of small numbers. Sets that are combined have the same length.
type bitset []uint64

func wordCount(n int) int { return (n + 63) / 64 }

// fullSet has the numbers below n.
func fullSet(n int) bitset {
	s := make(bitset, wordCount(n))
	for i := range s {
		s[i] = ^uint64(0)
	}
	if rest := n % 64; rest != 0 {
		s[len(s)-1] = 1<<rest - 1
	}
	return s
}

func (s bitset) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s bitset) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

func (s bitset) combine(other bitset, f func(a, b uint64) uint64) bitset {
	out := make(bitset, len(s))
	for i := range s {
		out[i] = f(s[i], other[i])
	}
	return out
}

func (s bitset) and(other bitset) bitset {
	return s.combine(other, func(a, b uint64) uint64 { return a & b })
}

func (s bitset) or(other bitset) bitset {
	return s.combine(other, func(a, b uint64) uint64 { return a | b })
}

func (s bitset) without(other bitset) bitset {
	return s.combine(other, func(a, b uint64) uint64 { return a &^ b })
}

// isSubset reports whether all of s is in other.
func (s bitset) isSubset(other bitset) bool {
	for i := range s {
		if s[i]&^other[i] != 0 {
			return false
		}
	}
	return true
}

// apart reports whether s and other have nothing in common.
func (s bitset) apart(other bitset) bool {
	for i := range s {
		if s[i]&other[i] != 0 {
			return false
		}
	}
	return true
}

func (s bitset) empty() bool {
	for _, w := range s {
		if w != 0 {
			return false
		}
	}
	return true
}

// first returns the lowest number; -1 for none.
func (s bitset) first() int {
	for i, w := range s {
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}
