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

// docsView is what the page of the API shows.
type docsView struct {
	BasePath   string
	Title      string
	About      string
	Operations []docsOperation
}

type docsOperation struct {
	Method, Path string
	*huma.Operation
	Body    string // name of the type
	Answers []docsAnswer
}

type docsAnswer struct{ Status, Description, Type string }

// renderDocs makes the page once. It has no script and refers to nothing but its style.
func renderDocs(basePath string, doc *huma.OpenAPI, routes []handler.Route) ([]byte, error) {
	page, err := template.ParseFS(static, "static/docs.html")
	if err != nil {
		return nil, err
	}
	view := docsView{BasePath: basePath, Title: doc.Info.Title + " API", About: doc.Info.Description}
	for _, r := range routes {
		item := doc.Paths[operationPath(r)]
		op := item.Get
		if r.Method == "POST" {
			op = item.Post
		}
		entry := docsOperation{Method: r.Method, Path: operationPath(r), Operation: op}
		if op.RequestBody != nil {
			entry.Body = typeName(op.RequestBody.Content)
		}
		for status, response := range op.Responses {
			entry.Answers = append(entry.Answers, docsAnswer{status, response.Description, typeName(response.Content)})
		}
		slices.SortFunc(entry.Answers, func(a, b docsAnswer) int { return strings.Compare(a.Status, b.Status) })
		view.Operations = append(view.Operations, entry)
	}
	var b bytes.Buffer
	err = page.Execute(&b, view)
	return b.Bytes(), err
}

func typeName(content map[string]*huma.MediaType) string {
	for contentType, media := range content {
		if media.Schema == nil || media.Schema.Ref == "" {
			return contentType
		}
		const prefix = "#/components/schemas/"
		return media.Schema.Ref[len(prefix):]
	}
	return ""
}

func (h *documents) docsPage(*handler.Request) (handler.Response, error) {
	return handler.Response{Bytes: h.page, ContentType: "text/html; charset=utf-8"}, nil
}

func (h *documents) docsStyle(*handler.Request) (handler.Response, error) {
	text, err := static.ReadFile("static/docs.css")
	return handler.Response{Bytes: text, ContentType: "text/css; charset=utf-8"}, err
}
