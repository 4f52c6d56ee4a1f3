package cli

import (
	"regexp"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// riddles are words that only somebody who has read the code understands. internal/web has the same list for the pages.
func riddles() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(the( \w+)? door|what spoke|for real|remarks?)\b`)
}

func TestCommandsSpeakPlainly(t *testing.T) {
	t.Parallel()
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		texts := []string{cmd.Short, cmd.Long, cmd.Example}
		cmd.Flags().VisitAll(func(f *pflag.Flag) { texts = append(texts, f.Usage) })
		for _, text := range texts {
			if found := riddles().FindString(text); found != "" {
				t.Errorf("%s says %q: %s", cmd.CommandPath(), found, text)
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit((&commandLine{}).rootCommand())
}
