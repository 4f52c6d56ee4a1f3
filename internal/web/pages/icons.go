package pages

import (
	"fmt"
	"html/template"
	"strings"
)

// icons returns the drawings of the kept icons, by name.
func icons() (map[string]template.HTML, error) {
	kept, err := static.ReadFile("static/icons.txt")
	all := map[string]template.HTML{}
	for line := range strings.Lines(string(kept)) {
		name, drawing, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		all[name] = template.HTML(`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">` + drawing + `</svg>`) //nolint:gosec // a file of ours
	}
	return all, err
}

// iconOf finds an icon for a template; one that is not kept is a fault of the template.
func iconOf(kept map[string]template.HTML) func(name string) (template.HTML, error) {
	return func(name string) (template.HTML, error) {
		drawing, known := kept[name]
		if !known {
			return "", fmt.Errorf("the icon %q is not kept: name it in tools/styles/icons", name)
		}
		return drawing, nil
	}
}
