// Command man writes the manual pages of claudeops, one of section 1 for each command, to a folder. The packages of a
// release install them; see deploy/packages/generate.sh. It is a module of its own, so that the program does not carry
// what renders them.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/claudeops/claudeops/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man FOLDER")
		os.Exit(2)
	}
	if err := write(cli.Command(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write makes a page for each command. They bear the month of SOURCE_DATE_EPOCH.
func write(root *cobra.Command, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	root.InitDefaultCompletionCmd()
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "claudeops " + root.Version, Manual: "Claude Ops"},
		folder)
}
