// Command claudeops-connect connects an MCP client with a Claude Ops that runs already; see internal/agents/stdioproxy.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/claudeops/claudeops/internal/agents/stdioproxy"
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // a client that goes away is seen at the next write
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(stdioproxy.Command(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
