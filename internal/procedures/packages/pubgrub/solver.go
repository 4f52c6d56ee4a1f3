package pubgrub

import (
	"context"
	"slices"
)

// solver is a search on its way.
type solver struct {
	ctx      context.Context
	world    World
	packages []*pack
	ids      map[string]int
	admitted map[Need]bitset

	trail  []trailStep
	levels []level
	queue  []int // packages in the order in which they are decided
	at     int   // those before it are decided
	// given says that nothing is added to the clauses that there are: what they contradict is looked for among them alone.
	given     bool
	conflicts int
	facts     int
}

// pack is a package with its possible states.
type pack struct {
	Package
	name    string
	all     bitset // each version, and, as the last number, that it is not installed
	domain  bitset // what it may still become
	added   bitset // versions whose needs are among the clauses
	queued  bool
	decided bool
	clauses []*clause
	steps   []int // of the trail, about it
}

// none returns the number that stands for not being installed.
func (p *pack) none() int { return len(p.Versions) }

// trailStep is a finding or a decision of the search.
type trailStep struct {
	of     int
	says   bitset  // what the package may become because of this step
	domain bitset  // and because of all steps before it
	cause  *clause // nil for a decision
	level  int     // how many decisions were made, this one counted
}

// level is the state before a decision.
type level struct{ trail, queue, at int }

func newSolver(ctx context.Context, world World) *solver {
	return &solver{ctx: ctx, world: world, ids: map[string]int{}, admitted: map[Need]bitset{}}
}

// resolveWishes searches. It returns the clause without terms if there is no solution.
func (s *solver) resolveWishes(wishes []Wish) (*clause, error) {
	for _, w := range wishes {
		id, admitted, err := s.need(w.Need)
		if err != nil {
			return nil, err
		}
		p := s.packages[id]
		fact := &Fact{Wish: &w, Need: w.Need, Missing: len(p.Versions) == 0, Unmet: admitted.empty()}
		c, _ := s.newClause(fact, term{id, p.all.without(admitted)})
		s.enqueue(id)
		if refuted, err := s.learn(c); refuted != nil || err != nil {
			return refuted, err
		}
	}
	return s.solve()
}

// solve decides package after package.
func (s *solver) solve() (*clause, error) {
	for {
		id, ok := s.nextPackage()
		if !ok {
			return nil, nil
		}
		p := s.packages[id]
		v := p.preferred()
		if !s.given && !p.added.has(v) {
			fresh, err := s.needs(id, v)
			if err != nil {
				return nil, err
			}
			for _, c := range fresh { // they may say that this version will not do
				if refuted, err := s.learn(c); refuted != nil || err != nil {
					return refuted, err
				}
			}
			continue
		}
		s.decide(id, v)
		if refuted, err := s.propagate(id); refuted != nil || err != nil {
			return refuted, err
		}
	}
}

// nextPackage returns the package to decide.
func (s *solver) nextPackage() (int, bool) {
	if s.given {
		i := slices.IndexFunc(s.packages, func(p *pack) bool { return !p.decided && !p.domain.has(p.none()) })
		return i, i >= 0
	}
	for s.at < len(s.queue) && s.packages[s.queue[s.at]].decided {
		s.at++
	}
	if s.at == len(s.queue) {
		return 0, false
	}
	return s.queue[s.at], true
}

func (s *solver) enqueue(id int) {
	if p := s.packages[id]; !p.queued {
		p.queued, s.queue = true, append(s.queue, id)
	}
}

// preferred returns the version to try.
func (p *pack) preferred() int {
	for _, v := range p.Order {
		if p.domain.has(v) {
			return v
		}
	}
	for v := len(p.Versions) - 1; v >= 0; v-- {
		if p.domain.has(v) {
			return v
		}
	}
	return -1 // a package that has to be decided has a version left
}

