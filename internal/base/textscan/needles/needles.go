// Package needles finds many strings in a text in one pass, with the automaton of Aho and Corasick ("Efficient string
// matching", 1975). Each state has its next ones in a table, of which bytes that stand in no string share a column: for
// the literals of the secret rules that is a ninth of what a table of 256 columns takes.
package needles

// Set is strings that are looked for. It is safe for concurrent use.
type Set struct {
	column  [256]int32 // of each byte; 0 for those that stand in no string
	width   int32      // the number of columns
	next    []int32    // the state behind a byte, by state*width+column; state 0 is the beginning
	longest []int32    // the state of the longest string that ends in a state; 0 if there is none
	shorter []int32    // of a state in which a string ends: the state of the next shorter one; 0 if there is none
	ends    []end      // by state
}

// end is a string that ends in a state.
type end struct{ needle, length int }

// New makes a set of strings that differ. Sorted ones take the least memory while it is made.
func New(needles []string) *Set {
	s := &Set{width: 1}
	states := 1
	for i, needle := range needles {
		for _, c := range []byte(needle) {
			if s.column[c] == 0 {
				s.column[c] = s.width
				s.width++
			}
		}
		states += len(needle)
		if i > 0 {
			states -= inCommon(needles[i-1], needle)
		}
	}
	s.next, s.ends = make([]int32, s.width, states*int(s.width)), make([]end, 1, states)
	for i, needle := range needles {
		s.add(i, needle)
	}
	s.link()
	return s
}

// inCommon returns the number of bytes with which two strings begin alike.
func inCommon(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// add makes the states of a string.
func (s *Set) add(number int, needle string) {
	state := int32(0)
	for _, c := range []byte(needle) {
		at := state*s.width + s.column[c]
		if s.next[at] == 0 {
			s.next[at] = int32(len(s.ends))
			s.next = append(s.next, make([]int32, s.width)...)
			s.ends = append(s.ends, end{})
		}
		state = s.next[at]
	}
	s.ends[state] = end{number, len(needle)}
}

// link leads each state on where no string goes on from it: from the longest end of what it stands for that a string
// begins with. Shorter states come first, so what they lead to is known.
func (s *Set) link() {
	s.longest, s.shorter = make([]int32, len(s.ends)), make([]int32, len(s.ends))
	back := make([]int32, len(s.ends))
	for open := []int32{0}; len(open) > 0; open = open[1:] {
		state := open[0]
		s.shorter[state] = s.longest[back[state]]
		s.longest[state] = s.shorter[state]
		if s.ends[state].length > 0 {
			s.longest[state] = state
		}
		for column := range s.width {
			other := s.next[back[state]*s.width+column] // where the end leads
			switch next := &s.next[state*s.width+column]; {
			case *next == 0:
				*next = other
			case state == 0:
				open = append(open, *next)
			default:
				back[*next] = other
				open = append(open, *next)
			}
		}
	}
}

// Walk calls found for each place of a string in the text, by the place's end; of those with one end the longest comes
// first. It stops when found returns false. The text from start to end is the string with the number needle.
func (s *Set) Walk(text []byte, found func(start, end, needle int) bool) {
	state := int32(0)
	for i, c := range text {
		state = s.next[state*s.width+s.column[c]]
		for of := s.longest[state]; of != 0; of = s.shorter[of] {
			if e := s.ends[of]; !found(i+1-e.length, i+1, e.needle) {
				return
			}
		}
	}
}
