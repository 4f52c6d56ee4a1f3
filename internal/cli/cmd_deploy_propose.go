package cli

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
)

// describeProposed says what was proposed of a deployment.
func describeProposed(w *strings.Builder, paint func(int, string) string, v deploy.Envelope[deploy.Proposed]) {
	for _, name := range v.Data.Files {
		fmt.Fprintf(w, "  %s\n", content.Clean(name, maxCell))
	}
	describeWarnings(w, paint, v.Warnings)
	title := content.Clean(v.Data.Title, maxCell)
	switch {
	case v.Data.DryRun:
		fmt.Fprintf(w, "This was a dry run. It would propose to %s, on the branch %s: %s\n", v.Data.Repository, v.Data.Branch,
			title)
	case v.Data.Reused:
		fmt.Fprintf(w, "Proposed already: #%d of %s, %s\n", v.Data.Number, v.Data.Repository, v.Data.URL)
	default:
		fmt.Fprintf(w, "Proposed: #%d of %s, %s\n  %s\n", v.Data.Number, v.Data.Repository, v.Data.URL, title)
	}
}
