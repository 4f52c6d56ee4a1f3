package cli

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// noSuchCommand refuses words after a command that only holds others, and says which of them may have been meant.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	text := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0])
	return app.Usage(fmt.Errorf("%s%s", text, meant(cmd.SuggestionsFor(args[0]))))
}

// wrongFlag returns an error about the flags, with the one that may have been meant.
func wrongFlag(cmd *cobra.Command, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		return app.Usage(err)
	}
	var near []string
	closest := 3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		switch d := levenshtein.ComputeDistance(name, f.Name); {
		case d < closest:
			near, closest = []string{"--" + f.Name}, d
		case d == closest && d < 3 || len(name) > 2 && strings.HasPrefix(f.Name, name):
			near = append(near, "--"+f.Name)
		}
	})
	return app.Usage(fmt.Errorf("unknown flag: --%s%s", name, meant(near)))
}

func meant(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(words, " or ") + "?"
}
