package agentdocs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// Bounds of what people read.
const (
	maxSentence  = 25     // words
	maxLineRunes = 120    // characters
	maxPageWords = 1500   // of a page beside reference and decisions
	maxAllWords  = 34_000 // of all of docs
)

// Pages are short, and written in short sentences and lines. Tables and code may have long lines; decisions (adr) and
// the changelog are history, and what is written by make golden is not counted.
func TestPagesAreShortAndWrittenInShortSentences(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	all := 0
	for _, page := range pagesOf(t, root) {
		text := readPage(t, filepath.Join(root, page))
		for _, number := range longLines(text) {
			if !strings.HasPrefix(page, "docs/reference/") {
				t.Errorf("%s: line %d has more than %d characters", page, number, maxLineRunes)
			}
		}
		if page == "CHANGELOG.md" || strings.HasPrefix(page, "docs/reference/") || strings.HasPrefix(page, "docs/adr/") {
			continue
		}
		words := wordsIn(text)
		if strings.HasPrefix(page, "docs/") {
			all += words
		}
		if words > maxPageWords {
			t.Errorf("%s has %d words, more than %d", page, words, maxPageWords)
		}
		for _, sentence := range sentencesOf(text) {
			if n := wordsIn(sentence); n > maxSentence {
				t.Errorf("%s: a sentence of %d words: %s", page, n, sentence)
			}
		}
	}
	t.Logf("%d words", all)
	if all > maxAllWords {
		t.Errorf("the pages have %d words, more than %d", all, maxAllWords)
	}
}

func TestLongSentencesAndLinesAreFound(t *testing.T) {
	t.Parallel()
	text := "# A heading\n\nShort one. " + strings.Repeat("word ", 26) +
		"\nin two lines.\n\n- An item\n  goes on.\n\n| a cell | " +
		strings.Repeat("cell ", 30) + "|\n\n```sh\n" + strings.Repeat("code ", 40) +
		"\n```\n\nA `code of many words is one` word: yes.\n"
	var counts []int
	for _, s := range sentencesOf(text) {
		counts = append(counts, wordsIn(s))
	}
	if want := []int{2, 29, 4, 2, 30, 3, 1}; !slices.Equal(counts, want) {
		t.Errorf("sentences of %v words, want %v: %q", counts, want, sentencesOf(text))
	}
	if lines := longLines(text); !slices.Equal(lines, []int{3}) {
		t.Errorf("long lines %v", lines)
	}
}

// longLines are the numbers of lines that are too long, without those of tables, of code, and those that one link
// fills.
func longLines(text string) (numbers []int) {
	code := false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			code = !code
		}
		if !code && !strings.HasPrefix(trimmed, "|") && len([]rune(line)) > maxLineRunes && strings.Count(trimmed, " ") > 1 {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// sentencesOf are the sentences of a page's paragraphs, items of lists and cells of tables. A colon or semicolon ends
// one, too.
func sentencesOf(text string) (out []string) {
	var block []string
	end := func() {
		joined := strings.Join(block, " ")
		block = nil
		joined = regexp.MustCompile("`[^`]*`").ReplaceAllString(joined, "CODE")
		joined = regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(joined, "]")
		joined = regexp.MustCompile(`([.!?:;]["*)]*)\s+`).ReplaceAllString(joined, "$1\n")
		for sentence := range strings.SplitSeq(joined, "\n") {
			if sentence = strings.TrimSpace(sentence); sentence != "" {
				out = append(out, sentence)
			}
		}
	}
	item := regexp.MustCompile(`^([-*]|\d+\.) `)
	for line := range strings.SplitSeq(withoutCode(text, false), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "|"):
			end()
			for cell := range strings.SplitSeq(strings.ReplaceAll(line, `\|`, ""), "|") {
				if strings.Trim(cell, " -") != "" {
					block = append(block, strings.TrimSpace(cell))
					end()
				}
			}
		case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "<"):
			end()
		default:
			if item.MatchString(line) {
				end()
				line = item.ReplaceAllString(line, "")
			}
			block = append(block, line)
		}
	}
	end()
	return out
}

func wordsIn(sentence string) (n int) {
	for word := range strings.FieldsSeq(sentence) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}

// unplain are words that a native reader stumbles over, with what to say instead. Pages have none of them; those of
// commands and tools are made of the program's help, descriptions and instructions.
func unplain() map[string]string {
	return map[string]string{
		"whoever": "who, anyone who, those who", "became of": "how it ended", "becomes of": "what happens to",
		"comes of ": "what follows from", "of whom": "say it in two sentences", "nobody knows": "it is not known",
		"says of": "says about", "has to be told": "must be told", "in the way of": "prevents", "hears of": "notices",
		"is no good": "cannot be used", "is no folder": "is not a folder", "is no fork": "is not a fork",
		"is no reason": "is not a reason", "is no process": "is not a process", "that is no ": "that is not a",
		"which is no ": "which is not a", "what is no ": "what is not a", "it is no ": "it is not a",
	}
}

func TestPagesAreInPlainEnglish(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	for _, page := range pagesOf(t, root) {
		if page == "CHANGELOG.md" || strings.HasPrefix(page, "docs/adr/") {
			continue
		}
		text := strings.Join(strings.Fields(strings.ToLower(readPage(t, filepath.Join(root, page)))), " ")
		text = strings.NewReplacer("is no longer", "", "is no such", "").Replace(text)
		for words, instead := range unplain() {
			if at := strings.Index(text, words); at >= 0 {
				t.Errorf("%s: %q; say: %s\n... %s ...", page, words, instead, text[max(0, at-60):min(len(text), at+60)])
			}
		}
	}
}
