package cli

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// docs/reference/commands.md is made from the commands: `make golden` writes it.
func TestThePageOfCommandsIsMadeFromThem(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Commands\n\n<!-- Written by `make golden` from the commands in the code; edit those. -->\n\n" +
		"[Use the command line](../guides/command-line.md) says how commands answer.\n\n## Flags of every command\n\n")
	root := Command()
	flagsTable(&b, root.PersistentFlags())
	describeCommands(&b, root)
	operationtest.Golden(t, filepath.Join("..", "..", "docs", "reference", "commands.md"), []byte(b.String()))
}

func describeCommands(b *strings.Builder, parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
			continue
		}
		level := "##"
		if parent.HasParent() {
			level = "###"
		}
		fmt.Fprintf(b, "\n%s %s\n\n%s.\n", level, cmd.CommandPath(), strings.TrimSuffix(cmd.Short, "."))
		if cmd.HasSubCommands() {
			describeCommands(b, cmd)
			continue
		}
		fmt.Fprintf(b, "\n```\n%s\n```\n", cmd.UseLine())
		if cmd.Long != "" {
			fmt.Fprintf(b, "\n%s\n", asMarkdown(cmd.Long))
		}
		if cmd.Example != "" {
			fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.ReplaceAll(cmd.Example[2:], "\n  ", "\n"))
		}
		if cmd.LocalNonPersistentFlags().HasFlags() {
			b.WriteString("\n")
			flagsTable(b, cmd.LocalNonPersistentFlags())
		}
	}
}

// asMarkdown is the text of a help: indented lines are code.
func asMarkdown(text string) string {
	text = regexp.MustCompile(`(?m)^ {4}(\S.*)$`).ReplaceAllString(text, "\n```sh\n$1\n```\n")
	text = strings.ReplaceAll(text, "\n```\n\n\n```sh\n", "\n")
	return strings.NewReplacer("<", "&lt;", "*", `\*`).Replace(text)
}

func flagsTable(b *strings.Builder, flags *pflag.FlagSet) {
	b.WriteString("| flag | meaning |\n|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden {
			fmt.Fprintf(b, "| `--%s` | %s |\n", f.Name, strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(f.Usage))
		}
	})
}
