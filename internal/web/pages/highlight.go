package pages

import (
	"path"
	"strings"

	"github.com/alecthomas/chroma/v2"
)

// Bounds of what is coloured. A line or a difference beyond them is shown as it is.
const (
	maxColouredLine = 1000     // bytes
	maxColoured     = 16 << 10 // bytes of all lines of a difference together; at most 5 µs each
)

// Token is a piece of a line with the class that colours it, "" for none. Classes are ours, never the text's.
type Token struct{ Class, Text string }

// highlighter colours the lines of a difference, each by itself, since a hunk may begin anywhere in a file.
type highlighter struct {
	lexers map[string]chroma.Lexer // by extension
	left   int                     // bytes that may still be coloured
}

// newHighlighter makes one for one difference. Grammars are compiled when the first line needs them.
func newHighlighter() *highlighter {
	markdown, yaml, json, shell := lexer(markdownRules), lexer(yamlRules), lexer(jsonRules), lexer(shellRules)
	return &highlighter{left: maxColoured, lexers: map[string]chroma.Lexer{
		".md": markdown, ".yaml": yaml, ".yml": yaml, ".json": json, ".sh": shell, ".bash": shell,
	}}
}

func lexer(rules func() chroma.Rules) chroma.Lexer {
	return chroma.MustNewLexer(&chroma.Config{}, rules)
}

// colour sets the pieces of a line of the file. A note is none of the file's.
func (h *highlighter) colour(file string, line *DiffLine) {
	line.Tokens = []Token{{Text: line.Text}}
	if line.Kind != "note" {
		line.Tokens = h.line(file, line.Text)
	}
}

// line colours a line of the file; the pieces together are the text.
func (h *highlighter) line(file, text string) []Token {
	plain := []Token{{Text: text}}
	lexer, known := h.lexers[strings.ToLower(path.Ext(file))]
	if !known || len(text) > maxColouredLine || len(text) > h.left {
		return plain
	}
	h.left -= len(text)
	pieces, err := chroma.Tokenise(lexer, nil, text)
	if err != nil {
		return plain
	}
	var out []Token
	var whole strings.Builder
	for _, p := range pieces {
		class := classOf(p.Type)
		whole.WriteString(p.Value)
		if n := len(out); n > 0 && out[n-1].Class == class {
			out[n-1].Text += p.Value
		} else if p.Value != "" {
			out = append(out, Token{class, p.Value})
		}
	}
	if whole.String() != text {
		return plain
	}
	return out
}

// classOf returns the class of the style sheet for a kind of piece.
func classOf(t chroma.TokenType) string {
	switch t {
	case chroma.Comment:
		return "c"
	case chroma.Keyword:
		return "k"
	case chroma.NameTag:
		return "n"
	case chroma.LiteralString:
		return "s"
	case chroma.LiteralNumber:
		return "m"
	case chroma.GenericHeading:
		return "h"
	case chroma.GenericStrong:
		return "b"
	}
	return ""
}