// decide chooses a version; the packages that it needs are decided after those that wait.
func (s *solver) decide(id, version int) {
	p := s.packages[id]
	s.levels = append(s.levels, level{len(s.trail), len(s.queue), s.at})
	one := make(bitset, len(p.all))
	one.add(version)
	s.addStep(id, one, nil)
	p.decided = true
	if s.given {
		return
	}
	for _, n := range p.Versions[version].Needs {
		s.enqueue(s.ids[n.Package])
	}
}

// addStep adds a step.
func (s *solver) addStep(id int, says bitset, cause *clause) {
	p := s.packages[id]
	p.domain = p.domain.and(says)
	p.steps = append(p.steps, len(s.trail))
	s.trail = append(s.trail, trailStep{id, says, p.domain, cause, len(s.levels)})
}

// back undoes all decisions except the first to, and what followed from them.
func (s *solver) back(to int) {
	if to == len(s.levels) {
		return
	}
	before := s.levels[to]
	for i := len(s.trail) - 1; i >= before.trail; i-- {
		p := s.packages[s.trail[i].of]
		p.steps = p.steps[:len(p.steps)-1]
		p.domain, p.decided = p.all, false
		if last := len(p.steps) - 1; last >= 0 {
			p.domain, p.decided = s.trail[p.steps[last]].domain, s.trail[p.steps[last]].cause == nil
		}
	}
	for _, id := range s.queue[before.queue:] {
		s.packages[id].queued = false
	}
	s.trail, s.queue, s.at, s.levels = s.trail[:before.trail], s.queue[:before.queue], before.at, s.levels[:to]
}

// learn takes a clause into account.
func (s *solver) learn(c *clause) (*clause, error) {
	if len(c.terms) == 0 {
		return c, nil
	}
	s.indexClause(c)
	return s.propagate(c.terms[0].of)
}

func (s *solver) indexClause(c *clause) {
	if c.known {
		return
	}
	c.known = true
	for _, t := range c.terms {
		s.packages[t.of].clauses = append(s.packages[t.of].clauses, c)
	}
}

// holds says how many terms of a clause do not hold yet, 2 for more than one, and which one that is. never is true if
// one of them cannot hold any more.
func (s *solver) holds(c *clause) (open int, which term, never bool) {
	for _, t := range c.terms {
		domain := s.packages[t.of].domain
		switch {
		case domain.isSubset(t.set):
		case domain.apart(t.set):
			return 0, term{}, true
		case open == 1:
			return 2, term{}, false
		default:
			open, which = 1, t
		}
	}
	return open, which, false
}

// propagate draws what follows from a package that was narrowed, or whose clauses have grown.
func (s *solver) propagate(from int) (*clause, error) {
	changed := []int{from}
	for len(changed) > 0 {
		p := s.packages[changed[len(changed)-1]]
		changed = changed[:len(changed)-1]
		for i := len(p.clauses) - 1; i >= 0; i-- {
			c := p.clauses[i]
			open, which, never := s.holds(c)
			if never || open > 1 {
				continue
			}
			over := open == 0
			if over {
				var err error
				if c, err = s.conflict(c); err != nil || len(c.terms) == 0 {
					return c, err
				}
				_, which, _ = s.holds(c) // all of its terms hold but one
				changed = changed[:0]
			}
			s.addStep(which.of, s.packages[which.of].all.without(which.set), c)
			if !slices.Contains(changed, which.of) {
				changed = append(changed, which.of)
			}
			if over {
				break
			}
		}
	}
	return nil, nil
}

