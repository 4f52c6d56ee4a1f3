package pubgrub

import (
	"cmp"
	"fmt"
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

// explainConflict makes the reasons of a clause without terms.
func (s *solver) explainConflict(refuted *clause) *Refusal {
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
	w.countUses(refuted)
	w.explainClause(refuted)
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
	return s.solve()
}

// writer makes sentences of how a clause was concluded.
type writer struct {
	packages []*pack
	lines    []string
	used     map[*clause]int // how often something is concluded from it
	line     map[*clause]int // its number, if it has one
	number   int
}

func (w *writer) countUses(c *clause) {
	if w.used[c]++; w.used[c] > 1 || c.fact != nil {
		return
	}
	w.countUses(c.from)
	w.countUses(c.and)
}

// explainClause says how a clause was concluded. What is needed again later gets a number.
func (w *writer) explainClause(c *clause) {
	if c.fact != nil {
		w.writeSentence(c, "%s, so that %s", capital(w.fact(c)), w.clauseText(c))
		return
	}
	a, b := c.from, c.and
	if a.fact != nil {
		a, b = b, a
	}
	switch {
	case a.fact != nil:
		a, b = inOrder(a, b)
		w.writeSentence(c, "Because %s", w.because(a, b, c))
	case b.fact != nil:
		w.writeOne(c, a, b)
	default:
		w.writeTwo(c, a, b)
	}
}

// inOrder gives two facts in the order in which they were found.
func inOrder(a, b *clause) (first, second *clause) {
	if b.fact.place < a.fact.place {
		return b, a
	}
	return a, b
}

// writeOne writes a clause that was concluded from another one and a fact.
func (w *writer) writeOne(c, a, fact *clause) {
	if _, said := w.line[a]; said {
		w.writeSentence(c, "Because %s", w.because(fact, a, c))
		return
	}
	inner, other := a.from, a.and // of the sentence before: two facts in one sentence are one sentence less
	if inner.fact != nil {
		inner, other = other, inner
	}
	if _, said := w.line[inner]; inner.fact == nil && other.fact != nil && !said && w.used[a] == 1 {
		w.explainClause(inner)
		other, fact = inOrder(other, fact)
		w.writeSentence(c, "And because %s and %s, %s", w.fact(other), w.fact(fact), w.clauseText(c))
		return
	}
	w.explainClause(a)
	w.writeSentence(c, "And because %s, %s", w.fact(fact), w.clauseText(c))
}

// writeTwo writes a clause that was concluded from two others.
func (w *writer) writeTwo(c, a, b *clause) {
	_, aSaid := w.line[a]
	_, bSaid := w.line[b]
	switch {
	case aSaid && bSaid:
		w.writeSentence(c, "Because %s", w.because(a, b, c))
	case aSaid || bSaid:
		if aSaid {
			a, b = b, a
		}
		w.explainClause(a)
		w.writeSentence(c, "And because %s, %s", w.describeClause(b), w.clauseText(c))
	default:
		if a.ofFacts() {
			a, b = b, a
		}
		w.used[a] = max(w.used[a], 2) // so that it has a number
		w.explainClause(a)
		if _, said := w.line[b]; !said {
			w.explainClause(b)
		}
		w.writeSentence(c, "And because %s, %s", w.describeClause(a), w.clauseText(c))
	}
}

func (c *clause) ofFacts() bool { return c.from.fact != nil && c.and.fact != nil }

// because returns the reasons of a clause, and the clause.
func (w *writer) because(a, b, c *clause) string {
	return fmt.Sprintf("%s and %s, %s", w.describeClause(a), w.describeClause(b), w.clauseText(c))
}

// writeSentence writes a sentence, which ends with its number if something else follows from it.
func (w *writer) writeSentence(c *clause, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if w.used[c] > 1 {
		w.number++
		w.line[c] = w.number
		text += fmt.Sprintf(" (%d)", w.number)
	}
	w.lines = append(w.lines, text+".")
}

// describeClause returns a fact, or a conclusion with its number.
func (w *writer) describeClause(c *clause) string {
	if c.fact != nil {
		return w.fact(c)
	}
	if n, said := w.line[c]; said {
		return fmt.Sprintf("%s (%d)", w.clauseText(c), n)
	}
	return w.clauseText(c)
}

func (w *writer) fact(c *clause) string {
	f := c.fact
	unmet := ""
	switch {
	case f.broken != "":
	case f.Missing:
		unmet = " (there is no " + f.Need.Package + ")"
	case f.Unmet:
		unmet = " (there is none)"
	}
	if f.Wish != nil {
		return f.Wish.Why + unmet
	}
	if f.broken != "" {
		return f.Who() + " " + f.broken
	}
	return fmt.Sprintf("%s needs %s %s%s", f.Who(), f.Need.Package, f.Need.Constraint, unmet)
}

// clauseText says what a clause means.
func (w *writer) clauseText(c *clause) string {
	var have, need []string
	for _, t := range c.terms {
		p := w.packages[t.of]
		if t.set.has(p.none()) {
			need = append(need, p.some(p.all.without(t.set), "some version of "))
		} else {
			have = append(have, p.some(t.set, "every version of "))
		}
	}
	switch {
	case len(c.terms) == 0:
		return "what is asked for cannot be installed"
	case len(have) == 0:
		return strings.Join(need, " or ") + " has to be installed"
	case len(need) > 0 && len(have) == 1:
		return have[0] + " needs " + strings.Join(need, " or ")
	case len(need) > 0:
		return joinAnd(have) + " together need " + strings.Join(need, " or ")
	case len(have) > 1:
		return joinAnd(have) + " do not go together"
	}
	if p := w.packages[c.terms[0].of]; p.every(c.terms[0].set) && len(p.Versions) > 1 {
		return "no version of " + p.name + " can be installed"
	}
	return have[0] + " cannot be installed"
}

// every reports whether a set has all versions.
func (p *pack) every(s bitset) bool {
	for i := range p.Versions {
		if !s.has(i) {
			return false
		}
	}
	return true
}

// some names versions of a package; all is put before its name if it stands for all of them.
func (p *pack) some(s bitset, all string) string {
	if p.every(s) && len(p.Versions) > 1 {
		return all + p.name
	}
	return p.name + " " + runs(p.texts(), s.has)
}

// maxRuns bounds how many runs of versions are named.
const maxRuns = 4

// runs names those of versions that are in: runs of them by their ends.
func runs(versions []string, in func(int) bool) string {
	var out []string
	for i := 0; i < len(versions); i++ {
		if !in(i) {
			continue
		}
		from := i
		for i+1 < len(versions) && in(i+1) {
			i++
		}
		switch {
		case from == i:
			out = append(out, versions[i])
		case from+1 == i:
			out = append(out, versions[from], versions[i])
		default:
			out = append(out, versions[from]+" to "+versions[i])
		}
	}
	if more := len(out) - maxRuns; more > 1 {
		out = append(out[:maxRuns], fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, " or ")
}

func joinAnd(texts []string) string {
	last := len(texts) - 1
	if last < 1 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:last], ", ") + " and " + texts[last]
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
