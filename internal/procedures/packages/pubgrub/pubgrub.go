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

import "context"

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
	refuted, err := s.run(wishes)
	if err != nil {
		return nil, err
	}
	if refuted != nil {
		return nil, s.refusal(refuted)
	}
	out := map[string]int{}
	for _, id := range s.queue {
		out[s.packages[id].name] = s.packages[id].domain.first()
	}
	return out, nil
}
