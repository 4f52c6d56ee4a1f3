// Command man writes the manual pages of claudeops, one of section 1 for each command, to a folder. The packages of a
// release install them; see generate.sh.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claudeops/claudeops/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man FOLDER")
		os.Exit(2)
	}
	if err := os.MkdirAll(os.Args[1], 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := writeManual(cli.Command(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// writeManual writes the pages of a command and of all below it.
func writeManual(cmd *cobra.Command, folder string) error {
	if err := os.WriteFile(filepath.Join(folder, manName(cmd)+".1"), []byte(manualPage(cmd)), 0o644); err != nil {
		return err
	}
	for _, below := range cmd.Commands() {
		if !shownInManual(below) {
			continue
		}
		if err := writeManual(below, folder); err != nil {
			return err
		}
	}
	return nil
}

func shownInManual(cmd *cobra.Command) bool {
	return cmd.IsAvailableCommand() && !cmd.IsAdditionalHelpTopicCommand()
}

// manName is the name of a command's page, such as claudeops-audit-list.
func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manualPage is the page of a command in the language of man(7).
func manualPage(cmd *cobra.Command) string {
	var b strings.Builder
	section := func(name string) { b.WriteString(".SH " + name + "\n") }
	fmt.Fprintf(&b, ".TH \"%s\" \"1\" \"\" \"claudeops %s\" \"Claude Ops\"\n", strings.ToUpper(roff(manName(cmd))), roff(cmd.Root().Version))
	section("NAME")
	fmt.Fprintf(&b, "%s \\- %s\n", roff(manName(cmd)), roff(cmd.Short))
	section("SYNOPSIS")
	fmt.Fprintf(&b, ".B %s\n", roff(cmd.UseLine()))
	section("DESCRIPTION")
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	b.WriteString(roffText(about))
	manualFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	manualFlags(&b, "OPTIONS OF ALL COMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		section("EXAMPLES")
		b.WriteString(".nf\n" + roffText(cmd.Example) + ".fi\n")
	}
	manualSeeAlso(&b, cmd)
	return b.String()
}

func manualFlags(b *strings.Builder, name string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString(".SH " + name + "\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		if value != "" {
			value = " \\fI" + roff(value) + "\\fR"
		}
		short := ""
		if f.Shorthand != "" {
			short = "\\fB\\-" + f.Shorthand + "\\fR, "
		}
		fmt.Fprintf(b, ".TP\n%s\\fB\\-\\-%s\\fR%s\n%s", short, roff(f.Name), value, roffText(usage))
	})
}

func manualSeeAlso(b *strings.Builder, cmd *cobra.Command) {
	var pages []string
	if cmd.HasParent() {
		pages = append(pages, manName(cmd.Parent()))
	}
	for _, below := range cmd.Commands() {
		if shownInManual(below) {
			pages = append(pages, manName(below))
		}
	}
	if len(pages) == 0 {
		return
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, page := range pages {
		end := ","
		if i == len(pages)-1 {
			end = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", roff(page), end)
	}
}

// roff writes a text as it is: no character of it has a meaning of its own.
func roff(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "'", `\(aq`).Replace(text)
}

// roffText is lines of text. One that begins with a dot would be a request.
func roffText(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.TrimSpace(line) == "":
			b.WriteString(".PP\n")
		case strings.HasPrefix(line, "."):
			b.WriteString(`\&` + roff(line) + "\n")
		default:
			b.WriteString(roff(line) + "\n")
		}
	}
	return b.String()
}
