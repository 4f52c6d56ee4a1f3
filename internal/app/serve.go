package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/agents/session"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/auditsink"
	"github.com/claudeops/claudeops/internal/system/processtree"
	"github.com/claudeops/claudeops/internal/web"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// drainBound limits how long a server that was told to end waits for pending requests. What they leave unfinished is
// settled by the next process, as after any kill.
const drainBound = 30 * time.Second

// announceBound is how long a start waits for what the log is to have before the address.
const announceBound = 2 * time.Second

// RunServe serves dashboard and REST until ctx is done.
func RunServe(ctx context.Context, a *App) error {
	pace := pacedCollector()
	p := a.Wire(Needs{Log: logQueued})
	LogUnknownToolsets(ctx, a, p)
	if err := refuseGuesses(a, p); err != nil {
		return err
	}
	start := newStart(p)
	var listeners []net.Listener
	var own httpx.Own
	err := start.wait(ctx, func() (err error) {
		listeners, own, err = listenFor(ctx, p)
		return err
	})
	if err != nil {
		return unlessStopped(ctx, err)
	}
	at, in, tokens := listeners[0].Addr(), NewSignIn(p), AgentTokens(p)
	ready, err := makeReady(ctx, p, start, listeners, in, tokens)
	if err != nil {
		return unlessStopped(ctx, errors.Join(err, closeAll(listeners)))
	}
	welcome, err := in.welcome(ctx, ready.operator, at)
	if err != nil {
		return errors.Join(err, closeAll(listeners))
	}
	follower := NewFollower(p)
	handler, err := NewWebServer(p, WebToolsets(a), follower, ready.agents, tokens, at, own)
	if err != nil {
		return errors.Join(err, closeAll(listeners))
	}
	told := newServing(ctx, p, in, at)
	heads := announce(ctx, a, p, handler, at, welcome)
	p.notifier.Kick(ctx)
	follower.Begin(ctx)
	defer follower.Finish()
	ctx, end := context.WithCancel(ctx) // also if the server ends by itself
	var background sync.WaitGroup
	defer background.Wait()
	startBackground(ctx, p, &background, func(ctx context.Context) { told.pollRules(ctx, p) }, told.desk.serve,
		handler.KeepVerifying, pace.keepMemory,
		ready.agents.Keep,
		ready.serveTokens, tokens.Keep, heads.Keep)
	defer end()
	return ServeUntil(ctx, p, handler.HTTPServer(), listeners...)
}

// readyServer is what a server has once it can use its records.
type readyServer struct {
	operator    string // the token that the server has made for its operator
	agents      *session.Service
	serveTokens func(context.Context)
}

// makeReady waits for the records, and refuses settings with which the server would let in others than it should, or
// nobody, or could not keep its schedule.
func makeReady(ctx context.Context, p *Parts, start *startWait, listeners []net.Listener, in signIn,
	tokens *gateway.Tokens) (ready readyServer, err error) {
	usable := func() error { return refuseUnusableState(ctx, p) }
	if p.Cfg.Records.Dir != "" {
		err = start.waitBehind(ctx, p.Cfg.Web, listeners, usable)
	}
	for _, step := range []func() error{
		func() (err error) { ready.operator, err = in.ensureOperator(ctx); return err },
		usable,
		func() (err error) { ready.agents, err = servedSessions(ctx, p); return err },
		func() (err error) { ready.serveTokens, err = listenForTokens(ctx, p, tokens); return err },
	} {
		if err == nil {
			err = step()
		}
	}
	return ready, err
}

// collector decides by how much the heap grows until garbage is collected.
type collector struct {
	percent int // as set last; 0: GOGC says it
}

// pacedCollector sets a pace, unless GOGC is set to another value than 100.
func pacedCollector() *collector {
	const usual = 100
	c := &collector{percent: growthOf(liveBytes())}
	if given := debug.SetGCPercent(c.percent); given != usual {
		debug.SetGCPercent(given)
		c.percent = 0
	}
	return c
}

