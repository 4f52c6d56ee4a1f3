package pages

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"
	"text/template/parse"
)

//go:embed templates/*.html
var templates embed.FS

// Set renders pages. It is safe for concurrent use.
type Set struct{ byName map[string]*template.Template }

// Load parses the templates. Whatever one of them writes is made fit to be shown by show, so that no page has to think
// of it. An error is a fault in a template.
func Load(show Shower) (*Set, error) {
	const layout, shared = "templates/layout.html", "templates/parts.html"
	files, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		return nil, err
	}
	drawn, err := icons()
	if err != nil {
		return nil, err
	}
	set := &Set{byName: map[string]*template.Template{}}
	kept := &parts{show: show}
	for _, file := range files {
		if file == layout || file == shared {
			continue
		}
		page := template.New("layout.html").Funcs(show.functions())
		page.Funcs(template.FuncMap{"icon": iconOf(drawn), "part": func(name, base string, of Part) (template.HTML, error) {
			return kept.text(page, partKey{page: file, template: name, base: base}, of)
		}})
		if _, err := page.ParseFS(templates, layout, shared, file); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, t := range page.Templates() {
			if t.Tree != nil {
				showOutputs(t.Tree.Root)
			}
		}
		set.byName[strings.TrimSuffix(path.Base(file), ".html")] = page
	}
	return set, nil
}

// showOutputs ends every pipeline that writes something with the function shown.
func showOutputs(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				shown := parse.NewIdentifier("shown").SetPos(n.Pos)
				n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos,
					Args: []parse.Node{shown}})
			}
		case *parse.IfNode:
			showOutputs(n.List)
			showOutputs(n.ElseList)
		case *parse.RangeNode:
			showOutputs(n.List)
			showOutputs(n.ElseList)
		case *parse.WithNode:
			showOutputs(n.List)
			showOutputs(n.ElseList)
		}
	}
}

// Render renders the page with a name, which is that of its template, from its view.
func (s *Set) Render(name string, view any) ([]byte, error) {
	page, known := s.byName[name]
	if !known {
		return nil, fmt.Errorf("there is no page %q", name)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, view); err != nil {
		return nil, fmt.Errorf("page %s: %w", name, err)
	}
	return b.Bytes(), nil
}
