package gql

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// Schema is a schema that documents are validated and executed against. It is safe for concurrent use.
type Schema struct{ ast *ast.Schema }

// Load reads a schema in the schema definition language.
func Load(sdl string) (*Schema, error) {
	loaded, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: sdl})
	if err != nil {
		return nil, fmt.Errorf("loading the schema: %w", err)
	}
	return &Schema{loaded}, nil
}

// ObjectTypes gives the names of the fields of every object type that is not the language's own.
func (s *Schema) ObjectTypes() map[string][]string {
	out := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(s.ast.Types)) {
		def := s.ast.Types[name]
		if def.Kind != ast.Object || def.BuiltIn {
			continue
		}
		for _, f := range def.Fields {
			if len(f.Name) < 2 || f.Name[:2] != "__" {
				out[name] = append(out[name], f.Name)
			}
		}
	}
	return out
}

// leaf gives the wire form of a scalar or an enum value, and an error if it is not one of the type.
func leaf(def *ast.Definition, value any) (any, error) {
	wrong := fmt.Errorf("%v (%T) is not a %s", value, value, def.Name)
	if def.Kind == ast.Enum {
		s, ok := value.(string)
		if !ok || def.EnumValues.ForName(s) == nil {
			return value, wrong
		}
		return s, nil
	}
	ok := false
	switch def.Name {
	case "Int":
		_, ok = value.(int)
	case "Boolean":
		_, ok = value.(bool)
	case "DateTime", "GitTimestamp":
		var at time.Time
		if at, ok = value.(time.Time); ok {
			return at.UTC().Format(time.RFC3339), nil
		}
	default:
		var s string
		if s, ok = value.(string); ok {
			ok = fits(def.Name, s)
		}
	}
	if !ok {
		return value, wrong
	}
	return value, nil
}

// fits checks a scalar whose wire form is a string.
func fits(scalar, s string) bool {
	switch scalar {
	case "URI":
		u, err := url.Parse(s)
		return err == nil && u.Path != "" && u.Path[0] == '/'
	case "GitObjectID":
		return regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(s)
	case "Base64String":
		_, err := base64.StdEncoding.DecodeString(s)
		return err == nil
	case "BigInt":
		return regexp.MustCompile(`^[0-9]+$`).MatchString(s)
	case "ID":
		return s != ""
	default:
		return true
	}
}
