package secretrules

import (
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// automaton tells whether an expression may match at an offset of a text. Assertions count as true, but for that of the
// end of the text. It does not tell where a match ends, so a character costs it some nanoseconds, where package regexp
// needs 30 and more, and 200 to begin. It is safe for concurrent use.
type automaton struct {
	reading []*syntax.Inst // the instructions of the program that read a character
	after   []*state       // what each leads to; their next is not used
	first   *state
	mu      sync.Mutex
	known   map[string]*state // by their instructions
}

// state is what may follow in a match.
type state struct {
	insts       []uint16 // the instructions that may read the next character, in order
	ends        bool     // the expression has matched
	endsAtClose bool     // it has if the text ends here
	// next are the states behind each character of ASCII, made when they are first needed; nil for a state that is not
	// kept.
	next *[utf8.RuneSelf]atomic.Pointer[state]
}

const (
	// mostRead is the number of characters behind which a match is taken for granted.
	mostRead = 256
	// mostKnown is the number of states of an automaton that are kept, of a KiB each.
	mostKnown = 256
)

// nothing is the state in which no match is possible.
var nothing = &state{} //nolint:gochecknoglobals // a constant: it is compared with and never changed

// newAutomaton makes an automaton of an expression.
func newAutomaton(tree *syntax.Regexp) *automaton {
	program, _ := syntax.Compile(tree.Simplify()) // which returns no error: the expression was parsed
	a := &automaton{known: map[string]*state{}}
	number := map[uint32]uint16{} // by the place of the instructions in the program
	for at := range program.Inst {
		switch inst := &program.Inst[at]; inst.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			number[uint32(at)] = uint16(len(a.reading))
			a.reading = append(a.reading, inst)
		}
	}
	for _, inst := range a.reading {
		a.after = append(a.after, reachable(program, number, inst.Out))
	}
	a.first = a.kept(reachable(program, number, uint32(program.Start)))
	return a
}

// reachable gives what a program reaches from one of its instructions without reading.
func reachable(program *syntax.Prog, number map[uint32]uint16, from uint32) *state {
	type place struct {
		at    uint32
		close bool // only at the end of the text
	}
	var s state
	seen := map[place]bool{}
	for open := []place{{from, false}}; len(open) > 0; {
		here := open[len(open)-1]
		open = open[:len(open)-1]
		if seen[here] {
			continue
		}
		seen[here] = true
		switch inst := &program.Inst[here.at]; inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			open = append(open, place{inst.Arg, here.close}, place{inst.Out, here.close})
		case syntax.InstEmptyWidth:
			atClose := syntax.EmptyOp(inst.Arg)&syntax.EmptyEndText != 0
			open = append(open, place{inst.Out, here.close || atClose})
		case syntax.InstCapture, syntax.InstNop:
			open = append(open, place{inst.Out, here.close})
		case syntax.InstMatch:
			s.ends, s.endsAtClose = s.ends || !here.close, true
		case syntax.InstFail:
		default:
			if !here.close {
				s.insts = append(s.insts, number[here.at])
			}
		}
	}
	slices.Sort(s.insts)
	return &s
}

// matches reports whether a match may begin at the start of text, and how many characters were read to know it. If text
// is open, the match may also be of one that begins so and ends sooner.
func (a *automaton) matches(text string, open bool) (may bool, read int) {
	now := a.first
	for at := 0; at < len(text); read++ {
		if read == mostRead {
			return true, read
		}
		if c := text[at]; c < utf8.RuneSelf {
			now = a.behindASCII(now, c)
			at++
		} else {
			r, size := utf8.DecodeRuneInString(text[at:])
			now = a.behind(now, r)
			at += size
		}
		if now.ends || now.endsAtClose && (open || at == len(text)) {
			return true, read + 1
		}
		if now == nothing {
			return false, read + 1
		}
	}
	return false, read
}

// behindASCII is behind for a character of ASCII.
func (a *automaton) behindASCII(now *state, c byte) *state {
	if now.next == nil {
		return a.behind(now, rune(c))
	}
	next := now.next[c].Load()
	if next == nil {
		next = a.behind(now, rune(c))
		if next.next != nil || next == nothing {
			now.next[c].Store(next)
		}
	}
	return next
}

// behind returns the state behind a character.
func (a *automaton) behind(now *state, r rune) *state {
	next := nothing
	for _, inst := range now.insts {
		if !a.reading[inst].MatchRune(r) {
			continue
		}
		after := a.after[inst]
		if next == nothing {
			next = after
			continue
		}
		next = &state{insts: append(slices.Clip(next.insts), after.insts...), ends: next.ends || after.ends,
			endsAtClose: next.endsAtClose || after.endsAtClose}
		slices.Sort(next.insts)
		next.insts = slices.Compact(next.insts)
	}
	if next == nothing {
		return nothing
	}
	return a.kept(next)
}

// kept returns the state that is kept in the place of another one that is like it, or that one if there are too many.
func (a *automaton) kept(s *state) *state {
	key := make([]byte, 0, 2*len(s.insts)+2)
	for _, inst := range s.insts {
		key = append(key, byte(inst), byte(inst>>8))
	}
	if s.ends {
		key = append(key, 'e')
	} else if s.endsAtClose {
		key = append(key, 'c')
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if found := a.known[string(key)]; found != nil {
		return found
	}
	if len(a.known) == mostKnown {
		return s
	}
	made := &state{insts: s.insts, ends: s.ends, endsAtClose: s.endsAtClose,
		next: new([utf8.RuneSelf]atomic.Pointer[state])}
	a.known[string(key)] = made
	return made
}
