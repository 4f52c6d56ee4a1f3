package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// documents gives out the OpenAPI description, made from the routes and the types that they decode and encode when it
// is first asked for: that takes longer than the rest of a server's start. Of huma only schemas and document are used;
// see docs/adr/0006.
type documents struct {
	made func() (description, error)
}

// description is the OpenAPI document, and the same for a page.
type description struct {
	json []byte
	docs Docs
}

func (h *documents) routes() []httpx.Route {
	return []httpx.Route{
		get("/openapi.json", h.openAPI, httpx.Doc{
			ID: "openapi", Summary: "This description", Answers: httpx.OK(map[string]any{}),
		}),
	}
}

// describeAPI makes the description of the routes.
func describeAPI(version, basePath string, routes []httpx.Route) (d description, err error) {
	types := huma.NewMapRegistry("#/components/schemas/", schemaName)
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Claude Ops", Version: version,
			Description: "AI operations agents propose changes to their own procedures here, as pull requests that a person merges. " +
				"Errors are application/problem+json with a code.",
			License: &huma.License{Name: "MIT", Identifier: "MIT"},
		},
		Servers: []*huma.Server{{URL: basePath + "/"}},
		Components: &huma.Components{Schemas: types, SecuritySchemes: map[string]*huma.SecurityScheme{
			"token":   {Type: "http", Scheme: "bearer", Description: "claudeops token create, or CLAUDEOPS_API_TOKENS"},
			"session": {Type: "apiKey", In: "cookie", Name: httpx.CookieName, Description: "POST /sign-in"},
		}},
	}
	for _, r := range routes {
		doc.AddOperation(described(types, r))
	}
	for name, schema := range types.Map() {
		tidy(schema)
		boundBytes(schema, types.TypeFromRef("#/components/schemas/"+name))
	}
	if d.json, err = json.Marshal(doc); err != nil {
		return d, err
	}
	d.docs = docsOf(doc, routes)
	return d, nil
}

// schemaName returns the name of a type in the document. Toolsets may use the same words, so theirs begin with the
// toolset's name.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch set := path.Base(t.PkgPath()); set {
	case "definitions", "deploy", "packages", "scripts":
		return strings.ToUpper(set[:1]) + set[1:] + name
	}
	if name == "View" {
		return "EffectivePolicy"
	}
	return name
}

// tidy marks lists as never null: our answers have no null lists.
func tidy(schema *huma.Schema) {
	if schema == nil {
		return
	}
	if schema.Type == huma.TypeArray {
		schema.Nullable = false
	}
	tidy(schema.Items)
	for _, property := range schema.Properties {
		tidy(property)
	}
}

// boundBytes gives texts that are bounded in bytes the same bound in characters, and removes the fields that are in the
// path.
func boundBytes(schema *huma.Schema, t reflect.Type) {
	if t == nil || t.Kind() != reflect.Struct {
		return
	}
	for _, f := range operation.Fields(t) {
		if f.Tag.Get("path") != "" { // it does not belong to the body
			delete(schema.Properties, f.JSON)
			schema.Required = slices.DeleteFunc(schema.Required, func(name string) bool { return name == f.JSON })
			continue
		}
		if most, err := strconv.Atoi(f.Tag.Get("maxBytes")); err == nil {
			schema.Properties[f.JSON].MaxLength = &most
		}
	}
}

func described(types huma.Registry, r httpx.Route) *huma.Operation {
	op := &huma.Operation{
		Method: r.Method, Path: operationPath(r), OperationID: r.Doc.ID, Summary: r.Doc.Summary,
		Description: r.Doc.Description,
		Responses:   map[string]*huma.Response{}, Tags: []string{tag(r.Pattern)}, Security: []map[string][]string{},
	}
	if r.Scope != "" {
		op.Security = []map[string][]string{{"token": {}}, {"session": {}}}
		op.Description = strings.TrimSpace(op.Description + " Needs the scope " + string(r.Scope) + ".")
	}
	op.Parameters = parameters(types, r)
	if r.Doc.Keyed {
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: "Idempotency-Key", In: "header", Schema: &huma.Schema{Type: huma.TypeString, Pattern: "^[!-~]{1,255}$"},
			Description: "1 to 255 visible characters. For 24 hours the same key with the same body is answered as the first time it " +
				"succeeded; with another body it is a conflict.",
		})
	}
	switch {
	case r.Doc.BodyType != "":
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			r.Doc.BodyType: {Schema: &huma.Schema{Type: huma.TypeString}, Example: r.Doc.Body},
		}}
	case r.Doc.Body != nil:
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/json": {Schema: schemaOf(types, r.Doc.Body), Example: bodyExamples()[r.Doc.ID]},
		}}
	}
	for status, body := range r.Doc.Answers {
		op.Responses[strconv.Itoa(status)] = answerOf(types, http.StatusText(status), r.Doc.ContentType, body)
	}
	op.Responses["4XX"] = answerOf(types, "Refused; the code says why", "application/problem+json", httpx.Problem{})
	op.Responses["default"] = answerOf(types, "Failed", "application/problem+json", httpx.Problem{})
	return op
}

