package scripts

import (
	"strings"
)

// plainWordsOfPowerShell says how a script is given arguments whose parameters are not known.
const plainWordsOfPowerShell = "Give its arguments as plain words: -Name and its value, -Name:value, -Name alone for " +
	"a switch, or a value alone."

// parsePowerShell reads the comment help and the param() block of a script. A script without a block takes nothing; one
// whose block cannot be understood has a Note.
func parsePowerShell(text string) Description {
	p := &powerShell{tokens: tokens(text)}
	help := p.preamble()
	d := Description{Synopsis: help.synopsis, Details: help.description}
	if !p.atParam() {
		return d
	}
	p.next() // param
	p.skipBlank()
	p.next() // (
	for {
		parameter, more := p.parameter()
		if parameter != nil {
			if text := help.parameters[strings.ToLower(parameter.Name)]; text != "" {
				parameter.Description = text
			}
			d.Parameters = append(d.Parameters, *parameter)
		}
		if !more {
			break
		}
	}
	if p.broken {
		d.Parameters = nil
		d.Note = "The param() block could not be read. " + plainWordsOfPowerShell
	}
	return d
}

// powerShell walks over the tokens of a script.
type powerShell struct {
	tokens []token
	at     int
	broken bool // the text ends inside of the block
}

func (p *powerShell) peek() token { return p.tokens[p.at] }

func (p *powerShell) next() token {
	t := p.tokens[p.at]
	if t.kind != endOfText {
		p.at++
	}
	return t
}

func (p *powerShell) skipBlank() {
	for p.peek().kind == lineEnd || p.peek().kind == comment {
		p.next()
	}
}

// preamble passes what may stand before param(): comments, using, attributes of the script. It reads the comment help.
func (p *powerShell) preamble() (help commentHelp) {
	var lines []string // of comments of one line that follow each other
	flush := func() {
		if found := parseHelp(strings.Join(lines, "\n")); found.found && !help.found {
			help = found
		}
		lines = nil
	}
	for {
		switch t := p.peek(); {
		case t.kind == comment && strings.Contains(t.text, "\n"):
			flush()
			lines = []string{t.text}
			flush()
		case t.kind == comment:
			lines = append(lines, t.text)
		case t.kind == lineEnd:
		case t.kind == word && strings.EqualFold(t.text, "using"):
			for p.peek().kind != lineEnd && p.peek().kind != endOfText {
				p.next()
			}
			continue
		case t.is("["):
			p.attribute()
			continue
		default:
			flush()
			return help
		}
		p.next()
	}
}

// atParam reports whether the next tokens are `param (`.
func (p *powerShell) atParam() bool {
	if t := p.peek(); t.kind != word || !strings.EqualFold(t.text, "param") {
		return false
	}
	for _, t := range p.tokens[p.at+1:] {
		if t.kind != lineEnd && t.kind != comment {
			return t.is("(")
		}
	}
	return false
}

// attribute is [Name(arguments)] or [type].
type attribute struct {
	name      string // in small letters
	called    bool   // it has parentheses
	arguments []argument
}

// argument is one argument of an attribute: value, or name = value, or name.
type argument struct {
	name   string // in small letters; "" for a value alone
	tokens []token
}

// attribute reads from [ to the ] that ends it.
func (p *powerShell) attribute() attribute {
	p.next() // [
	var a attribute
	var name strings.Builder
	for depth := 1; ; {
		t := p.next()
		switch {
		case t.kind == endOfText:
			p.broken = true
			return a
		case t.is("("):
			a.called = true
			a.arguments = p.arguments()
			continue
		case t.is("["):
			depth++
		case t.is("]"):
			if depth--; depth == 0 {
				a.name = strings.ToLower(name.String())
				return a
			}
		case t.kind == lineEnd || t.kind == comment:
			continue
		}
		name.WriteString(t.text)
	}
}

// arguments reads to the ) that ends an attribute's arguments.
func (p *powerShell) arguments() (out []argument) {
	for {
		tokens, ended := p.expression(")")
		if len(tokens) > 0 {
			a := argument{tokens: tokens}
			if tokens[0].kind == word && !number(tokens[0].text).Known && (len(tokens) == 1 || tokens[1].is("=")) {
				a.name, a.tokens = strings.ToLower(tokens[0].text), nil
				if len(tokens) > 1 {
					a.tokens = tokens[2:]
				}
			}
			out = append(out, a)
		}
		if ended {
			return out
		}
	}
}

// expression reads to a comma or to the end mark outside of all brackets. ended reports that it was the end mark.
func (p *powerShell) expression(end string) (out []token, ended bool) {
	for depth := 0; ; {
		t := p.next()
		switch {
		case t.kind == endOfText:
			p.broken = true
			return out, true
		case t.kind == lineEnd || t.kind == comment:
			continue
		case depth == 0 && t.is(end):
			return out, true
		case depth == 0 && t.is(","):
			return out, false
		case t.kind == punct && strings.HasSuffix(t.text, "(") || t.is("[") || t.kind == punct &&
			strings.HasSuffix(t.text, "{"):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			depth--
		}
		out = append(out, t)
	}
}

// parameter reads one parameter. more is false after the last.
func (p *powerShell) parameter() (out *Parameter, more bool) {
	out = &Parameter{}
	var above []string // comments right above it
	for {
		switch t := p.peek(); {
		case t.kind == endOfText:
			p.broken = true
			return nil, false
		case t.is(")"):
			p.next()
			return nil, false
		case t.is("["):
			out.apply(p.attribute())
		case t.kind == variable:
			p.next()
			out.Name = t.text
			return out, p.finish(out, above)
		case t.kind == comment:
			above = append(above, strings.TrimSpace(t.text))
			p.next()
		default: // line ends, and a comma on a line of its own
			p.next()
		}
	}
}

// finish reads a parameter's default and what ends it.
func (p *powerShell) finish(out *Parameter, above []string) (more bool) {
	value, ended := p.expression(")")
	if len(value) > 0 && value[0].is("=") {
		out.Default = constantOf(value[1:])
	}
	if out.Description == "" {
		out.Description = strings.Join(above, " ")
	}
	return !ended
}
