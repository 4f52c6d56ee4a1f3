package pages

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"
)

//go:embed templates/*.html
var templates embed.FS

// Set renders pages. It is safe for concurrent use.
type Set struct{ byName map[string]*template.Template }

// Load parses the templates. An error is a fault in one of them.
func Load() (*Set, error) {
	const layout, parts = "templates/layout.html", "templates/parts.html"
	files, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		return nil, err
	}
	set := &Set{byName: map[string]*template.Template{}}
	for _, file := range files {
		if file == layout || file == parts {
			continue
		}
		page, err := template.New("layout.html").Option("missingkey=error").ParseFS(templates, layout, parts, file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		set.byName[strings.TrimSuffix(path.Base(file), ".html")] = page
	}
	return set, nil
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