// operationPath returns the pattern as OpenAPI writes it.
func operationPath(r httpx.Route) string {
	return strings.ReplaceAll(strings.TrimSuffix(r.Pattern, "{$}"), "...}", "}")
}

func answerOf(types huma.Registry, description, contentType string, body any) *huma.Response {
	if contentType == "" {
		contentType = "application/json"
	}
	out := &huma.Response{Description: description}
	if body != nil {
		out.Content = map[string]*huma.MediaType{contentType: {Schema: schemaOf(types, body)}}
	}
	return out
}

func schemaOf(types huma.Registry, v any) *huma.Schema {
	return types.Schema(reflect.TypeOf(v), true, "")
}

// tag groups operations by the first word of their path.
func tag(pattern string) string {
	word, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(pattern, prefix), "/"), "/")
	if !strings.HasPrefix(pattern, prefix) {
		return "server"
	}
	return word
}

func pathParameters(pattern string) (names []string) {
	for _, match := range regexp.MustCompile(`\{(\w+)(?:\.\.\.)?\}`).FindAllStringSubmatch(pattern, -1) {
		names = append(names, match[1])
	}
	return names
}

// parameters describes the parts of a path, and the fields of the struct that path and query are read into.
func parameters(types huma.Registry, r httpx.Route) (out []*huma.Param) {
	inPath := pathParameters(r.Pattern)
	for _, name := range inPath {
		out = append(out, &huma.Param{Name: name, In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}})
	}
	fields := r.Doc.Params
	if fields == nil {
		fields = r.Doc.Body
	}
	if t := reflect.TypeOf(fields); t == nil || t.Kind() != reflect.Struct {
		return out
	}
	for _, field := range operation.Fields(reflect.TypeOf(fields)) {
		schema := huma.SchemaFromField(types, field.StructField, "")
		if field.Type.Kind() == reflect.Int {
			schema.Format = ""
		}
		if at := slices.Index(inPath, field.Tag.Get("path")); at >= 0 {
			out[at].Schema, out[at].Description = schema, field.Tag.Get("doc")
			continue
		}
		if r.Doc.Params == nil { // it is in the body
			continue
		}
		out = append(out, &huma.Param{
			Name: field.JSON, In: "query", Description: field.Tag.Get("doc"), Required: field.Tag.Get("required") == "true",
			Schema: schema,
		})
	}
	return out
}

func (h *documents) openAPI(*httpx.Request) (httpx.Response, error) {
	d, err := h.made()
	return httpx.Response{Bytes: d.json, ContentType: "application/json"}, err
}

// Docs is the description of the API as pages show it.
type Docs struct {
	About      string
	Operations []DocsOperation
	Types      []DocsType // by name
}

// DocsOperation describes an operation of the API.
type DocsOperation struct {
	ID, Group            string
	Method, Path         string // below the base path
	Summary, Description string
	Fields               []DocsField // parameters
	Body                 DocsContent
	Example              string // of the body; "" for none
	Answers              []DocsAnswer
}

// DocsContent is a body: the name of its type, or else what kind of content it is.
type DocsContent struct{ Content, Type string }

// DocsAnswer is an answer by its status: "200", "4XX", "default".
type DocsAnswer struct {
	Status, Description string
	DocsContent
}

