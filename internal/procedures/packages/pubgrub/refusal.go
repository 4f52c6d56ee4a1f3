package pubgrub

import (
	"cmp"
	"slices"
	"strings"
)

// Refusal says that no versions go together, and why.
type Refusal struct {
	// Facts are incompatible with each other. Each of them is part of the reason: without it, there would be a solution,
	// unless there were too many to try.
	Facts []Fact
	// Reasons are sentences. Each follows from those before it, and the last says what cannot be had.
	Reasons []string
	// Packages are the packages that the facts name, with all their versions, from the lowest to the highest.
	Packages map[string][]string
}

// Error implements error.
func (r *Refusal) Error() string { return strings.Join(r.Reasons, " ") }

// refusal makes the reasons of a clause without terms.
func (s *solver) refusal(refuted *clause) *Refusal {
	if core := s.smallest(refuted.leaves()); core != nil {
		refuted = core
	}
	out := &Refusal{Packages: map[string][]string{}}
	for _, c := range refuted.leaves() {
		out.Facts = append(out.Facts, *c.fact)
		for _, name := range []string{c.fact.Of, c.fact.Need.Package} {
			if id, ok := s.ids[name]; ok {
				out.Packages[name] = s.packages[id].texts()
			}
		}
	}
	w := writer{packages: s.packages, used: map[*clause]int{}, line: map[*clause]int{}}
	w.count(refuted)
	w.write(refuted)
	out.Reasons = w.lines
	return out
}

func (p *pack) texts() []string {
	out := make([]string, len(p.Versions))
	for i, v := range p.Versions {
		out[i] = v.Text
	}
	return out
}

// leaves returns the facts that a clause was concluded from, each once, in the order in which they were found.
func (c *clause) leaves() (out []*clause) {
	seen := map[*clause]bool{}
	var visit func(c *clause)
	visit = func(c *clause) {
		switch {
		case seen[c]:
			return
		case c.fact != nil:
			out = append(out, c)
		default:
			seen[c] = true
			visit(c.from)
			visit(c.and)
			return
		}
		seen[c] = true
	}
	visit(c)
	slices.SortFunc(out, func(a, b *clause) int { return cmp.Compare(a.fact.place, b.fact.place) })
	return out
}

// Bounds of the search for the fewest facts.
const (
	maxFacts     = 250    // that are looked at one by one
	maxConflicts = 20_000 // in all
)

// smallest leaves out the facts without which the others still do not go together, and concludes from what remains. It
// gives nil if that is too much work.
func (s *solver) smallest(facts []*clause) (refuted *clause) {
	left := maxConflicts
	refute := func(facts []*clause) *clause {
		t := newSolver(s.ctx, s.world)
		t.given = true
		for _, p := range s.packages {
			t.packages = append(t.packages, &pack{Package: p.Package, name: p.name, all: p.all, domain: p.all})
		}
		refuted, err := t.contradicted(facts)
		if left -= t.conflicts; err != nil {
			left = 0
		}
		return refuted
	}
	if len(facts) > maxFacts {
		return nil
	}
	for i := 0; i < len(facts) && left > 0; {
		without := append(append([]*clause{}, facts[:i]...), facts[i+1:]...)
		c := refute(without)
		if c == nil {
			i++
			continue
		}
		facts, refuted = c.leaves(), c // which may be fewer still
		i = 0
	}
	return refuted
}

// contradicted looks for the clause without terms among facts alone.
func (s *solver) contradicted(facts []*clause) (*clause, error) {
	for _, f := range facts {
		if refuted, err := s.learn(&clause{terms: f.terms, fact: f.fact}); refuted != nil || err != nil {
			return refuted, err
		}
	}
	return s.search()
}
