// Package trust says by type whose word a value is. What the operator has said may open a host, a repository or a
// folder; what a project's file or a caller says chooses among that, and opens nothing itself. What reaches past the
// program (internal/system/transport, internal/system/git) takes an Operator; the only ways to one are Said, which a
// test of the architecture allows to the readers of the operator's settings alone, and a choice from a list that the
// operator has made (internal/settings/sources).
package trust

// Operator is a value that the operator has given: by a flag, a variable, the policy file or a file of their own. The
// zero value means that the operator has given none.
type Operator[T any] struct {
	value T
	given bool
}

// Said makes a value the operator's. Only who has read it from the operator's settings may say so.
func Said[T any](value T) Operator[T] { return Operator[T]{value, true} }

// Get returns the value; said is false, and the value zero, if the operator has said nothing.
func (o Operator[T]) Get() (value T, said bool) { return o.value, o.given }

// Value returns the value; the zero value of its type if the operator has said nothing.
func (o Operator[T]) Value() T { return o.value }

// Wish is a value that somebody other than the operator gives. It may choose among the operator's values.
type Wish[T any] interface{ Wanted() T }

// Project is a value from a file of a checkout, a repository or a registry: data of anyone who may change that.
type Project[T any] struct{ Data T }

// Wanted implements Wish.
func (p Project[T]) Wanted() T { return p.Data }

// Caller is a value from an argument of a call.
type Caller[T any] struct{ Argument T }

// Wanted implements Wish.
func (c Caller[T]) Wanted() T { return c.Argument }
