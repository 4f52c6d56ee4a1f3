package pages

import (
	"unicode"
	"unicode/utf8"
)

// maxLineWords bounds the words of a line that is compared with another one: their product is the cost.
const maxLineWords = 200

// markWithin marks the words that differ in lines that stand for each other: the nth that a change removes, and the nth
// of those that it puts there.
func markWithin(pairs []DiffPair) {
	for _, p := range pairs {
		if p.Left == nil || p.Right == nil || p.Left.Kind != "del" || p.Right.Kind != "add" {
			continue
		}
		before, after := wordsOf(p.Left.Text), wordsOf(p.Right.Text)
		if len(before) > maxLineWords || len(after) > maxLineWords {
			continue
		}
		gone, come := differing(before, after)
		if mostlySame(before, gone) || mostlySame(after, come) {
			p.Left.Tokens = cutTokens(p.Left.Tokens, before, gone)
			p.Right.Tokens = cutTokens(p.Right.Tokens, after, come)
		}
	}
}

// wordsOf cuts a text into words, runs of spaces, and single other characters.
func wordsOf(text string) (words []string) {
	class := func(r rune) int {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_':
			return 1
		case unicode.IsSpace(r):
			return 2
		}
		return 0
	}
	start, last := 0, -1
	for i, r := range text {
		c := class(r)
		if i > 0 && (c != last || c == 0) {
			words = append(words, text[start:i])
			start = i
		}
		last = c
	}
	if start < len(text) {
		words = append(words, text[start:])
	}
	return words
}

// differing returns which words of each side are not in the longest sequence that both have.
func differing(a, b []string) (gone, come []bool) {
	common := make([][]uint16, len(a)+1) // lengths, from each place to the ends
	for i := range common {
		common[i] = make([]uint16, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	gone, come = make([]bool, len(a)), make([]bool, len(b))
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			gone[i] = true
			i++
		default:
			come[j] = true
			j++
		}
	}
	for ; i < len(a); i++ {
		gone[i] = true
	}
	for ; j < len(b); j++ {
		come[j] = true
	}
	return gone, come
}

// mostlySame reports whether a third of the letters of a line stay: marks in a line that is another one mislead.
func mostlySame(words []string, differ []bool) bool {
	same, all := 0, 0
	for i, w := range words {
		r, _ := utf8.DecodeRuneInString(w)
		if unicode.IsSpace(r) {
			continue
		}
		all += len(w)
		if !differ[i] {
			same += len(w)
		}
	}
	return 3*same >= all && same > 0 && same < all
}

// cutTokens cuts the pieces of a line so that the words that differ are pieces of their own.
func cutTokens(tokens []Token, words []string, differ []bool) (out []Token) {
	at, left := 0, 0 // the word, and how much of it is left
	if len(words) > 0 {
		left = len(words[0])
	}
	for _, t := range tokens {
		for t.Text != "" && at < len(words) {
			n := min(left, len(t.Text))
			if k := len(out) - 1; k >= 0 && out[k].Class == t.Class && out[k].Marked == differ[at] {
				out[k].Text += t.Text[:n]
			} else {
				out = append(out, Token{t.Class, t.Text[:n], differ[at]})
			}
			t.Text, left = t.Text[n:], left-n
			if left == 0 {
				if at++; at < len(words) {
					left = len(words[at])
				}
			}
		}
	}
	return out
}