// conflict looks for what was wrong when all terms of a clause hold. It goes back to before the decision that has to be
// another, and gives the clause that says so: all of its terms but one hold there.
func (s *solver) conflict(c *clause) (*clause, error) {
	if s.conflicts++; s.conflicts%64 == 0 {
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
	}
	for len(c.terms) > 0 {
		last, which := -1, term{} // the step that made the last term hold
		before := 0               // the level at which the others do
		for _, t := range c.terms {
			at := s.madeHold(t, nil)
			if at > last {
				at, last, which = last, at, t
			}
			if at >= 0 {
				before = max(before, s.trail[at].level)
			}
		}
		it := s.trail[last]
		if !it.says.isSubset(which.set) { // only together with an earlier step about the same package
			before = max(before, s.trail[s.madeHold(which, it.says)].level)
		}
		if it.cause == nil || before < it.level {
			s.back(before)
			s.indexClause(c)
			return c, nil
		}
		c = s.resolve(c, it.cause, which.of)
	}
	return c, nil
}

// madeHold returns the first step after which a term holds, given also what another step says, if that is not nil.
func (s *solver) madeHold(t term, also bitset) int {
	for _, at := range s.packages[t.of].steps {
		domain := s.trail[at].domain
		if also != nil {
			domain = domain.and(also)
		}
		if domain.isSubset(t.set) {
			return at
		}
	}
	return -1
}

// pack returns a package by its name.
func (s *solver) pack(name string) (int, error) {
	if id, ok := s.ids[name]; ok {
		return id, nil
	}
	known, err := s.world.Package(name)
	if err != nil {
		return 0, err
	}
	p := &pack{Package: known, name: name, all: fullSet(len(known.Versions) + 1)}
	p.domain, p.added = p.all, make(bitset, len(p.all))
	id := len(s.packages)
	s.packages, s.ids[name] = append(s.packages, p), id
	return id, nil
}

// need returns the package of a need, and the versions that it admits.
func (s *solver) need(n Need) (id int, admitted bitset, err error) {
	if id, err = s.pack(n.Package); err != nil {
		return 0, nil, err
	}
	if admitted, ok := s.admitted[n]; ok {
		return id, admitted, nil
	}
	admits, err := s.world.Admits(n.Package, n.Constraint)
	if err != nil {
		return 0, nil, err
	}
	p := s.packages[id]
	admitted = make(bitset, len(p.all))
	for v := range p.Versions {
		if admits(v) {
			admitted.add(v)
		}
	}
	s.admitted[n] = admitted
	return id, admitted, nil
}

// needs returns the clauses for what a version needs. Versions that need the same share them.
func (s *solver) needs(id, version int) (out []*clause, err error) {
	p := s.packages[id]
	if why := p.Versions[version].Broken; why != "" {
		alike := p.like(func(v Version) bool { return v.Broken == why })
		c, _ := s.newClause(p.fact(alike, &Fact{broken: why}), term{id, alike})
		out = append(out, c)
	}
	for _, n := range p.Versions[version].Needs {
		other, admitted, err := s.need(n)
		if err != nil {
			return nil, err
		}
		alike := p.like(func(v Version) bool { return slices.Contains(v.Needs, n) })
		q := s.packages[other]
		fact := p.fact(alike, &Fact{Need: n, Missing: len(q.Versions) == 0, Unmet: admitted.empty()})
		if c, always := s.newClause(fact, term{id, alike}, term{other, q.all.without(admitted)}); !always && !p.has(fact) {
			out = append(out, c)
		}
	}
	p.added.add(version)
	return out, nil
}

// has reports whether a fact is among the clauses, since another version of the package needs the same.
func (p *pack) has(f *Fact) bool {
	return slices.ContainsFunc(p.clauses, func(c *clause) bool {
		return c.fact != nil && c.fact.Of == f.Of && c.fact.Need == f.Need && c.fact.Wish == nil && c.fact.broken == f.broken
	})
}

func (p *pack) like(which func(Version) bool) bitset {
	out := make(bitset, len(p.all))
	for i, v := range p.Versions {
		if which(v) {
			out.add(i)
		}
	}
	return out
}

func (p *pack) fact(of bitset, f *Fact) *Fact {
	f.Of, f.of, f.set = p.name, p, of
	for i, v := range p.Versions {
		if of.has(i) {
			f.Versions = append(f.Versions, v.Text)
		}
	}
	return f
}
