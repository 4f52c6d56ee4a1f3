package secretrules

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

type place struct{ start, end, literal int }

// searched is Walk by the standard library.
func searched(literals []string, text string) (all []place) {
	for i, literal := range literals {
		for start := 0; literal != "" && start+len(literal) <= len(text); start++ {
			if strings.HasPrefix(text[start:], literal) {
				all = append(all, place{start, start + len(literal), i})
			}
		}
	}
	slices.SortFunc(all, func(a, b place) int { return cmp.Or(a.end-b.end, a.start-b.start) })
	return all
}

// words are strings of few letters, so that many begin or end alike, or stand within another.
func words(random *rand.Rand, most int) (all []string) {
	for range random.IntN(most) {
		word := make([]byte, random.IntN(6))
		for i := range word {
			word[i] = "ab\xff"[random.IntN(3)]
		}
		all = append(all, string(word))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestWalkFindsWhatASearchForEachFinds(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		literals, text := words(random, 12), strings.Join(words(random, 20), "x")
		if random.IntN(2) == 0 { // unsorted ones are found, too
			slices.Reverse(literals)
		}
		var got []place
		newLiteralSearch(literals).Walk([]byte(text), func(start, end, literal int) bool {
			got = append(got, place{start, end, literal})
			return true
		})
		if want := searched(literals, text); !slices.Equal(got, want) {
			t.Fatalf("%q in %q: %v, want %v", literals, text, got, want)
		}
	}
}

func TestWalkKnowsEachByte(t *testing.T) {
	t.Parallel()
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	found := false
	newLiteralSearch([]string{string(every)}).Walk(append([]byte("x"), every...), func(start, end, _ int) bool {
		found = start == 1 && end == 257
		return true
	})
	if !found {
		t.Error("not found")
	}
}

func TestWalkStopsWhenItIsTold(t *testing.T) {
	t.Parallel()
	calls := 0
	newLiteralSearch([]string{"a", "aa"}).Walk([]byte("aaaa"), func(int, int, int) bool { calls++; return calls < 3 })
	if calls != 3 {
		t.Errorf("%d calls", calls)
	}
}
