package facts

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Grant is a field of a Markdown file's header that gives an agent rights, or runs something.
type Grant struct {
	Field string // as the header spells it
	Words string // what it gives, on one line of at most MaxWords bytes
	Line  int    // in the file, from 1
}

// Grants lists what the header of a text gives beyond the header of the text before: tools that are allowed without a
// question, hooks, servers and permissions. Letter case, - and _ make no difference to the name of a field. It lists
// nothing for a header that is not YAML: see strictyaml.FrontMatter.Fields.
func Grants(before, after string) (out []Grant) {
	old, now := readHeader(before), readHeader(after)
	for _, name := range slices.Sorted(maps.Keys(now.fields)) {
		field, known := grantingField(name)
		if !known {
			continue
		}
		if words := strings.Join(field.gives(old.fields[name], now.fields[name]), ", "); words != "" {
			out = append(out, Grant{name, shortened(oneLine(words), MaxWords), now.lines[name] + 1})
		}
	}
	return out
}

// grantingField returns the field that a name means, where it gives rights by itself.
func grantingField(name string) (headerField, bool) {
	for _, field := range widening() {
		if field.grants && foldedField(field.name) == foldedField(name) {
			return field, true
		}
	}
	return headerField{}, false
}

func foldedField(name string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(strings.TrimSpace(name)))
}

// gives lists what a value gives that the old one did not: of a list of tools each of them, else the whole value.
func (f headerField) gives(old, now any) (out []string) {
	if !f.list {
		if text := exactText(now); now != nil && text != exactText(old) {
			out = append(out, text)
		}
		return out
	}
	had := toolNames(fieldText(old))
	for _, name := range added(fieldText(old), fieldText(now)) {
		tool, _, narrowed := strings.Cut(name, "(")
		if !narrowed || !strings.HasSuffix(name, ")") || !slices.Contains(had, tool) {
			out = append(out, name)
		}
	}
	return out
}

// exactText gives a value so that two that differ have different texts.
func exactText(value any) string {
	text, err := json.Marshal(value)
	if err != nil { // a map with keys that are not texts
		return fieldText(value)
	}
	return string(text)
}
