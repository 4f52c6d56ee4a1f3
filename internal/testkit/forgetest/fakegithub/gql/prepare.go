package gql

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// prepare parses and validates a request.
func (s *Schema) prepare(req Request) (*ast.OperationDefinition, map[string]any, []Problem) {
	doc, invalid := gqlparser.LoadQueryWithRules(s.ast, req.Query, rules.NewDefaultRules())
	if len(invalid) > 0 {
		problems := make([]Problem, len(invalid))
		for i, err := range invalid {
			problems[i] = invalidDocument(err)
		}
		return nil, nil, problems
	}
	op := doc.Operations.ForName(req.OperationName)
	if op == nil {
		if req.OperationName == "" {
			return nil, nil, []Problem{{Message: "An operation name is required"}}
		}
		return nil, nil, []Problem{{Message: fmt.Sprintf("No operation named %q", req.OperationName)}}
	}
	vars, err := validator.VariableValues(s.ast, op, req.Variables)
	if err == nil {
		err = s.scalars(op, vars)
	}
	if err != nil {
		return nil, nil, []Problem{invalidVariable(op, err)}
	}
	return op, vars, nil
}

// invalidDocument words an error as GitHub does where clients have been seen to look at it.
func invalidDocument(err *gqlerror.Error) Problem {
	p := Problem{Message: err.Message}
	for _, at := range err.Locations {
		p.Locations = append(p.Locations, Location{at.Line, at.Column})
	}
	words := regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(err.Message, -1)
	switch {
	case err.Rule == "":
		p.Message = "Parse error: " + err.Message
	case err.Rule == "FieldsOnCorrectType" && len(words) > 1:
		p.Message = fmt.Sprintf("Field '%s' doesn't exist on type '%s'", words[0][1], words[1][1])
		p.Extensions = map[string]any{"code": "undefinedField", "fieldName": words[0][1], "typeName": words[1][1]}
	case err.Rule == "ProvidedRequiredArguments" && len(words) > 1:
		p.Message = fmt.Sprintf("Field '%s' is missing required arguments: %s", words[0][1], words[1][1])
		p.Extensions = map[string]any{"code": "missingRequiredArguments"}
	default:
		p.Extensions = map[string]any{"code": strings.ToLower(err.Rule[:1]) + err.Rule[1:]}
	}
	return p
}

func invalidVariable(op *ast.OperationDefinition, err error) Problem {
	var known *gqlerror.Error
	p := Problem{Message: err.Error()}
	if !errors.As(err, &known) || len(known.Path) < 2 {
		return p
	}
	name := fmt.Sprint(known.Path[1])
	for _, v := range op.VariableDefinitions {
		if v.Variable == name {
			p.Message = fmt.Sprintf("Variable $%s of type %s was provided invalid value", name, v.Type)
			p.Locations = []Location{{v.Position.Line, v.Position.Column}}
			p.Extensions = map[string]any{"problems": []any{
				map[string]any{"path": known.Path[2:], "explanation": known.Message},
			}}
		}
	}
	return p
}

// scalars checks the values of the schema's own scalars, which the validator lets pass as they are.
func (s *Schema) scalars(op *ast.OperationDefinition, vars map[string]any) error {
	for _, v := range op.VariableDefinitions {
		path := ast.Path{ast.PathName("variable"), ast.PathName(v.Variable)}
		if err := s.scalar(v.Type, vars[v.Variable], path); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schema) scalar(t *ast.Type, value any, path ast.Path) error {
	if value == nil {
		return nil
	}
	if t.Elem != nil {
		for i, item := range list(value) {
			if err := s.scalar(t.Elem, item, append(path, ast.PathIndex(i))); err != nil {
				return err
			}
		}
		return nil
	}
	def := s.ast.Types[t.NamedType]
	if def.Kind == ast.InputObject {
		m, _ := value.(map[string]any)
		for _, f := range def.Fields {
			if err := s.scalar(f.Type, m[f.Name], append(path, ast.PathName(f.Name))); err != nil {
				return err
			}
		}
		return nil
	}
	if def.Kind != ast.Scalar || def.BuiltIn {
		return nil
	}
	text, ok := value.(string)
	if !ok || !fits(def.Name, text) {
		return gqlerror.ErrorPathf(path, "Could not coerce value %q to %s", fmt.Sprint(value), def.Name)
	}
	return nil
}
