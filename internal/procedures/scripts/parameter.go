package scripts

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// Type is the type of a parameter, in the terms of JSON Schema.
type Type string

// The types. A switch of PowerShell is a boolean.
const (
	String  Type = "string"
	Integer Type = "integer"
	Number  Type = "number"
	Boolean Type = "boolean"
	Array   Type = "array"
	Object  Type = "object"
	Any     Type = "" // no type is given, or one that we do not know
)

// Parameter is one parameter of a script.
type Parameter struct {
	Name        string
	Type        Type
	Items       Type // of an array; Any if it does not say
	Switch      bool // PowerShell: given or not, it takes no value
	Required    bool
	Description string
	// RequiredIn are the parameter sets in which a parameter is mandatory that is not so in all of them.
	RequiredIn []string
	Aliases    []string
	Default    Constant

	Values  []string // the only ones that it takes, or that items of an array have; nil: any
	Range   Range    // of a number
	Pattern Pattern  // of a text
}

// Range bounds a number, both ends included; nil for no bound.
type Range struct{ Min, Max *float64 }

// Constant is a default value, if it is known without running the script.
type Constant struct {
	Known bool
	Value any // string, int64, float64, bool, nil, or []any of these
}

// Description is a script's description of itself.
type Description struct {
	Synopsis   string
	Details    string
	Parameters []Parameter
	// Note says why the parameters are not known; "" if they are. Such a script takes a list of plain words.
	Note string
}

// Schema returns the JSON Schema of a script's arguments.
func (d Description) Schema() map[string]any {
	properties, required := map[string]any{}, []string{}
	if d.Note != "" {
		properties["args"] = map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "description": d.Note}
	}
	for _, p := range d.Parameters {
		properties[p.Name] = p.schema()
		if p.Required {
			required = append(required, p.Name)
		}
	}
	out := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func (p Parameter) schema() map[string]any {
	out := map[string]any{}
	out["type"] = cmp.Or(string(p.Type), string(String)) // what is not said is given as a text
	inner := out
	if p.Type == Array {
		items := map[string]any{}
		items["type"] = cmp.Or(string(p.Items), string(String))
		out["items"], inner = items, items
	}
	if len(p.Values) > 0 {
		inner["enum"] = p.Values
	}
	if pattern := p.Pattern.schema(); pattern != "" {
		inner["pattern"] = pattern
	}
	if p.Range.Min != nil {
		inner["minimum"] = *p.Range.Min
	}
	if p.Range.Max != nil {
		inner["maximum"] = *p.Range.Max
	}
	if p.Default.Known && p.Default.Value != nil {
		out["default"] = p.Default.Value
		if p.Type == Any {
			out["default"] = fmt.Sprint(p.Default.Value)
		}
	}
	if text := p.sentence(); text != "" {
		out["description"] = text
	}
	return out
}

// sentence returns the description with what a schema cannot say.
func (p Parameter) sentence() string {
	text := p.Description
	add := func(more string) {
		if text != "" {
			text += " "
		}
		text += more
	}
	for _, set := range p.RequiredIn {
		add("Needed in the parameter set " + set + ".")
	}
	if p.Pattern.Text != "" {
		add(p.Pattern.requirement())
	}
	return text
}

// Pattern is a regular expression that a text must match, in .NET's dialect.
type Pattern struct {
	Text          string // "" for none
	CaseSensitive bool   // PowerShell compares without letter case unless the script says otherwise
	Other         bool   // it has options that are not known here; PowerShell alone checks it
}

// Bounds of what is checked here; what is beyond is left to PowerShell.
const (
	maxPattern  = 1000 // bytes
	patternTime = 200 * time.Millisecond
)

// applyOptions takes what the argument Options of ValidatePattern says, such as 'None' or
// [Text.RegularExpressions.RegexOptions]::None.
func (p *Pattern) applyOptions(tokens []token) {
	var text strings.Builder
	for _, t := range tokens {
		text.WriteString(t.text)
	}
	name := text.String()
	switch strings.ToLower(name[strings.LastIndex(name, ":")+1:]) {
	case "none":
		p.CaseSensitive = true
	case "ignorecase":
	default:
		p.Other = true
	}
}

// requirement explains the pattern for a description.
func (p Pattern) requirement() string {
	if p.CaseSensitive {
		return "Must match " + p.Text + "."
	}
	return "Must match " + p.Text + " (letter case aside)."
}

// refuses reports whether PowerShell would refuse a text. What cannot be decided in time is left to PowerShell.
func (p Pattern) refuses(text string) bool {
	if p.Text == "" || p.Other || len(p.Text) > maxPattern {
		return false
	}
	expression, err := p.compile()
	if err != nil {
		return false
	}
	expression.MatchTimeout = patternTime
	matches, err := expression.MatchString(text)
	return err == nil && !matches
}

func (p Pattern) compile() (*regexp2.Regexp, error) {
	if p.CaseSensitive {
		return regexp2.Compile(p.Text)
	}
	return regexp2.Compile(p.Text, regexp2.IgnoreCase)
}

