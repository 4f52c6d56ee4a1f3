package cli

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/spf13/cobra"
)

func versionCommand(a *commandLine) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": app.Version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" +
				runtime.GOARCH}
			return a.print(v, func(w *strings.Builder) {
				fmt.Fprintf(w, "claudeops %s (%s, %s)\n", v["version"], v["go"], v["platform"])
			})
		},
	}
}
