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
type Token struct {
	Class, Text string
	Marked      bool // it differs from the line that it stands for
}

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
		line.Tokens = h.highlightLine(file, line.Text)
	}
}

// highlightLine colours a line of the file; the pieces together are the text.
func (h *highlighter) highlightLine(file, text string) []Token {
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
			out = append(out, Token{Class: class, Text: p.Value})
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

// The grammars are of single lines, and small on purpose. Their input is untrusted, so each pattern matches in time
// linear in what it consumes: a form that may stay open, such as a quotation, also matches up to the end of the line,
// and the rule for other text consumes whole words. Chroma's own grammars give no such guarantee, and its package of
// them reads hundreds at each start of the program.

const stringPattern = `"(?:\\.|[^"\\])*"?|'[^']*'?`

func markdownRules() chroma.Rules {
	return chroma.Rules{
		"root": {
			{Pattern: ` {0,3}#{1,6}(?:\s.*)?$`, Type: chroma.GenericHeading},
			{Pattern: `\s*(?:` + "```" + `|~~~).*`, Type: chroma.Comment},
			{Pattern: `\s*(?:[-*+>]|\d{1,9}[.)])(?=\s|$)`, Type: chroma.Keyword, Mutator: chroma.Push("text")},
			chroma.Default(chroma.Push("text")),
		},
		"text": {
			{Pattern: "`[^`]+`", Type: chroma.LiteralString},
			{Pattern: `\*\*[^*]+\*\*`, Type: chroma.GenericStrong},
			{Pattern: `\[[^\[\]]*\]\([^()\s]*\)`, Type: chroma.NameTag},
			{Pattern: `[^` + "`" + `*\[]+|.`, Type: chroma.Text},
		},
	}
}

func yamlRules() chroma.Rules {
	return chroma.Rules{
		"root": {
			{Pattern: `\s*#.*`, Type: chroma.Comment},
			{Pattern: `\s*---\s*$`, Type: chroma.Keyword},
			{
				Pattern: `(\s*)((?:-\s+)*)([^\s#'"&*!|>{}\[\],:-][^:#]*)(:)(?=\s|$)`, Mutator: chroma.Push("value"),
				Type: chroma.ByGroups(chroma.Text, chroma.Keyword, chroma.NameTag, chroma.Text),
			},
			{Pattern: `\s*-(?=\s)`, Type: chroma.Keyword, Mutator: chroma.Push("value")},
			chroma.Default(chroma.Push("value")),
		},
		"value": {
			{Pattern: `\s+#.*`, Type: chroma.Comment},
			{Pattern: `\s+`, Type: chroma.Text},
			{Pattern: stringPattern, Type: chroma.LiteralString},
			{Pattern: `(?:true|false|null|~)(?=[\s,\]}]|$)`, Type: chroma.Keyword},
			{Pattern: `-?\d+(?:\.\d+)?(?=[\s,\]}]|$)`, Type: chroma.LiteralNumber},
			{Pattern: `[^\s"',\[\]{}]+|[,\[\]{}]+|.`, Type: chroma.Text},
		},
	}
}

func jsonRules() chroma.Rules {
	return chroma.Rules{
		"root": {
			{Pattern: `"(?:\\.|[^"\\])*"(?=\s*:)`, Type: chroma.NameTag},
			{Pattern: `"(?:\\.|[^"\\])*"?`, Type: chroma.LiteralString},
			{Pattern: `(?:true|false|null)(?!\w)`, Type: chroma.Keyword},
			{Pattern: `-?\d[\d.eE+-]*`, Type: chroma.LiteralNumber},
			{Pattern: `\w+|[^\w"-]+|.`, Type: chroma.Text},
		},
	}
}

func shellRules() chroma.Rules {
	const words = `if|then|elif|else|fi|for|while|until|do|done|case|esac|in|function|return|exit|local|export|set`
	return chroma.Rules{
		"root": {
			{Pattern: `\s*#.*`, Type: chroma.Comment},
			chroma.Default(chroma.Push("words")),
		},
		"words": {
			{Pattern: `\s+#.*`, Type: chroma.Comment},
			{Pattern: `\s+`, Type: chroma.Text},
			{Pattern: stringPattern, Type: chroma.LiteralString},
			{Pattern: `\$(?:\w+|\{[^}]*\}?|.)`, Type: chroma.NameTag},
			{Pattern: `(?:` + words + `)(?![\w./=-])`, Type: chroma.Keyword},
			{Pattern: `[\w./=-]+|[^\w\s"'$#./=-]+|.`, Type: chroma.Text},
		},
	}
}
