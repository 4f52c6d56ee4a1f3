package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/session"
	"github.com/claudeops/claudeops/internal/web"
)

// drainBound is how long a server that was told to end waits for requests under way. What they leave when it is over is
// settled by the next process, as after any kill.
const drainBound = 30 * time.Second

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the dashboard for people and the REST API for programs",
		Long: "serve listens on CLAUDEOPS_ADDR (127.0.0.1:8080 by default) until SIGINT or SIGTERM; then it answers what it has\n" +
			"begun and ends. On an address that other machines can reach it starts only if callers have to show who they are; see\n" +
			"claudeops token. With --interval it starts an agent session of tier 1 at that interval. Logs go to stderr, as JSON with\n" +
			"CLAUDEOPS_LOG_FORMAT=json.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context()) },
	}
	a.flags["CLAUDEOPS_INTERVAL"] = cmd.Flags().String("interval", "",
		"how often to start a session of tier 1, such as 1h; 0 is never (CLAUDEOPS_INTERVAL)")
	return cmd
}

func (a *app) serve(ctx context.Context) error {
	p := a.wire()
	if problem := p.cfg.Web.Problem; problem != "" {
		return usageError{errors.New(problem)}
	}
	if err := p.refuseGuessedSchedule(); err != nil {
		return err
	}
	if err := p.refuseOpenDoor(ctx); err != nil {
		return err
	}
	if err := p.refuseUnusableState(ctx); err != nil {
		return err
	}
	session.Conceal() // agents that it starts run as the same user
	agents, err := newSessions(p)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", p.cfg.Web.Addr)
	if err != nil {
		return cannotListen(p.cfg.Web.Addr, err)
	}
	flow := newDelivering(p)
	defer flow.finish(ctx)
	follower := p.follower(flow)
	handler, err := p.webServer(flow, follower, agents, listener.Addr())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	flow.begin(ctx)
	follower.Begin(ctx)
	defer follower.Finish()
	ctx, end := context.WithCancel(ctx) // also if the server ends by itself
	defer p.inBackground(ctx, handler, agents)()
	if err := handler.Watch(ctx); err != nil {
		p.log.Warn("attempts are not counted yet", "error", fault.From(err).Message)
	}
	if _, err := p.gatekeeper().Anonymous(ctx); err == nil {
		p.log.Warn("no token exists: whoever reaches this address on this machine, an agent included, may read and propose, and nobody " +
			"may review; make one with `claudeops token create --name NAME --scopes propose,review,read`")
	}
	fmt.Fprintf(a.streams.Out, "Claude Ops listens on http://%s%s/ (tier %s)\n",
		reachable(listener.Addr()), p.cfg.Web.BasePath, p.cfg.Tier)
	defer end()
	return p.run(ctx, handler.HTTPServer(), listener)
}

// inBackground does what a server does beside answering, until ctx ends. wait returns when all of it has ended.
func (p *parts) inBackground(ctx context.Context, handler *web.Server, agents *sessions) (wait func()) {
	verified := make(chan struct{})
	go func() {
		defer close(verified)
		handler.KeepVerifying(ctx)
	}()
	all := []chan struct{}{p.settleInBackground(ctx), verified, p.pruneInBackground(ctx), agents.keep(ctx)}
	return func() {
		for _, done := range all {
			<-done
		}
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
func (p *parts) run(ctx context.Context, server *http.Server, listener net.Listener) error {
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

// refuseGuessedSchedule refuses to start agents by themselves on settings that cannot be understood.
func (p *parts) refuseGuessedSchedule() error {
	c := p.cfg.Session
	switch {
	case c.IntervalProblem != "":
		return usageError{errors.New(c.IntervalProblem)}
	case c.Interval > 0 && c.Problem != "":
		return usageError{fmt.Errorf("%s; sessions are scheduled (CLAUDEOPS_INTERVAL), and none could start", c.Problem)}
	case c.Interval > 0 && p.cfg.StateDir == "":
		return usageError{fmt.Errorf("%s; sessions are scheduled (CLAUDEOPS_INTERVAL), and none could start", p.cfg.StateDirProblem)}
	}
	return nil
}

// refuseUnusableState refuses to start with a state folder or a database that only the operator can mend: nothing could be
// recorded, and so nothing be done. A database that is away for a while is none of these.
func (p *parts) refuseUnusableState(ctx context.Context) error {
	if err := p.store.Ping(ctx); fault.CodeOf(err) == fault.Misconfigured {
		return err
	}
	return nil
}

// refuseOpenDoor refuses to listen where other machines can connect as long as nobody has to say who they are.
func (p *parts) refuseOpenDoor(ctx context.Context) error {
	w := p.cfg.Web
	for i, token := range w.Tokens {
		if len(token) < access.MinConfigured {
			p.log.Warn("a token of CLAUDEOPS_API_TOKENS is too short: it is never accepted", "position", i, "at_least", access.MinConfigured)
		}
	}
	addr, err := net.DefaultResolver.LookupNetIP(ctx, "ip", w.Host())
	local := w.Host() != "" && err == nil && len(addr) > 0
	for _, ip := range addr {
		local = local && ip.Unmap().IsLoopback()
	}
	if local {
		return nil
	}
	p.log.Warn("other machines can reach the server, and it speaks plain HTTP: let a proxy in front of it speak TLS", "address", w.Addr)
	usable := func(t string) bool { return len(t) >= access.MinConfigured }
	if w.ProxyUserHeader != "" || slices.ContainsFunc(w.Tokens, usable) {
		return nil
	}
	tokens, err := p.store.Tokens(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(tokens, func(t access.Token) bool { return t.RevokedAt.IsZero() }) {
		return nil
	}
	return usageError{fmt.Errorf("other machines can reach %s, and no token is configured, so the server does not start; make one "+
		"with `claudeops token create --name NAME --scopes read`, set CLAUDEOPS_API_TOKENS to at least %d characters, or listen on %s",
		w.Addr, access.MinConfigured, net.JoinHostPort("127.0.0.1", portOf(w.Addr)))}
}

func portOf(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "8080"
	}
	return port
}
