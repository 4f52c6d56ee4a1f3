package dashboard

import (
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/web/api"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// docsPath is the address of the pages about the API.
const docsPath = "/docs"

// docsPages show the API to people: a list of its operations, and each operation and type on a page of its own.
type docsPages struct {
	*renderer
	docs func() (api.Docs, error)
}

func (h *docsPages) routes(follows func(string, httpx.Func) httpx.Route) []httpx.Route {
	return []httpx.Route{
		follows(docsPath, withQuery(h.showList)),
		follows(docsPath+"/{operation}", h.showOperation),
		follows(docsPath+"/types/{type}", h.showType),
	}
}

// docsParams search the operations.
type docsParams struct {
	Q string `json:"q,omitempty"`
}

// docsList is the list of operations.
type docsList struct {
	pages.Page
	About, Q string
	Groups   []docsGroup
	Found    int
}

// docsGroup holds the operations below one word of the path.
type docsGroup struct {
	Name       string
	Operations []api.DocsOperation
}

// showList lists the operations that have every word of the search.
func (h *docsPages) showList(req *httpx.Request, q docsParams) (httpx.Response, error) {
	docs, err := h.docs()
	if err != nil {
		return httpx.Response{}, err
	}
	view := docsList{Page: h.frame(req, "API", docsPath), About: docs.About, Q: q.Q}
	words := strings.Fields(strings.ToLower(q.Q))
	for _, op := range docs.Operations {
		text := strings.ToLower(strings.Join([]string{op.Method, op.Path, op.ID, op.Summary, op.Description}, " "))
		if slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			continue
		}
		view.Found++
		at := slices.IndexFunc(view.Groups, func(g docsGroup) bool { return g.Name == op.Group })
		if at < 0 {
			at, view.Groups = len(view.Groups), append(view.Groups, docsGroup{Name: op.Group})
		}
		view.Groups[at].Operations = append(view.Groups[at].Operations, op)
	}
	return h.html("docs", view)
}

// docsOperation is the page of one operation.
type docsOperation struct {
	pages.Page
	Operation api.DocsOperation
	Address   string              // below the host
	Body      api.DocsType        // zero for none with a type of its own
	Others    []api.DocsOperation // of its group
}

// showOperation shows one operation, with the fields of its body.
func (h *docsPages) showOperation(req *httpx.Request) (httpx.Response, error) {
	docs, err := h.docs()
	if err != nil {
		return httpx.Response{}, err
	}
	for _, op := range docs.Operations {
		if op.ID != req.PathValue("operation") {
			continue
		}
		view := docsOperation{Page: h.frame(req, op.Summary, docsPath), Operation: op, Address: h.base + op.Path}
		for _, t := range docs.Types {
			if t.Name == op.Body.Type {
				view.Body = t
			}
		}
		for _, other := range docs.Operations {
			if other.Group == op.Group {
				view.Others = append(view.Others, other)
			}
		}
		return h.html("docs_operation", view)
	}
	return httpx.Response{}, httpx.NothingHere(h.base)
}

// docsType is the page of a type.
type docsType struct {
	pages.Page
	Type api.DocsType
	Uses []api.DocsOperation // that take it or answer with it
}

// showType shows the fields of a type, and which operations use it.
func (h *docsPages) showType(req *httpx.Request) (httpx.Response, error) {
	docs, err := h.docs()
	if err != nil {
		return httpx.Response{}, err
	}
	for _, t := range docs.Types {
		if t.Name != req.PathValue("type") {
			continue
		}
		view := docsType{Page: h.frame(req, t.Name, docsPath), Type: t}
		for _, op := range docs.Operations {
			answers := func(a api.DocsAnswer) bool { return a.Type == t.Name }
			if op.Body.Type == t.Name || slices.ContainsFunc(op.Answers, answers) {
				view.Uses = append(view.Uses, op)
			}
		}
		return h.html("docs_type", view)
	}
	return httpx.Response{}, httpx.NothingHere(h.base)
}