// follow sets the pace anew where the heap has become another.
func (c *collector) follow() {
	if now := growthOf(liveBytes()); c.percent != 0 && now != c.percent {
		debug.SetGCPercent(now)
		c.percent = now
	}
}

// growthOf returns by how many hundredths a heap with live bytes in use grows until garbage is collected: by a third,
// since a server that waits for most of the time has processor time to spare, and shares its machine's memory. A small
// heap grows by minGarbage: it would be collected for every few pages. Steps keep the pace from changing all the time.
func growthOf(live uint64) int {
	const third, most, step, minGarbage = 35, 400, 25, 16 << 20
	growth := min(100*minGarbage/max(live, 1), most)
	return max(third, int(growth/step*step))
}

// A burst is at least burstBytes of new memory between two looks, which are lookForBursts apart.
const (
	burstBytes    = 8 << 20
	lookForBursts = time.Second
)

// keepMemory gives memory back to the system after each burst of work, until ctx is done: many agents at once leave
// grown stacks and much garbage, and no collection is due before the next burst. Meanwhile it follows the heap.
func (c *collector) keepMemory(ctx context.Context) {
	looks := time.NewTicker(lookForBursts)
	defer looks.Stop()
	bursts := burstWatch{last: allocatedBytes()}
	for {
		select {
		case <-ctx.Done():
			return
		case <-looks.C:
		}
		c.follow()
		if bursts.isOver(allocatedBytes()) {
			debug.FreeOSMemory()
		}
	}
}

// burstWatch notices the ends of bursts.
type burstWatch struct {
	last  uint64 // bytes that had been allocated at the last look
	burst bool   // there was a burst before it
}

// isOver reports whether a burst has ended since the last look. allocated is in bytes since the start.
func (w *burstWatch) isOver(allocated uint64) bool {
	before := w.burst
	w.last, w.burst = allocated, allocated-w.last >= burstBytes
	return before && !w.burst
}

// allocatedBytes returns how much memory the process has allocated since its start, freed or not.
func allocatedBytes() uint64 { return readMetric("/gc/heap/allocs:bytes") }

// liveBytes returns how much of the heap was in use when garbage was collected last; 0 before that.
func liveBytes() uint64 { return readMetric("/gc/heap/live:bytes") }

func readMetric(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// unlessStopped returns an error of a start, unless the server was told to end meanwhile.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// announce says where the server listens and how to sign in, below all that was logged so far: the log is written in
// the background. It returns what goes on to log the heads of the audit.
func announce(ctx context.Context, a *App, p *Parts, handler *web.Server, at net.Addr, welcome string) *auditsink.Log {
	if err := handler.Watch(ctx); err != nil {
		p.Log.Warn("attempts are not counted yet", "error", fault.From(err).Message)
	}
	isOn := func(e gitprovider.Registration) bool { return e.Provider != nil }
	if !slices.ContainsFunc(p.Providers.registry.Entries(), isOn) {
		p.Log.Warn("no forge is set up yet: run `claudeops init`, then start this again")
	}
	p.NoteRecords()
	if f := doctor.OtherRecords(p.OtherRecords()); f.Name != "" {
		p.Log.Warn(f.Detail+": "+f.Do, "root", p.Cfg.Forges.LocalRoot)
	}
	heads := headLog(p)
	bound, cancel := context.WithTimeout(ctx, announceBound)
	heads.Catch(bound)
	cancel()
	if flush := a.Options().FlushLog; flush != nil {
		flush()
	}
	fmt.Fprintf(a.Options().Out, "Claude Ops listens on http://%s%s/ (tier %s)\n%s",
		reachable(at), p.Cfg.Web.BasePath, p.Cfg.Permissions.Tier, welcome)
	return heads
}

// startBackground starts what a server does by itself until ctx is done: it keeps the records, looks at open pull
// requests again and again, and does what others ask for.
func startBackground(ctx context.Context, p *Parts, background *sync.WaitGroup, others ...func(context.Context)) {
	keepRecords(ctx, p, background)
	rounds := p.NewRounds()
	background.Go(func() { rounds.Run(ctx, time.Tick(prflow.RoundsTick)) })
	for _, other := range others {
		background.Go(func() { other(ctx) })
	}
}

// reachable returns an address of the listener that this machine can open.
func reachable(at net.Addr) string {
	addr, err := netip.ParseAddrPort(at.String())
	if err != nil || !addr.Addr().IsUnspecified() {
		return at.String()
	}
	return net.JoinHostPort("localhost", strconv.Itoa(int(addr.Port())))
}

// ServeUntil serves until ctx is done, and then lets what was begun end.
func ServeUntil(ctx context.Context, p *Parts, server *http.Server, listeners ...net.Listener) error {
	server.ErrorLog = slog.NewLogLogger(p.Log.Handler(), slog.LevelWarn)
	served := make(chan error, len(listeners))
	for _, listener := range listeners {
		go func() { served <- server.Serve(listener) }()
	}
	select {
	case err := <-served:
		return fault.Wrap(err, fault.Internal, "the server ended by itself: %s", err)
	case <-ctx.Done():
	}
	p.Log.Info("ending: requests under way are answered first", "at_most", drainBound)
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainBound)
	defer cancel()
	if err := server.Shutdown(bound); err != nil {
		p.Log.Warn("requests were cut off", "error", err)
		return server.Close()
	}
	return nil
}