// schema returns the pattern in the dialect of JSON Schema, which takes the same texts but for one that ends with a
// line end; "" if it has none that every client reads alike.
func (p Pattern) schema() string {
	if p.Other || len(p.Text) > maxPattern || !utf8.ValidString(p.Text) {
		return ""
	}
	if _, err := p.compile(); err != nil {
		return ""
	}
	t := translation{rest: p.Text, anyCase: !p.CaseSensitive}
	for t.rest != "" {
		if !t.translatePart() {
			return ""
		}
	}
	if _, err := regexp2.Compile(t.out.String(), regexp2.ECMAScript|regexp2.Unicode); err != nil {
		return ""
	}
	return t.out.String()
}

// translation writes a pattern of .NET anew, as far as JSON Schema's dialect, ECMA-262, means the same.
type translation struct {
	rest    string
	out     strings.Builder
	anyCase bool
}

// copyBytes moves n bytes over as they are.
func (t *translation) copyBytes(n int) bool {
	t.out.WriteString(t.rest[:n])
	t.rest = t.rest[n:]
	return true
}

// translatePart takes the next part; false if it means something else there.
func (t *translation) translatePart() bool {
	c := t.rest[0]
	switch {
	case c == '(':
		return t.group()
	case c == '[':
		return t.class()
	case c == '{':
		return t.translateCount()
	case c == '\\':
		return t.escaped(false)
	case c == '.': // there it leaves out more than the line end
		t.rest = t.rest[1:]
		t.out.WriteString(`[^\n]`)
		return true
	case c == ']' || c == '}' || c >= 0x80 && t.anyCase:
		return false
	case t.anyCase && isLetter(c):
		t.rest = t.rest[1:]
		t.out.WriteString("[" + string([]byte{c &^ 0x20, c | 0x20}) + "]")
		return true
	}
	return t.copyBytes(1)
}

// group reads the opening of a group, with its kind.
func (t *translation) group() bool {
	if !strings.HasPrefix(t.rest, "(?") {
		return t.copyBytes(1)
	}
	for _, known := range []string{"(?:", "(?=", "(?!"} {
		if strings.HasPrefix(t.rest, known) {
			return t.copyBytes(len(known))
		}
	}
	return false
}

// translateCount takes {n}, {n,} or {n,m}.
func (t *translation) translateCount() bool {
	inner, _, closed := strings.Cut(t.rest[1:], "}")
	least, most, _ := strings.Cut(inner, ",")
	if !closed || least == "" || strings.Trim(least+most, "0123456789") != "" {
		return false
	}
	return t.copyBytes(len(inner) + 2)
}

// escaped reads a backslash and the character that it escapes. Letters beyond ASCII do not match \w there, and other
// escapes have a different meaning.
func (t *translation) escaped(inClass bool) bool {
	if len(t.rest) < 2 {
		return false
	}
	c := t.rest[1]
	switch {
	case strings.ContainsRune("dDsStnrfv", rune(c)), strings.ContainsRune(`^$\.*+?()[]{}|/`, rune(c)), c == '-' && inClass:
		return t.copyBytes(2)
	case c >= 0x80 || c == '_' || isLetter(c) || c >= '0' && c <= '9':
		return false
	}
	t.rest = t.rest[1:] // there only what has a meaning is escaped
	return t.copyBytes(1)
}

// class takes [...]. Where letter case does not matter, letters are added in the other case.
func (t *translation) class() bool {
	t.copyBytes(1)
	if strings.HasPrefix(t.rest, "^") {
		t.copyBytes(1)
	}
	if strings.HasPrefix(t.rest, "]") || strings.HasPrefix(t.rest, "-") {
		return false
	}
	for t.rest != "" {
		switch c := t.rest[0]; {
		case c == ']':
			return t.copyBytes(1)
		case c == '[' || strings.HasPrefix(t.rest, "-["), c >= 0x80 && t.anyCase:
			return false
		case c == '\\':
			if !t.escaped(true) || strings.HasPrefix(t.rest, "-") && !strings.HasPrefix(t.rest, "-]") {
				return false // a range from or to what is escaped
			}
		default:
			if !t.translateRange() {
				return false
			}
		}
	}
	return false
}

// translateRange takes a character or a range of a class.
func (t *translation) translateRange() bool {
	low, high, size := t.rest[0], t.rest[0], 1
	if len(t.rest) > 2 && t.rest[1] == '-' && t.rest[2] != ']' {
		high, size = t.rest[2], 3
	}
	if high == '\\' && size == 3 || high >= 0x80 && (size == 3 || t.anyCase) {
		return false
	}
	t.copyBytes(size)
	if t.anyCase {
		t.otherCase(low, high, 'a', 'z')
		t.otherCase(low, high, 'A', 'Z')
	}
	return true
}

// otherCase adds the letters from low to high that lie between first and last in the other case, unless low to high has
// them.
func (t *translation) otherCase(low, high, first, last byte) {
	from, to := max(low, first)^0x20, min(high, last)^0x20
	switch {
	case max(low, first) > min(high, last) || low <= from && to <= high:
	case from == to:
		t.out.WriteByte(from)
	default:
		t.out.WriteString(string([]byte{from, '-', to}))
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
