package scripts

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind is the kind of a PowerShell token.
type tokenKind int

const (
	endOfText tokenKind = iota
	lineEnd
	commentToken
	word     // a name, a number, an operator of letters
	variable // $name, ${name}, $env:name
	constant // a string that means its text as it stands
	template // a string that names variables or runs code
	punct    // one of ( ) [ ] { } , = ; and @( @{ $(
	other
)

// token is a token with its text. A string's text is its value.
type token struct {
	kind tokenKind
	text string
}

func (t token) is(text string) bool { return t.kind == punct && t.text == text }

// lexer splits PowerShell into tokens, as far as param() blocks need it.
type lexer struct {
	text string
	at   int
}

func newLexer(text string) *lexer {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	return &lexer{text: text}
}

// tokens returns all tokens of a text.
func tokens(text string) []token {
	l := newLexer(text)
	var out []token
	for {
		t := l.next()
		out = append(out, t)
		if t.kind == endOfText {
			return out
		}
	}
}

func (l *lexer) rest() string { return l.text[l.at:] }

// advanceBy advances over n bytes and returns them.
func (l *lexer) advanceBy(n int) string {
	out := l.text[l.at : l.at+n]
	l.at += n
	return out
}

func (l *lexer) next() token {
	for {
		r, size := utf8.DecodeRuneInString(l.rest())
		switch {
		case size == 0:
			return token{kind: endOfText}
		case r == '\n':
			return token{kind: lineEnd, text: l.advanceBy(1)}
		case r == '`' && strings.HasPrefix(l.rest(), "`\n"):
			l.advanceBy(2)
		case unicode.IsSpace(r) || r == '\u00a0':
			l.advanceBy(size)
		default:
			return l.readToken()
		}
	}
}

func (l *lexer) readToken() token {
	rest := l.rest()
	switch {
	case strings.HasPrefix(rest, "<#"):
		return l.readBlock(commentToken, "<#", "#>")
	case rest[0] == '#':
		end := strings.IndexByte(rest, '\n')
		if end < 0 {
			end = len(rest)
		}
		return token{kind: commentToken, text: strings.TrimSpace(strings.TrimLeft(l.advanceBy(end), "#"))}
	case strings.HasPrefix(rest, "@'\n"), strings.HasPrefix(rest, "@\"\n"):
		return l.hereString(rest[1:2])
	case isQuote(rest, "'\u2018\u2019\u201a\u201b"):
		return l.readString("'\u2018\u2019\u201a\u201b", false)
	case isQuote(rest, "\"\u201c\u201d\u201e"):
		return l.readString("\"\u201c\u201d\u201e", true)
	case strings.HasPrefix(rest, "@("), strings.HasPrefix(rest, "@{"), strings.HasPrefix(rest, "$("):
		return token{kind: punct, text: l.advanceBy(2)}
	case rest[0] == '$':
		return l.variable()
	case strings.ContainsRune("()[]{},=;", rune(rest[0])):
		return token{kind: punct, text: l.advanceBy(1)}
	}
	return l.word()
}

func isQuote(rest, quotes string) bool {
	r, _ := utf8.DecodeRuneInString(rest)
	return strings.ContainsRune(quotes, r)
}

// readBlock reads to the end mark, or to the end of the text.
func (l *lexer) readBlock(kind tokenKind, begin, end string) token {
	l.advanceBy(len(begin))
	n := strings.Index(l.rest(), end)
	if n < 0 {
		return token{kind: kind, text: l.advanceBy(len(l.rest()))}
	}
	text := l.advanceBy(n)
	l.advanceBy(len(end))
	return token{kind: kind, text: text}
}

func (l *lexer) hereString(quote string) token {
	t := l.readBlock(constant, "@"+quote+"\n", "\n"+quote+"@")
	if quote == `"` && strings.ContainsAny(t.text, "$`") {
		t.kind = template
	}
	return t
}

// readString reads a string. A quote given twice is one quote of the text; in double quotes ` and $ have a meaning.
func (l *lexer) readString(quotes string, expands bool) token {
	_, size := utf8.DecodeRuneInString(l.rest())
	l.advanceBy(size)
	t := token{kind: constant}
	var text strings.Builder
	for {
		r, size := utf8.DecodeRuneInString(l.rest())
		switch {
		case size == 0:
			t.kind, t.text = other, text.String()
			return t
		case strings.ContainsRune(quotes, r):
			l.advanceBy(size)
			if !isQuote(l.rest(), quotes) {
				t.text = text.String()
				return t
			}
			next, size := utf8.DecodeRuneInString(l.rest())
			l.advanceBy(size)
			text.WriteRune(next)
		case expands && r == '`' && len(l.rest()) > 1:
			l.advanceBy(1)
			escaped, size := utf8.DecodeRuneInString(l.rest())
			l.advanceBy(size)
			text.WriteString(unescape(escaped))
		case expands && strings.HasPrefix(l.rest(), "$("):
			t.kind = template
			l.skipExpression()
		default:
			if expands && r == '$' && startsVariable(l.rest()) {
				t.kind = template
			}
			text.WriteString(l.advanceBy(size))
		}
	}
}

// skipExpression passes $( ... ) inside a string.
func (l *lexer) skipExpression() {
	l.advanceBy(2)
	for depth := 1; depth > 0; {
		switch t := l.next(); {
		case t.kind == endOfText:
			return
		case t.is("("), t.is("@("), t.is("$("):
			depth++
		case t.is(")"):
			depth--
		}
	}
}

// startsVariable reports whether a $ begins a variable rather than standing for itself.
func startsVariable(rest string) bool {
	if len(rest) < 2 {
		return false
	}
	next, _ := utf8.DecodeRuneInString(rest[1:])
	return unicode.IsLetter(next) || unicode.IsDigit(next) || strings.ContainsRune("_{?^$:", next)
}

func unescape(r rune) string {
	switch r {
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 'r':
		return "\r"
	case '0':
		return "\x00"
	}
	return string(r)
}

func (l *lexer) variable() token {
	if strings.HasPrefix(l.rest(), "${") {
		t := l.readBlock(variable, "${", "}")
		return t
	}
	n := 1
	for n < len(l.rest()) {
		r, size := utf8.DecodeRuneInString(l.rest()[n:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != ':' && r != '?' {
			break
		}
		n += size
	}
	return token{kind: variable, text: l.advanceBy(n)[1:]}
}

func (l *lexer) word() token {
	n := 0
	for n < len(l.rest()) {
		r, size := utf8.DecodeRuneInString(l.rest()[n:])
		if unicode.IsSpace(r) || strings.ContainsRune("()[]{},=;'\"`$", r) || n > 0 && r == '#' {
			break
		}
		n += size
	}
	if n == 0 {
		_, size := utf8.DecodeRuneInString(l.rest())
		return token{kind: other, text: l.advanceBy(size)}
	}
	return token{kind: word, text: l.advanceBy(n)}
}
