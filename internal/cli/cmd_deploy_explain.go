package cli

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
)

// describeOrigins says which modules and overlays give a file. What decides has a mark.
func describeOrigins(w *strings.Builder, paint func(int, string) string, v deploy.Envelope[deploy.ExplainData]) {
	for _, f := range v.Data.Files {
		drift := ""
		if f.Drift != "" {
			drift = paint(yellow, fmt.Sprintf(" (%s since it was deployed)", f.Drift))
		}
		fmt.Fprintf(w, "%s %s%s\n", f.Target, content.Clean(f.Path, maxCell), drift)
		for _, p := range f.Parts {
			fmt.Fprintf(w, "  lines %d-%d: %s of the module %s\n", p.First, p.Last, content.Clean(p.File, maxCell),
				content.Clean(p.Module, maxCell))
			for _, l := range p.Layers {
				text := fmt.Sprintf("%-8s %s %s", l.Level, l.How, content.Clean(l.File, maxCell))
				if l.Line > 0 {
					text += fmt.Sprintf(", line %d", l.Line)
				}
				if l.Repository != "" {
					text += fmt.Sprintf(" of %s at %.12s", content.Clean(l.Repository, maxCell), l.Commit)
				}
				mark := "   "
				if l.Gives {
					mark, text = "-> ", paint(green, text)
				}
				fmt.Fprintf(w, "    %s%s\n", mark, text)
			}
		}
	}
	describeWarnings(w, paint, v.Warnings)
}
