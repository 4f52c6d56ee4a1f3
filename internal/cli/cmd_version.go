package cli

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// release is the version of this source tree; CHANGELOG.md has the same.
const release = "0.1.0"

// version is the tag that the binary was built from (or that `go install` was asked for), else the release with the commit if
// Go stamped one.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	if tag := regexp.MustCompile(`^v(\d+\.\d+\.\d+(-[a-z]+\.?\d*)?(\+dirty)?)$`).FindStringSubmatch(info.Main.Version); tag != nil {
		return tag[1]
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return release + "+" + s.Value[:min(len(s.Value), 12)]
		}
	}
	return release
}

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			return a.print(v, func(w *strings.Builder) {
				fmt.Fprintf(w, "claudeops %s (%s, %s)\n", v["version"], v["go"], v["platform"])
			})
		},
	}
}