// docsOf puts the document into the words of pages.
func docsOf(doc *huma.OpenAPI, routes []httpx.Route) Docs {
	view := Docs{About: doc.Info.Description, Types: docsTypes(doc.Components.Schemas.Map())}
	for _, r := range routes {
		item := doc.Paths[operationPath(r)]
		op := item.Get
		if r.Method == "POST" {
			op = item.Post
		}
		entry := DocsOperation{ID: op.OperationID, Group: op.Tags[0], Method: r.Method, Path: operationPath(r),
			Summary: op.Summary, Description: op.Description}
		for _, p := range op.Parameters {
			entry.Fields = append(entry.Fields, DocsField{Name: p.Name, In: p.In, Meaning: p.Description, Required: p.Required,
				DocsValue: valueOf(p.Schema)})
		}
		if op.RequestBody != nil {
			entry.Body = contentOf(op.RequestBody.Content)
			if example := bodyExamples()[r.Doc.ID]; example != nil {
				entry.Example = exampleText(example)
			} else if r.Doc.BodyType != "" {
				entry.Example, _ = r.Doc.Body.(string)
			}
		}
		for status, response := range op.Responses {
			entry.Answers = append(entry.Answers, DocsAnswer{status, response.Description, contentOf(response.Content)})
		}
		slices.SortFunc(entry.Answers, func(a, b DocsAnswer) int { return strings.Compare(a.Status, b.Status) })
		view.Operations = append(view.Operations, entry)
	}
	return view
}

// contentOf returns what a body is.
func contentOf(content map[string]*huma.MediaType) DocsContent {
	for contentType, media := range content {
		if media.Schema == nil || media.Schema.Ref == "" {
			return DocsContent{Content: contentType}
		}
		return DocsContent{Type: strings.TrimPrefix(media.Schema.Ref, schemaPrefix)}
	}
	return DocsContent{}
}

// DocsType is a type of the API.
type DocsType struct {
	Name   string
	Fields []DocsField
}

// DocsField is a field of a type, or a parameter.
type DocsField struct {
	Name, In, Meaning string
	Required          bool
	DocsValue
}

// DocsValue says which values there are.
type DocsValue struct {
	Type, Link string // Link is the name of the type that it is made of; "" for none
	Limits     []string
	OneOf      []string
	Example    string
}

const schemaPrefix = "#/components/schemas/"

// docsTypes returns the types of the document, by name.
func docsTypes(types map[string]*huma.Schema) (out []DocsType) {
	for name, schema := range types {
		one := DocsType{Name: name}
		for field, property := range schema.Properties {
			one.Fields = append(one.Fields, DocsField{
				Name: field, Meaning: property.Description, Required: slices.Contains(schema.Required, field),
				DocsValue: valueOf(property),
			})
		}
		slices.SortFunc(one.Fields, func(a, b DocsField) int {
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
	slices.SortFunc(out, func(a, b DocsType) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// valueOf puts a schema into words.
func valueOf(s *huma.Schema) (v DocsValue) {
	switch {
	case s.Ref != "":
		v.Link = strings.TrimPrefix(s.Ref, schemaPrefix)
	case s.Type == huma.TypeArray && s.Items != nil:
		of := valueOf(s.Items)
		v = DocsValue{Type: strings.TrimSpace("list of " + of.Type), Link: of.Link, Limits: of.Limits, OneOf: of.OneOf}
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

// bodyExamples returns example bodies for the types of requests, by the ids of the operations. A test compares them
// with the description.
func bodyExamples() map[string]any {
	return map[string]any{
		"createPR": map[string]any{
			"repo_owner": "demo", "repo_name": "home-cluster", "title": "Watch the inodes",
			"body": "The disk had room, and no inode was left.", "change_type": "check",
			"files": []any{map[string]any{"path": "checks/inodes.md", "action": "create",
				"content": "# Inodes\n\n- Run `df -i`.\n"}},
		},
		"openConnection": map[string]any{"claudeops": 1, "tier": 1},
		"checkPolicy":    map[string]any{"paths": []any{"checks/disk.md", "prompts/observe.md"}, "tier": 2},
		"startSession":   map[string]any{"tier": 1, "note": "Look at the disk of node 3."},
		"signIn":         map[string]any{"token": "the token that `claudeops token create` has printed"},
		"createToken":    map[string]any{"name": "ann", "scopes": []any{"read", "review"}, "max_tier": 2},
		"reviewPR": map[string]any{
			"repo_owner": "joe", "repo_name": "home-cluster", "event": "request-changes", "body": "Say which disk.",
			"comments": []any{map[string]any{"path": "checks/disk.md", "line": 12, "body": "Which one?"}},
		},
		"mergePR": map[string]any{"repo_owner": "joe", "repo_name": "home-cluster",
			"head": "9f2c1d4e5b6a7988f0e1d2c3b4a5968778695a4b"},
		"closePR": map[string]any{"repo_owner": "joe", "repo_name": "home-cluster", "comment": "Not now."},
	}
}
