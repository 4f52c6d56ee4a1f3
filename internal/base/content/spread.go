package content

import (
	"regexp"
	"strings"
)

// partSet finds how much of one credential a group of texts holds in parts.
type partSet struct {
	windows windowSet
	length  int
}

func newPartSet(folded string) partSet {
	size := minPart
	if strings.Trim(folded, "0123456789abcdef") == "" {
		size = minHexPart
	}
	set := partSet{windows: windowSet{size: size, at: map[uint64][]int{}}, length: len(folded)}
	set.windows.add(folded)
	return set
}

// holders says which of the folded texts hold parts of the credential, if all of them together hold at least windowSize
// of its letters and digits and half of it; else nil.
func (p partSet) holders(folded [][]string) []int {
	covered := make([]bool, p.length)
	var holders []int
	for number, layers := range folded {
		holds := false
		for _, text := range layers {
			p.windows.find(text, func(_, _, offset int) {
				holds = true
				for i := range p.windows.size {
					covered[offset+i] = true
				}
			})
		}
		if holds {
			holders = append(holders, number)
		}
	}
	count := 0
	for _, c := range covered {
		if c {
			count++
		}
	}
	if count < windowSize || 2*count < p.length {
		return nil
	}
	return holders
}

// Spread finds an own credential that is strewn over texts which leave together, such as the files of one proposal: in
// parts of at least 6 letters and digits (8 for credentials of hexadecimal digits), in any order, encoded or reversed.
// It returns the indices of the texts that hold the parts of the first credential found, or nil; len(texts) stands for
// parts that are only there where one text ends and the next begins. A credential that stands in one piece is found
// too; see Secrets.
func (s *Scanner) Spread(texts []string) []int {
	own := s.own.set()
	if len(own.parts) == 0 {
		return nil
	}
	folded := make([][]string, len(texts))
	for i, text := range texts {
		layers, _ := layersOf(unbounded(), text) // what is beyond them, Secrets refuses
		for _, l := range layers {
			folded[i] = append(folded[i], lowerCase.of(l.text))
		}
		if bare := withoutComments(text); bare != text {
			folded[i] = append(folded[i], lowerCase.of(bare))
		}
	}
	joined := make([]string, len(texts))
	for i := range texts {
		joined[i] = folded[i][0]
	}
	// The end of one text and the beginning of the next may make a part.
	folded = append(folded, []string{strings.Join(joined, "")})
	for _, p := range own.parts {
		if holders := p.holders(folded); holders != nil {
			if last := len(holders) - 1; last > 0 && holders[last] == len(texts) {
				holders = holders[:last]
			}
			return holders
		}
	}
	return nil
}

// withoutComments returns text without the contents of comments of HTML, C and shells, so that they do not divide a
// credential.
func withoutComments(text string) string {
	form := regexp.MustCompile(`(?s)<!--.*?-->|/\*.*?\*/|(?-s)(?:^|[ \t])(?:#|//|--).*`)
	return form.ReplaceAllString(text, "")
}
