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

// Request is a client's request.
type Request struct {
	Query         string         `json:"query"`
	OperationName string         `json:"operationName"`
	Variables     map[string]any `json:"variables"`
}

// Roots are the objects that documents begin at. Around runs what is given to it, and is called once for a query and
// once for each root field of a mutation: what must not be interrupted. Those of a mutation run one after the other,
// and a failing one leaves the earlier ones done.
type Roots struct {
	Query    *Object
	Mutation *Object
	Around   func(do func())
}

// Execute answers a request.
func (s *Schema) Execute(req Request, roots Roots) *Response {
	op, vars, problems := s.prepare(req)
	if len(problems) > 0 {
		return &Response{Problems: problems}
	}
	e := &execution{schema: s.ast, vars: vars, out: &Response{Executed: true}}
	if op.Operation == ast.Mutation {
		e.mutation(op, roots)
		return e.out
	}
	roots.Around(func() {
		if data, ok := e.object(roots.Query, []ast.SelectionSet{op.SelectionSet}, nil); ok {
			e.out.Data = data
		}
	})
	return e.out
}

type execution struct {
	schema *ast.Schema
	vars   map[string]any
	out    *Response
}

func (e *execution) mutation(op *ast.OperationDefinition, roots Roots) {
	data := &record{}
	for _, group := range e.collect(roots.Mutation.Type, []ast.SelectionSet{op.SelectionSet}) {
		roots.Around(func() {
			value, _ := e.field(roots.Mutation, group, nil)
			data.add(group[0].Alias, value)
		})
	}
	e.out.Data = data
}

// object answers the selections on an object; false if a null where none may be has to reach its parent.
func (e *execution) object(obj *Object, sets []ast.SelectionSet, path []any) (any, bool) {
	out := &record{}
	whole := true
	for _, group := range e.collect(obj.Type, sets) {
		value, ok := e.field(obj, group, path)
		whole = whole && ok
		out.add(group[0].Alias, value)
	}
	if !whole {
		return nil, false
	}
	return out, true
}

// collect gathers the fields that apply to a type, those with the same response key together.
func (e *execution) collect(typ string, sets []ast.SelectionSet) [][]*ast.Field {
	var groups [][]*ast.Field
	at := map[string]int{}
	var walk func(set ast.SelectionSet)
	walk = func(set ast.SelectionSet) {
		for _, sel := range set {
			switch sel := sel.(type) {
			case *ast.Field:
				if !e.included(sel.Directives) {
					continue
				}
				i, seen := at[sel.Alias]
				if !seen {
					i = len(groups)
					at[sel.Alias], groups = i, append(groups, nil)
				}
				groups[i] = append(groups[i], sel)
			case *ast.InlineFragment:
				if e.included(sel.Directives) && e.applies(sel.TypeCondition, typ) {
					walk(sel.SelectionSet)
				}
			case *ast.FragmentSpread:
				if e.included(sel.Directives) && e.applies(sel.Definition.TypeCondition, typ) {
					walk(sel.Definition.SelectionSet)
				}
			}
		}
	}
	for _, set := range sets {
		walk(set)
	}
	return groups
}

func (e *execution) included(directives ast.DirectiveList) bool {
	for _, d := range directives {
		condition, _ := d.ArgumentMap(e.vars)["if"].(bool)
		if (d.Name == "skip" && condition) || (d.Name == "include" && !condition) {
			return false
		}
	}
	return true
}

func (e *execution) applies(condition, typ string) bool {
	if condition == "" || condition == typ {
		return true
	}
	def := e.schema.Types[condition]
	for _, possible := range e.schema.GetPossibleTypes(def) {
		if possible.Name == typ {
			return true
		}
	}
	return false
}

// field answers one field; false if its parent becomes null.
func (e *execution) field(obj *Object, group []*ast.Field, parent []any) (any, bool) {
	f := group[0]
	if f.Name == "__typename" {
		return obj.Type, true
	}
	path := append(append([]any{}, parent...), f.Alias)
	value, known := obj.Fields[f.Name]
	if !known {
		e.defect(path, "%s.%s has no value", obj.Type, f.Name)
	}
	if compute, lazy := value.(Func); lazy {
		var err error
		if value, err = compute(f.ArgumentMap(e.vars)); err != nil {
			e.fail(err, f, path)
			return nil, !f.Definition.Type.NonNull
		}
	}
	return e.complete(f.Definition.Type, value, group, path)
}

func (e *execution) fail(err error, f *ast.Field, path []any) {
	p := Problem{Path: path, Message: err.Error()}
	if f.Position != nil {
		p.Locations = []Location{{f.Position.Line, f.Position.Column}}
	}
	var known *Error
	if errors.As(err, &known) {
		p.Type, p.Extensions = known.Type, known.Extensions
	}
	e.out.Problems = append(e.out.Problems, p)
}

func (e *execution) defect(path []any, format string, args ...any) {
	e.out.Defects = append(e.out.Defects, fmt.Sprintf("%v: %s", path, fmt.Sprintf(format, args...)))
}

// complete makes a value fit its type; false if its parent becomes null.
func (e *execution) complete(t *ast.Type, value any, group []*ast.Field, path []any) (any, bool) {
	if obj, isObject := value.(*Object); value == nil || (isObject && obj == nil) {
		if t.NonNull {
			e.fail(&Error{Message: "Cannot return null for non-nullable field " + group[0].Name}, group[0], path)
			e.defect(path, "null for %s", t)
		}
		return nil, !t.NonNull
	}
	if t.Elem != nil {
		return e.list(t, value, group, path)
	}
	def := e.schema.Types[t.NamedType]
	if def.IsLeafType() {
		leaf, err := leaf(def, value)
		if err != nil {
			e.defect(path, "%v", err)
		}
		return leaf, true
	}
	obj, ok := value.(*Object)
	if !ok || !e.applies(t.NamedType, obj.Type) {
		e.defect(path, "%T is not a %s", value, t.NamedType)
		return nil, !t.NonNull
	}
	sets := make([]ast.SelectionSet, len(group))
	for i, f := range group {
		sets[i] = f.SelectionSet
	}
	out, whole := e.object(obj, sets, path)
	return out, whole || !t.NonNull
}

func (e *execution) list(t *ast.Type, value any, group []*ast.Field, path []any) (any, bool) {
	items, ok := value.([]any)
	if !ok {
		e.defect(path, "%T is not a list", value)
		return nil, !t.NonNull
	}
	out := make([]any, len(items))
	whole := true
	for i, item := range items {
		at := append(append([]any{}, path...), i)
		if err, failed := item.(error); failed {
			e.fail(err, group[0], at)
			item = nil
			if t.Elem.NonNull {
				whole = false
				continue
			}
		}
		var ok bool
		out[i], ok = e.complete(t.Elem, item, group, at)
		whole = whole && ok
	}
	if !whole {
		return nil, !t.NonNull
	}
	return out, true
}

// prepare parses and validates a request.
func (s *Schema) prepare(req Request) (*ast.OperationDefinition, map[string]any, []Problem) {
	doc, invalid := s.document(req.Query)
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

// document parses and validates a document, once for each text.
func (s *Schema) document(text string) (*ast.QueryDocument, gqlerror.List) {
	if known, ok := s.valid.Load(text); ok {
		return known.(*ast.QueryDocument), nil
	}
	doc, invalid := gqlparser.LoadQueryWithRules(s.ast, text, rules.NewDefaultRules())
	if len(invalid) == 0 {
		s.valid.Store(text, doc)
	}
	return doc, invalid
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
