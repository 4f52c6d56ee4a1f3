package api

import (
	"bytes"
	"embed"
	"html/template"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/claudeops/claudeops/internal/web/handler"
)

//go:embed static/docs.html static/docs.css
var static embed.FS

// docsView is the content of the page about the API.
type docsView struct {
	BasePath   string
	Title      string
	About      string
	Operations []docsOperation
	Types      []docsType
}

type docsOperation struct {
	Method, Path string
	*huma.Operation
	Fields  []docsField // parameters
	Body    docsBody
	Answers []docsAnswer
}

type docsBody struct{ Content, Type, Example string } // Content is that of a body without a type of its own

type docsAnswer struct{ Status, Description, Content, Type string }

// renderDocs makes the page once. It has no script and refers to nothing but its style.
func renderDocs(basePath string, doc *huma.OpenAPI, routes []handler.Route) ([]byte, error) {
	page, err := template.ParseFS(static, "static/docs.html")
	if err != nil {
		return nil, err
	}
	view := docsView{
		BasePath: basePath, Title: doc.Info.Title + " API", About: doc.Info.Description,
		Types: docsTypes(doc.Components.Schemas.Map()),
	}
	for _, r := range routes {
		item := doc.Paths[operationPath(r)]
		op := item.Get
		if r.Method == "POST" {
			op = item.Post
		}
		entry := docsOperation{Method: r.Method, Path: operationPath(r), Operation: op}
		for _, p := range op.Parameters {
			entry.Fields = append(entry.Fields, docsField{Name: p.Name, In: p.In, Meaning: p.Description, Required: p.Required,
				docsValue: valueOf(p.Schema)})
		}
		if op.RequestBody != nil {
			entry.Body.Content, entry.Body.Type = typeName(op.RequestBody.Content)
			if example := bodyExamples()[r.Doc.ID]; example != nil {
				entry.Body.Example = exampleText(example)
			} else if r.Doc.BodyType != "" {
				entry.Body.Example, _ = r.Doc.Body.(string)
			}
		}
		for status, response := range op.Responses {
			content, name := typeName(response.Content)
			entry.Answers = append(entry.Answers, docsAnswer{status, response.Description, content, name})
		}
		slices.SortFunc(entry.Answers, func(a, b docsAnswer) int { return strings.Compare(a.Status, b.Status) })
		view.Operations = append(view.Operations, entry)
	}
	var b bytes.Buffer
	err = page.Execute(&b, view)
	return b.Bytes(), err
}

// typeName returns the name of the type of a body, or what kind of content it is.
func typeName(content map[string]*huma.MediaType) (kind, name string) {
	for contentType, media := range content {
		if media.Schema == nil || media.Schema.Ref == "" {
			return contentType, ""
		}
		return "", strings.TrimPrefix(media.Schema.Ref, schemaPrefix)
	}
	return "", ""
}

func (h *documents) docsPage(*handler.Request) (handler.Response, error) {
	d, err := h.made()
	return handler.Response{Bytes: d.page, ContentType: "text/html; charset=utf-8"}, err
}

func (h *documents) docsStyle(*handler.Request) (handler.Response, error) {
	text, err := static.ReadFile("static/docs.css")
	return handler.Response{Bytes: text, ContentType: "text/css; charset=utf-8"}, err
}
