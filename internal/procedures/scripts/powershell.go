package scripts

import (
	"slices"
	"strconv"
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
	for p.peek().kind == lineEnd || p.peek().kind == commentToken {
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
		case t.kind == commentToken && strings.Contains(t.text, "\n"):
			flush()
			lines = []string{t.text}
			flush()
		case t.kind == commentToken:
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
		if t.kind != lineEnd && t.kind != commentToken {
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
		case t.kind == lineEnd || t.kind == commentToken:
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
			if tokens[0].kind == word && !parseNumber(tokens[0].text).Known && (len(tokens) == 1 || tokens[1].is("=")) {
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
		case t.kind == lineEnd || t.kind == commentToken:
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
			return out, p.finishParameter(out, above)
		case t.kind == commentToken:
			above = append(above, strings.TrimSpace(t.text))
			p.next()
		default: // line ends, and a comma on a line of its own
			p.next()
		}
	}
}

// finishParameter reads a parameter's default and what ends it.
func (p *powerShell) finishParameter(out *Parameter, above []string) (more bool) {
	value, ended := p.expression(")")
	if len(value) > 0 && value[0].is("=") {
		out.Default = constantOf(value[1:])
	}
	if out.Description == "" {
		out.Description = strings.Join(above, " ")
	}
	return !ended
}

// apply takes what an attribute says.
func (out *Parameter) apply(a attribute) {
	switch a.name {
	case "parameter":
		out.applyParameter(a)
	case "validateset":
		for _, arg := range a.arguments {
			if c := constantOf(arg.tokens); c.Known && arg.name == "" {
				if text, ok := c.Value.(string); ok {
					out.Values = append(out.Values, text)
				}
			}
		}
	case "validaterange":
		out.Range = Range{bound(a, 0), bound(a, 1)}
	case "validatepattern":
		for _, arg := range a.arguments {
			if text, ok := constantOf(arg.tokens).Value.(string); ok && arg.name == "" {
				out.Pattern.Text = text
			} else if arg.name == "options" {
				out.Pattern.applyOptions(arg.tokens)
			}
		}
	case "alias":
		for _, arg := range a.arguments {
			if text, ok := constantOf(arg.tokens).Value.(string); ok {
				out.Aliases = append(out.Aliases, text)
			}
		}
	default:
		if !a.called && out.Type == Any {
			out.Type, out.Items, out.Switch = typeOf(a.name)
		}
	}
}

func (out *Parameter) applyParameter(a attribute) {
	mandatory, set := false, ""
	for _, arg := range a.arguments {
		switch arg.name {
		case "mandatory":
			c := constantOf(arg.tokens)
			mandatory = arg.tokens == nil || c.Value == true || c.Value == int64(1)
		case "parametersetname":
			set, _ = constantOf(arg.tokens).Value.(string)
		case "helpmessage":
			if text, ok := constantOf(arg.tokens).Value.(string); ok {
				out.Description = text
			}
		}
	}
	switch {
	case mandatory && (set == "" || strings.EqualFold(set, "__AllParameterSets")):
		out.Required = true
	case mandatory && !slices.Contains(out.RequiredIn, set):
		out.RequiredIn = append(out.RequiredIn, set)
	}
}

func bound(a attribute, i int) *float64 {
	if i >= len(a.arguments) {
		return nil
	}
	switch n := constantOf(a.arguments[i].tokens).Value.(type) {
	case int64:
		f := float64(n)
		return &f
	case float64:
		return &n
	}
	return nil
}

// typeOf returns the type that a name in brackets means.
func typeOf(name string) (of, items Type, isSwitch bool) {
	name = strings.TrimPrefix(name, "system.")
	if inner, ok := strings.CutSuffix(name, "[]"); ok {
		items, _, _ = typeOf(inner)
		return Array, items, false
	}
	if inner, ok := strings.CutPrefix(name, "nullable["); ok {
		return typeOf(strings.TrimSuffix(inner, "]"))
	}
	switch name {
	case "string", "char", "datetime", "uri", "version", "guid", "timespan", "io.fileinfo", "io.directoryinfo",
		"securestring", "security.securestring", "regex":
		return String, Any, false
	case "int", "int16", "int32", "int64", "long", "byte", "uint16", "uint32", "uint64", "uint", "ulong", "short",
		"ushort", "bigint", "sbyte":
		return Integer, Any, false
	case "double", "single", "float", "decimal":
		return Number, Any, false
	case "bool", "boolean":
		return Boolean, Any, false
	case "switch", "management.automation.switchparameter", "switchparameter":
		return Boolean, Any, true
	case "hashtable", "collections.hashtable", "collections.idictionary", "ordered", "pscustomobject", "psobject":
		return Object, Any, false
	case "array", "collections.arraylist":
		return Array, Any, false
	}
	return Any, Any, false
}

// constantOf returns the value of an expression that is a constant: a text, a number, $true, $false, $null, or a list
// of these.
func constantOf(tokens []token) Constant {
	const mostParentheses = 10
	for range mostParentheses {
		if len(tokens) > 2 && tokens[0].is("(") && tokens[len(tokens)-1].is(")") && closes(tokens) {
			tokens = tokens[1 : len(tokens)-1]
		}
	}
	switch {
	case len(tokens) == 0:
		return Constant{}
	case len(tokens) == 1:
		return single(tokens[0])
	case tokens[0].is("@(") && tokens[len(tokens)-1].is(")") && closes(tokens):
		return constantList(tokens[1 : len(tokens)-1])
	case slices.ContainsFunc(tokens, func(t token) bool { return t.is(",") }):
		return constantList(tokens)
	}
	return Constant{}
}

// closes reports whether the first bracket is closed by the last token.
func closes(tokens []token) bool {
	depth := 0
	for i, t := range tokens {
		switch {
		case t.kind == punct && strings.HasSuffix(t.text, "("):
			depth++
		case t.is(")"):
			depth--
		}
		if depth == 0 {
			return i == len(tokens)-1
		}
	}
	return false
}

// constantList returns a list of constants that commas or line ends part; unknown if one of them is none.
func constantList(tokens []token) Constant {
	out := []any{}
	for len(tokens) > 0 {
		c := single(tokens[0])
		if !c.Known {
			return Constant{}
		}
		out = append(out, c.Value)
		tokens = tokens[1:]
		if len(tokens) > 0 && tokens[0].is(",") {
			tokens = tokens[1:]
		}
	}
	return Constant{Known: true, Value: out}
}

func single(t token) Constant {
	switch t.kind {
	case constant:
		return Constant{Known: true, Value: t.text}
	case variable:
		switch strings.ToLower(t.text) {
		case "true":
			return Constant{Known: true, Value: true}
		case "false":
			return Constant{Known: true, Value: false}
		case "null":
			return Constant{Known: true}
		}
	case word:
		return parseNumber(t.text)
	}
	return Constant{}
}

// parseNumber reads a number of PowerShell: decimal or hexadecimal, with a sign and with a factor such as MB.
func parseNumber(text string) Constant {
	factor := int64(1)
	lower := strings.ToLower(text)
	for suffix, n := range map[string]int64{"kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40} {
		if trimmed, ok := strings.CutSuffix(lower, suffix); ok && trimmed != "" && !strings.HasPrefix(lower, "0x") {
			lower, factor = trimmed, n
		}
	}
	if trimmed := strings.TrimRight(lower, "ld"); trimmed != lower && !strings.HasPrefix(lower, "0x") {
		lower = trimmed
	}
	if n, err := strconv.ParseInt(lower, 0, 64); err == nil && !strings.HasPrefix(strings.TrimLeft(lower, "+-"), "0o") {
		return Constant{Known: true, Value: n * factor}
	}
	if f, err := strconv.ParseFloat(lower, 64); err == nil {
		return Constant{Known: true, Value: f * float64(factor)}
	}
	return Constant{}
}

// commentHelp is the help that stands in a comment of PowerShell.
type commentHelp struct {
	found                 bool
	synopsis, description string
	parameters            map[string]string // by name in small letters
}

// parseHelp reads a comment. It is help if it has one of the keywords.
func parseHelp(text string) commentHelp {
	help := commentHelp{parameters: map[string]string{}}
	keyword, argument := "", ""
	var lines []string
	flush := func() {
		text := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
		switch keyword {
		case "SYNOPSIS":
			help.synopsis = text
		case "DESCRIPTION":
			help.description = strings.TrimSpace(strings.Join(trimmed(lines), "\n"))
		case "PARAMETER":
			help.parameters[strings.ToLower(argument)] = text
		}
		lines = nil
	}
	for _, line := range strings.Split(text, "\n") {
		bare := strings.TrimSpace(line)
		word, rest, _ := strings.Cut(strings.ReplaceAll(bare, "\t", " "), " ")
		name, dotted := strings.CutPrefix(word, ".")
		if dotted && isHelpKeyword(strings.ToUpper(name)) {
			flush()
			keyword, argument, help.found = strings.ToUpper(name), strings.TrimSpace(rest), true
			continue
		}
		lines = append(lines, line)
	}
	flush()
	return help
}

func trimmed(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.TrimSpace(line)
	}
	return out
}

// isHelpKeyword knows the keywords of comment-based help (about_Comment_Based_Help of PowerShell's documentation).
func isHelpKeyword(word string) bool {
	switch word {
	case "SYNOPSIS", "DESCRIPTION", "PARAMETER", "EXAMPLE", "INPUTS", "OUTPUTS", "NOTES", "LINK", "COMPONENT", "ROLE",
		"FUNCTIONALITY",
		"FORWARDHELPTARGETNAME", "FORWARDHELPCATEGORY", "REMOTEHELPRUNSPACE", "EXTERNALHELP":
		return true
	}
	return false
}
