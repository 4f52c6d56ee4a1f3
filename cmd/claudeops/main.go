// Command claudeops is the one door through which AI operations agents propose changes, as pull requests.
package main

import (
	"os"

	"github.com/claudeops/claudeops/internal/cli"
)

func main() { os.Exit(cli.Main()) }
