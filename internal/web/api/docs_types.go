package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// docsType is a type on the page of the API.
type docsType struct {
	Name   string
	Fields []docsField
}

// docsField is a field of a type, or a parameter.
type docsField struct {
	Name, In, Meaning string
	Required          bool
	docsValue
}

// docsValue says which values there are.
type docsValue struct {
	Type, Link string // Link is the name of the type that it is made of; "" for none
	Limits     []string
	OneOf      []string
	Example    string
}

const schemaPrefix = "#/components/schemas/"

// docsTypes returns the types of the document, by name.
func docsTypes(types map[string]*huma.Schema) (out []docsType) {
	for name, schema := range types {
		one := docsType{Name: name}
		for field, property := range schema.Properties {
			one.Fields = append(one.Fields, docsField{
				Name: field, Meaning: property.Description, Required: slices.Contains(schema.Required, field),
				docsValue: valueOf(property),
			})
		}
		slices.SortFunc(one.Fields, func(a, b docsField) int {
			if a.Required != b.Required {
				if a.Required {
					return -1
				}
				return 1
			}
			return strings.Compare(a.Name, b.Name)
		})
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b docsType) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// valueOf puts a schema into words.
func valueOf(s *huma.Schema) (v docsValue) {
	switch {
	case s.Ref != "":
		v.Link = strings.TrimPrefix(s.Ref, schemaPrefix)
	case s.Type == huma.TypeArray && s.Items != nil:
		of := valueOf(s.Items)
		v = docsValue{Type: strings.TrimSpace("list of " + of.Type), Link: of.Link, Limits: of.Limits, OneOf: of.OneOf}
		v.Limits = append(v.Limits, between("entries", s.MinItems, s.MaxItems)...)
		return v
	default:
		v.Type = strings.TrimSpace(s.Type + " " + s.Format)
	}
	v.Limits = slices.Concat(between("characters", s.MinLength, s.MaxLength), between("", s.Minimum, s.Maximum))
	if s.Pattern != "" {
		v.Limits = append(v.Limits, "matches "+s.Pattern)
	}
	for _, value := range s.Enum {
		v.OneOf = append(v.OneOf, fmt.Sprint(value))
	}
	if len(s.Examples) > 0 {
		v.Example = exampleText(s.Examples[0])
	}
	return v
}

// between says the bounds of a value, as far as there are any.
func between[N int | float64](of string, least, most *N) []string {
	var words []string
	if least != nil && *least != 0 {
		words = append(words, fmt.Sprintf("at least %v", *least))
	}
	if most != nil {
		words = append(words, fmt.Sprintf("at most %v", *most))
	}
	if len(words) == 0 {
		return nil
	}
	return []string{strings.TrimSpace(strings.Join(words, ", ") + " " + of)}
}

// exampleText returns an example as it would be written.
func exampleText(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil { // examples are made of plain values
		return ""
	}
	return string(text)
}
