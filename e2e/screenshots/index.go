package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// designed are the pictures of the design, by the page that they are about.
var designed = map[string]string{ //nolint:gochecknoglobals // a table, never written
	"overview": "01-overview-light", "changes": "03-changes-light", "change": "04-change-light",
	"refused": "05-refused-dark", "sessions": "06-agents-light", "session-runs": "07-session-dark",
	"packages-none": "08-procedures-empty-light", "records": "09-records-light", "sign-in": "12-states-signin-404",
}

// writeIndex writes the page that shows the pictures in docs/images/pages, those of the design beside them.
func writeIndex(docs string) error {
	pictures, err := filepath.Glob(filepath.Join(docs, "images/pages/*-light-1280.webp"))
	if err != nil || len(pictures) == 0 {
		return fmt.Errorf("no picture of a page in %s: %w", docs, err)
	}
	var names []string
	for _, p := range pictures {
		names = append(names, strings.TrimSuffix(filepath.Base(p), "-light-1280.webp"))
	}
	slices.Sort(names)
	page := bytes.NewBufferString("<!-- made by make screenshots -->\n# Pictures of the dashboard\n\n" +
		"Each page at a desk (1280 pixels) and on a phone (390), light and dark. Above them is the design, where it has " +
		"the page.\nThe design's [phone, light](../images/design/10-phone-light.png), " +
		"[phone, dark](../images/design/11-phone-dark.png) and\n" +
		"[overview, dark](../images/design/02-overview-dark-whole.png) are pictures of their own.\n")
	for _, name := range names {
		fmt.Fprintf(page, "\n## %s\n\n", strings.ToUpper(name[:1])+strings.ReplaceAll(name[1:], "-", " "))
		if d, ok := designed[name]; ok {
			fmt.Fprintf(page, "<img alt=\"%s in the design\" src=\"../images/design/%s.png\" width=\"800\">\n\n", name, d)
		}
		for _, look := range []struct {
			is    string
			width int
		}{{"light-1280", 800}, {"dark-1280", 800}, {"light-390", 240}, {"dark-390", 240}} {
			fmt.Fprintf(page, "<img alt=\"%s, %s\" src=\"../images/pages/%s-%s.webp\" width=\"%d\">\n", name, look.is, name,
				look.is, look.width)
		}
	}
	page.WriteString("\n## At a terminal\n\n" +
		"<img alt=\"claudeops init asks\" src=\"../images/terminal/init.svg\" width=\"800\">\n" +
		"<img alt=\"claudeops serve says how to sign in\" src=\"../images/terminal/serve.svg\" width=\"800\">\n")
	// #nosec G306: part of the sources
	return os.WriteFile(filepath.Join(docs, "reference/pictures.md"), page.Bytes(), 0o644)
}
