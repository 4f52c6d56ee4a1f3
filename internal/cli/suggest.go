package cli

import (
	"fmt"
	"strings"

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
	return usageError{fmt.Errorf("%s%s", text, meant(cmd.SuggestionsFor(args[0])))}
}

// wrongFlag is an error about the flags, with the one that may have been meant.
func wrongFlag(cmd *cobra.Command, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		return usageError{err}
	}
	var near []string
	closest := 3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		switch d := distance(name, f.Name); {
		case d < closest:
			near, closest = []string{"--" + f.Name}, d
		case d == closest && d < 3 || len(name) > 2 && strings.HasPrefix(f.Name, name):
			near = append(near, "--"+f.Name)
		}
	})
	return usageError{fmt.Errorf("unknown flag: --%s%s", name, meant(near))}
}

func meant(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(words, " or ") + "?"
}

// distance is how many letters have to be put in, taken out or replaced to make b of a (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			if a[i] == b[j] {
				row[j+1] = diagonal
			} else {
				row[j+1] = min(diagonal, above, row[j]) + 1
			}
			diagonal = above
		}
	}
	return row[len(b)]
}