// refuseGuesses refuses settings that cannot be understood where a guess could admit the wrong people or start actions
// by itself: start agents, deploy what was merged.
func refuseGuesses(a *App, p *Parts) error {
	c := p.Cfg.Sessions
	switch {
	case p.Cfg.Web.Problem != "":
		return Usage(errors.New(p.Cfg.Web.Problem))
	case p.Cfg.Tools.Deploy.AfterMerge && !a.enabled(deploy.ToolsetName):
		return Usage(
			errors.New("merges are to be deployed (CLAUDEOPS_DEPLOY_AFTER_MERGE), and CLAUDEOPS_TOOLSETS does not have deploy"))
	case c.Schedule.Problem != "":
		return Usage(errors.New(c.Schedule.Problem))
	case !c.Schedule.Cadence.IsZero() && c.Problem != "":
		return Usage(fmt.Errorf("%s; sessions are scheduled (CLAUDEOPS_INTERVAL), and none could start", c.Problem))
	case !c.Schedule.Cadence.IsZero() && p.Cfg.Records.Dir == "":
		return Usage(fmt.Errorf("%s; sessions are scheduled (CLAUDEOPS_INTERVAL), and none could start",
			p.Cfg.Records.Problem))
	}
	return nil
}

// refuseUnusableState refuses to start with a state folder or a database that only the operator can repair: nothing
// could be recorded, and so nothing be done. A database that is temporarily unavailable is not refused.
func refuseUnusableState(ctx context.Context, p *Parts) error {
	err := servedRecords{p.Store.History, p.Store.Store, stateFolderOf(p.Cfg)}.Ping(ctx)
	if fault.CodeOf(err) == fault.Misconfigured {
		return err
	}
	return nil
}

// portAttempts limits how many ports that the system chose are tried until one is free at both loopback addresses.
const portAttempts = 10

// listenFor listens at the configured address.
func listenFor(ctx context.Context, p *Parts) ([]net.Listener, httpx.Own, error) {
	listeners, own, err := listen(ctx, p.Cfg.Web.Addr)
	if err != nil {
		return nil, own, cannotListen(p.Cfg.Web.Addr, err)
	}
	if own.Why != "" {
		p.Log.Warn("browsers of this machine have no address of their own", "why", own.Why)
	}
	return listeners, own, nil
}

