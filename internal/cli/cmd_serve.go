package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/transport"
)

func serveCommand(a *commandLine) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the dashboard for people and the REST API for programs",
		Long: "serve listens on CLAUDEOPS_ADDR (127.0.0.1:8080 by default) until SIGINT or SIGTERM; then it answers what it has\n" +
			"begun and ends. Every route but the probes needs a token or a login. Where no token was ever made, the first " +
			"start makes\n" +
			"one, in the state folder, and prints an address that signs a browser in once. With --interval it starts an agent " +
			"session of tier 1 then. Logs go to stderr, as JSON with\n" +
			"CLAUDEOPS_LOG_FORMAT=json.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return app.RunServe(cmd.Context(), a.program()) },
	}
	sessionToolsetsFlag(a, cmd)
	a.flags["CLAUDEOPS_INTERVAL"] = cmd.Flags().String("interval", "",
		"when to start a session of tier 1, such as 1h or \"0 6 * * 1-5 Europe/Berlin\"; 0 is never (CLAUDEOPS_INTERVAL)")
	a.flags["CLAUDEOPS_ANONYMOUS_READ"] = cmd.Flags().String("anonymous-read", "",
		"let programs on this machine read without a token (CLAUDEOPS_ANONYMOUS_READ)")
	cmd.Flags().Lookup("anonymous-read").NoOptDefVal = "true"
	a.flags["CLAUDEOPS_DEPLOY_AFTER_MERGE"] = cmd.Flags().String("deploy-after-merge", "",
		"deploy what was merged, unless it would replace files that nobody has deployed (CLAUDEOPS_DEPLOY_AFTER_MERGE)")
	cmd.Flags().Lookup("deploy-after-merge").NoOptDefVal = "true"
	return cmd
}

// healthBound limits how long a server may take to report that it is ready: a little more than it gives its records.
const healthBound = 6 * time.Second

func healthCommand(a *commandLine) *cobra.Command {
	return &cobra.Command{
		Use:   "health",
		Short: "Ask the server on CLAUDEOPS_ADDR whether it is ready",
		Long: "health asks the server that listens on CLAUDEOPS_ADDR for /readyz, without a token, and exits with 0 if it " +
			"can serve\n" +
			"and its records can be read, with 1 if not. It is what a container's health check runs.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runHealth(cmd.Context(), a) },
	}
}

func runHealth(ctx context.Context, a *commandLine) error {
	cfg := config.Load(a.sources(), forges.All())
	if cfg.Web.Problem != "" {
		return app.Usage(errors.New(cfg.Web.Problem))
	}
	host := dialable(cfg.Web.Addr)
	ctx, cancel := context.WithTimeout(ctx, healthBound)
	defer cancel()
	at, err := url.Parse("http://" + host + cfg.Web.BasePath + "/readyz")
	if err != nil {
		return app.Usage(errors.New("CLAUDEOPS_ADDR is not of the form host:port"))
	}
	pool := transport.NewPool(nil) // no proxy: the answer is about this machine
	defer pool.CloseIdleConnections()
	client := transport.NewClient(transport.ClientOptions{Over: pool,
		Host: transport.Only(at, trust.Said(transport.Host{Private: true}))})
	answer, err := client.Do(ctx, transport.Request{Method: http.MethodGet, URL: at})
	if err != nil {
		return plainFailure{fmt.Errorf(
			"no server answers on %s; start it with `claudeops serve`, or correct --addr or CLAUDEOPS_ADDR", host),
			fault.ExitInternal}
	}
	if answer.Status != http.StatusOK {
		return plainFailure{fmt.Errorf(
			"the server on %s is not ready: it answers with status %d; its log, or %s/readyz, says why",
			host, answer.Status, at.Host+cfg.Web.BasePath), fault.ExitInternal}
	}
	fmt.Fprintf(a.streams.Out, "The server on %s is ready.\n", host)
	return nil
}

// dialable returns the address at which this machine reaches a listener: loopback if it listens on every interface.
func dialable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "", err == nil && ip.Is4() && ip.IsUnspecified():
		host = "127.0.0.1"
	case err == nil && ip.IsUnspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}
