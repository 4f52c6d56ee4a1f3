package cli

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
)

// describeUpdate says which modules are newer, and what a deployment would change with them.
func describeUpdate(w *strings.Builder, paint func(int, string) string, v deploy.Envelope[deploy.UpdateData]) {
	newer := 0
	for _, m := range v.Data.Modules {
		name := content.Clean(m.Module, maxCell)
		switch {
		case !m.Newer():
			fmt.Fprintf(w, "  %s is at the newest commit, %.12s\n", name, m.To)
			continue
		case m.From == "":
			fmt.Fprintf(w, "  %s\n", paint(cyan, fmt.Sprintf("%s follows %s, and would be locked to %.12s", name,
				content.Clean(m.Ref, maxCell), m.To)))
		default:
			fmt.Fprintf(w, "  %s\n", paint(cyan, fmt.Sprintf("%s %.12s -> %.12s", name, m.From, m.To)))
		}
		newer++
	}
	if len(v.Data.Modules) == 0 {
		fmt.Fprintln(w, "No module of another repository follows a branch or a tag.")
		return
	}
	describeChanges(w, paint, v.Data.Changes, v.Data.Summary, v.Warnings)
	switch {
	case v.Data.Written:
		fmt.Fprintf(w, "%s names these commits now. To deploy them: claudeops deploy apply\n", v.Data.Lock)
	case newer > 0:
		fmt.Fprintln(w, "Nothing was written: --yes writes the lock file.")
	}
}
