package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
)

// drainBound is how long a server that was told to end waits for requests under way. What they leave when it is over is
// settled by the next process, as after any kill.
const drainBound = 30 * time.Second

func serveCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the dashboard for people and the REST API for programs",
		Long: "serve listens on CLAUDEOPS_ADDR (127.0.0.1:8080 by default) until SIGINT or SIGTERM; then it answers what it has\n" +
			"begun and ends. Every route but the probes needs a token or a login. Where no token was ever made, the first start makes\n" +
			"one, in the state folder, and prints an address that signs a browser in once. With --interval it starts an agent session of tier 1 at that interval. Logs go to stderr, as JSON with\n" +
			"CLAUDEOPS_LOG_FORMAT=json.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runServe(cmd.Context(), a) },
	}
	sessionToolsetsFlag(a, cmd)
	a.flags["CLAUDEOPS_INTERVAL"] = cmd.Flags().String("interval", "",
		"how often to start a session of tier 1, such as 1h; 0 is never (CLAUDEOPS_INTERVAL)")
	a.flags["CLAUDEOPS_ANONYMOUS_READ"] = cmd.Flags().String("anonymous-read", "",
		"let programs on this machine read without a token (CLAUDEOPS_ANONYMOUS_READ)")
	cmd.Flags().Lookup("anonymous-read").NoOptDefVal = "true"
	a.flags["CLAUDEOPS_DEPLOY_AFTER_MERGE"] = cmd.Flags().String("deploy-after-merge", "",
		"deploy what was merged, unless it would replace files that nobody has deployed (CLAUDEOPS_DEPLOY_AFTER_MERGE)")
	cmd.Flags().Lookup("deploy-after-merge").NoOptDefVal = "true"
	return cmd
}

func runServe(ctx context.Context, a *app) error {
	p := a.wire(needs{log: logQueued})
	logUnknownToolsets(ctx, a, p)
	if err := refuseGuesses(a, p); err != nil {
		return err
	}
	in := newSignIn(p)
	operator, err := in.prepare(ctx)
	if err != nil {
		return err
	}
	if err := refuseUnusableState(ctx, p); err != nil {
		return err
	}
	agents, err := servedSessions(ctx, p)
	if err != nil {
		return err
	}
	tokens := agentTokens(p)
	serveTokens, err := listenForTokens(ctx, p, tokens)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", p.cfg.Web.Addr)
	if err != nil {
		return cannotListen(p.cfg.Web.Addr, err)
	}
	welcome, err := in.welcome(ctx, operator, listener.Addr())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	follower := newFollower(p)
	handler, err := newWebServer(p, webToolsets(a), follower, agents, tokens, listener.Addr())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	p.notifier.Kick(ctx)
	follower.Begin(ctx)
	defer follower.Finish()
	ctx, end := context.WithCancel(ctx) // also if the server ends by itself
	var background sync.WaitGroup
	defer background.Wait()
	keepUp(ctx, p, &background, handler.KeepVerifying, agents.Keep, serveTokens, tokens.Keep)
	if err := handler.Watch(ctx); err != nil {
		p.log.Warn("attempts are not counted yet", "error", fault.From(err).Message)
	}
	fmt.Fprintf(a.streams.Out, "Claude Ops listens on http://%s%s/ (tier %s)\n%s",
		reachable(listener.Addr()), p.cfg.Web.BasePath, p.cfg.Permissions.Tier, welcome)
	defer end()
	return serveUntil(ctx, p, handler.HTTPServer(), listener)
}

// keepUp starts what a server does by itself until ctx is done: it keeps the records, looks at open pull requests again and again, and
// does what others ask for.
func keepUp(ctx context.Context, p *parts, background *sync.WaitGroup, others ...func(context.Context)) {
	keepRecords(ctx, p, background)
	rounds := prflow.NewRounds(p.flow, roundRecords{p.store.Rounds, p.store.History})
	background.Go(func() { rounds.Run(ctx, time.Tick(prflow.RoundsTick)) })
	for _, other := range others {
		background.Go(func() { other(ctx) })
	}
}

// reachable is an address of the listener that this machine can open.
func reachable(at net.Addr) string {
	addr, err := netip.ParseAddrPort(at.String())
	if err != nil || !addr.Addr().IsUnspecified() {
		return at.String()
	}
	return net.JoinHostPort("localhost", strconv.Itoa(int(addr.Port())))
}

// run serves until ctx is done, and then lets what was begun end.
func serveUntil(ctx context.Context, p *parts, server *http.Server, listener net.Listener) error {
	server.ErrorLog = slog.NewLogLogger(p.log.Handler(), slog.LevelWarn)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fault.Wrap(err, fault.Internal, "the server ended by itself: %s", err)
	case <-ctx.Done():
	}
	p.log.Info("ending: requests under way are answered first", "at_most", drainBound)
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainBound)
	defer cancel()
	if err := server.Shutdown(bound); err != nil {
		p.log.Warn("requests were cut off", "error", err)
		return server.Close()
	}
	return nil
}

// refuseGuesses refuses settings that cannot be understood, where a guess would let in whom nobody meant, or do things by itself: start
// agents, deploy what was merged.
func refuseGuesses(a *app, p *parts) error {
	c := p.cfg.Sessions
	switch {
	case p.cfg.Web.Problem != "":
		return usageError{errors.New(p.cfg.Web.Problem)}
	case p.cfg.Tools.Deploy.AfterMerge && !a.enabled(deploy.ToolsetName):
		return usageError{errors.New("merges are to be deployed (CLAUDEOPS_DEPLOY_AFTER_MERGE), and CLAUDEOPS_TOOLSETS does not have deploy")}
	case c.Schedule.Problem != "":
		return usageError{errors.New(c.Schedule.Problem)}
	case c.Schedule.Interval > 0 && c.Problem != "":
		return usageError{fmt.Errorf("%s; sessions are scheduled (CLAUDEOPS_INTERVAL), and none could start", c.Problem)}
	case c.Schedule.Interval > 0 && p.cfg.Records.Dir == "":
		return usageError{fmt.Errorf("%s; sessions are scheduled (CLAUDEOPS_INTERVAL), and none could start", p.cfg.Records.Problem)}
	}
	return nil
}

// refuseUnusableState refuses to start with a state folder or a database that only the operator can mend: nothing could be
// recorded, and so nothing be done. A database that is away for a while is none of these.
func refuseUnusableState(ctx context.Context, p *parts) error {
	err := servedRecords{p.store.History, p.store.Store, stateFolderOf(p.cfg)}.Ping(ctx)
	if fault.CodeOf(err) == fault.Misconfigured {
		return err
	}
	return nil
}