// listen listens at an address. Names below localhost lead a browser to 127.0.0.1 and to ::1, whichever answers first.
// So where one of the two is listened at, the other is as well: another program there would get the login.
func listen(ctx context.Context, addr string) (all []net.Listener, own httpx.Own, err error) {
	for attempt := 1; ; attempt++ {
		first, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
		if err != nil {
			return nil, own, err
		}
		second, own, err := listenBeside(ctx, first.Addr())
		if _, port, _ := net.SplitHostPort(addr); own.Why != "" && port == "0" && attempt < portAttempts {
			err = errors.Join(err, first.Close())
			if err == nil {
				continue
			}
		}
		all = []net.Listener{first}
		if second != nil {
			all = append(all, second)
		}
		return all, own, err
	}
}

// listenBeside listens at the loopback address of the other family, where the first listener leaves it free. On a
// machine without that family no other program can listen there.
func listenBeside(ctx context.Context, at net.Addr) (second net.Listener, own httpx.Own, err error) {
	first, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return nil, own, err
	}
	network, other := "tcp6", netip.IPv6Loopback()
	switch addr := first.Addr().Unmap(); {
	case addr == netip.IPv6Unspecified(): // with IPv4, as Go listens
		return nil, httpx.Own{Names: true}, nil
	case addr == netip.IPv6Loopback():
		network, other = "tcp4", netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case addr == netip.AddrFrom4([4]byte{127, 0, 0, 1}), addr == netip.IPv4Unspecified():
	case addr.IsLoopback():
		return nil, httpx.Own{Why: fmt.Sprintf("Your browser has no address of its own here: names below localhost lead to "+
			"127.0.0.1, and the server listens at %s.", addr)}, nil
	default:
		return nil, own, nil
	}
	beside := net.JoinHostPort(other.String(), strconv.Itoa(int(first.Port())))
	second, err = new(net.ListenConfig).Listen(ctx, network, beside)
	switch {
	case err == nil:
		return second, httpx.Own{Names: true}, nil
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT):
		return nil, httpx.Own{Names: true}, nil
	}
	return nil, httpx.Own{Why: fmt.Sprintf("Your browser has no address of its own here: the server cannot listen at %s, "+
		"where another program may be.", beside)}, nil
}

func closeAll(listeners []net.Listener) (err error) {
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}

// UsageError reports a command that was called wrongly, or with a file, folder or address that it cannot use. It is
// printed without a code; the exit code is 2.
type UsageError struct {
	Err      error
	WaitsFor string // as of a fault.Error; the exit code is 5 then
}

// WaitsFor names the condition that an error waits for and that may come true by itself; "" for other errors, and for
// nil.
func WaitsFor(err error) string {
	var usage UsageError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &usage):
		return usage.WaitsFor
	}
	return fault.From(err).WaitsFor
}

// Usage makes a UsageError of what was wrong.
func Usage(err error) error { return UsageError{Err: err} }

// Error implements error.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap gives what was wrong.
func (e UsageError) Unwrap() error { return e.Err }

// cannotListen says what to do about an address at which no server can listen.
func cannotListen(addr string, err error) error {
	var reason *net.OpError
	if errors.As(err, &reason) {
		err = reason.Err
	}
	what, waitsFor := "correct the address", ""
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && (dns.IsTemporary || dns.IsTimeout):
		what, waitsFor = "names cannot be looked up now: choose an address", "a name server"
	case errors.Is(err, syscall.EADDRINUSE):
		waitsFor = "its address, where another program listens"
		what = cmp.Or(holderOf(addr), "another program") + " listens there: end it, or choose another address"
	case errors.Is(err, syscall.EACCES):
		what = "this user may not: choose a port from 1024"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		waitsFor = "its address, which this machine does not have yet"
		what = "this machine has no such address: choose one of its own"
	}
	err = fmt.Errorf("cannot listen on %s (%w); %s with --addr or CLAUDEOPS_ADDR", addr, err, what)
	return UsageError{Err: err, WaitsFor: waitsFor}
}

// holderOf names the process that listens at an address; "" if it cannot be seen.
func holderOf(addr string) string {
	_, text, err := net.SplitHostPort(addr)
	port, portErr := strconv.Atoi(text)
	if err != nil || portErr != nil {
		return ""
	}
	return processtree.Listener(port)
}
