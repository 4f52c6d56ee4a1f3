package pubgrub

import "math/bits"

// set is a set of small numbers. Sets that are combined have the same length.
type set []uint64

func words(n int) int { return (n + 63) / 64 }

// fullSet has the numbers below n.
func fullSet(n int) set {
	s := make(set, words(n))
	for i := range s {
		s[i] = ^uint64(0)
	}
	if rest := n % 64; rest != 0 {
		s[len(s)-1] = 1<<rest - 1
	}
	return s
}

func (s set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

func (s set) combine(other set, f func(a, b uint64) uint64) set {
	out := make(set, len(s))
	for i := range s {
		out[i] = f(s[i], other[i])
	}
	return out
}

func (s set) and(other set) set {
	return s.combine(other, func(a, b uint64) uint64 { return a & b })
}

func (s set) or(other set) set {
	return s.combine(other, func(a, b uint64) uint64 { return a | b })
}

func (s set) without(other set) set {
	return s.combine(other, func(a, b uint64) uint64 { return a &^ b })
}

// within reports whether all of s is in other.
func (s set) within(other set) bool {
	for i := range s {
		if s[i]&^other[i] != 0 {
			return false
		}
	}
	return true
}

// apart reports whether s and other have nothing in common.
func (s set) apart(other set) bool {
	for i := range s {
		if s[i]&other[i] != 0 {
			return false
		}
	}
	return true
}

func (s set) empty() bool {
	for _, w := range s {
		if w != 0 {
			return false
		}
	}
	return true
}

// first returns the lowest number; -1 for none.
func (s set) first() int {
	for i, w := range s {
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}
