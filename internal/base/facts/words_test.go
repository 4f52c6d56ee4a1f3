package facts

import (
	"os"
	"regexp"
	"testing"
)

// TestPairedWordsHasTheWordsOfPairs tries all pairs of words that the source names: where neither is in pairedWords,
// the second must not change a sense.
func TestPairedWordsHasTheWordsOfPairs(t *testing.T) {
	source, err := os.ReadFile("words.go")
	if err != nil {
		t.Fatal(err)
	}
	var words []word
	for _, found := range regexp.MustCompile(`"([a-z/-]+)"`).FindAllSubmatch(source, -1) {
		words = append(words, newWord(lexicon(), string(found[1])))
	}
	for _, first := range words {
		for _, second := range words {
			if first.pairs || second.pairs {
				continue
			}
			s := sentence{first, second}
			s.pair(1)
			if s[0].meaning != first.meaning || s[1].meaning != second.meaning {
				t.Errorf("%q or %q is missing", first.text, second.text)
			}
		}
	}
}
