package definitions

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of a file's tree of values. Aliases count as often as they are used, so that a few lines cannot explode.
const (
	maxValues = 100_000
	maxDepth  = 100
)

// kind is the kind of a YAML value.
type kind string

const (
	kindNull    kind = "null"
	kindString  kind = "a string"
	kindInteger kind = "an integer"
	kindNumber  kind = "a number"
	kindBoolean kind = "true or false"
	kindList    kind = "a list"
	kindMapping kind = "a mapping"
)

// value is a value of YAML with its place in the file.
type value struct {
	kind         kind
	text         string // of a scalar, as YAML understands it
	items        []*value
	entries      []entry // of a mapping, in the order of the file
	line, column int
}

// entry is one key of a mapping.
type entry struct {
	key          string
	value        *value
	line, column int // of the key
	merged       bool
}

// get returns the value of a key; nil if there is none.
func (v *value) get(key string) *value {
	if v == nil {
		return nil
	}
	for _, e := range v.entries {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// string returns the text of a string; "" for anything else.
func (v *value) string() string {
	if v == nil || v.kind != kindString {
		return ""
	}
	return v.text
}

// strings returns the strings of a list.
func (v *value) strings() []string {
	out := []string{}
	if v == nil {
		return out
	}
	for _, item := range v.items {
		if item.kind == kindString {
			out = append(out, item.text)
		}
	}
	return out
}

// plain returns the value as encoding/json has it. Whole numbers stay whole.
func (v *value) plain() any {
	switch {
	case v == nil || v.kind == kindNull:
		return nil
	case v.kind == kindList:
		out := make([]any, len(v.items))
		for i, item := range v.items {
			out[i] = item.plain()
		}
		return out
	case v.kind == kindMapping:
		out := make(map[string]any, len(v.entries))
		for _, e := range v.entries {
			out[e.key] = e.value.plain()
		}
		return out
	case v.kind == kindBoolean:
		return v.text == "true"
	case v.kind == kindInteger:
		if n, err := strconv.ParseInt(v.text, 0, 64); err == nil {
			return n
		}
		return v.text
	case v.kind == kindNumber:
		if f, err := strconv.ParseFloat(v.text, 64); err == nil {
			return f
		}
		return v.text
	}
	return v.text
}

// converter makes values of YAML's nodes.
type converter struct {
	lineOffset int // lines of the file before the YAML text
	values     int
	problems   Problems
	over       bool // a bound was passed: nothing more is read
}

func (c *converter) problem(n *yaml.Node, field, message, suggestion string) {
	c.problems = append(c.problems, Problem{
		Line: n.Line + c.lineOffset, Column: n.Column, Field: field, Message: message, Severity: SeverityError,
		Suggestion: suggestion,
	})
}

// convert makes a value of a node; nil once a bound was passed.
func (c *converter) convert(n *yaml.Node, field string, depth int) *value {
	c.values++
	if c.over || c.values > maxValues || depth > maxDepth {
		if !c.over {
			c.over = true
			c.problem(n, field, fmt.Sprintf("has more than %d values or %d levels, its aliases written out", maxValues,
				maxDepth),
				"write it without aliases of aliases")
		}
		return nil
	}
	v := &value{line: n.Line + c.lineOffset, column: n.Column}
	switch n.Kind {
	case yaml.AliasNode:
		aliased := c.convert(n.Alias, field, depth+1)
		if aliased != nil {
			aliased.line, aliased.column = v.line, v.column
		}
		return aliased
	case yaml.SequenceNode:
		v.kind = kindList
		for i, item := range n.Content {
			if made := c.convert(item, join(field, strconv.Itoa(i)), depth+1); made != nil {
				v.items = append(v.items, made)
			}
		}
	case yaml.MappingNode:
		v.kind = kindMapping
		c.mapping(v, n, field, depth)
	default:
		v.kind, v.text = scalar(n)
	}
	return v
}

// mapping reads keys and values. A key of the mapping itself wins over one that `<<` merges in.
func (c *converter) mapping(v *value, n *yaml.Node, field string, depth int) {
	for i := 0; i+1 < len(n.Content) && !c.over; i += 2 {
		key, content := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			c.problem(key, field, "has a key that is no scalar", "use a word as the key")
			continue
		}
		made := c.convert(content, join(field, key.Value), depth+1)
		if made == nil {
			continue
		}
		if key.Tag == "!!merge" {
			c.merge(v, made, key, field)
			continue
		}
		at := entry{key: key.Value, value: made, line: key.Line + c.lineOffset, column: key.Column}
		c.add(v, at, key, field)
	}
}

func (c *converter) add(v *value, e entry, key *yaml.Node, field string) {
	for i, known := range v.entries {
		if known.key != e.key {
			continue
		}
		if known.merged {
			v.entries[i] = e
		} else if !e.merged {
			c.problem(key, join(field, e.key), fmt.Sprintf("the key is given twice; first in line %d", known.line),
				"remove one of them")
		}
		return
	}
	v.entries = append(v.entries, e)
}

func (c *converter) merge(v, from *value, key *yaml.Node, field string) {
	sources := []*value{from}
	if from.kind == kindList {
		sources = from.items
	}
	for _, source := range sources {
		if source.kind != kindMapping {
			c.problem(key, field, "`<<` merges something that is no mapping", "")
			continue
		}
		for _, e := range source.entries {
			e.merged = true
			c.add(v, e, key, field)
		}
	}
}

func scalar(n *yaml.Node) (kind, string) {
	switch n.ShortTag() {
	case "!!null":
		return kindNull, ""
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err == nil {
			return kindBoolean, strconv.FormatBool(b)
		}
	case "!!int":
		var i int64
		if err := n.Decode(&i); err == nil {
			return kindInteger, strconv.FormatInt(i, 10)
		}
	case "!!float":
		var f float64
		if err := n.Decode(&f); err == nil {
			return kindNumber, strconv.FormatFloat(f, 'g', -1, 64)
		}
	}
	return kindString, n.Value
}

// join returns the name of a field below another.
func join(field, key string) string { return strings.TrimPrefix(field+"."+key, ".") }
