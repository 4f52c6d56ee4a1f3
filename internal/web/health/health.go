// Package health finds out how this server is: what doctor says, whether the audit is whole, and whether the providers
// answer. All of it together is one value, Health, which pages, probes, REST and metrics read, so that no two of them
// contradict each other. Finding out is expensive, and anybody may ask, so that an answer may be a while old.
package health

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/views"
)

// How old what doctor has found may be for those who wait for it, and for those who do not.
const (
	doctorAge  = 10 * time.Second
	refreshAge = 30 * time.Second
)

// Health describes the state of this server: each part once, with the worst finding about it.
type Health struct {
	Parts []doctor.Finding
	At    time.Time // when doctor looked; zero: not yet
}

// CanOpen reports whether nothing stops a pull request.
func (h Health) CanOpen() bool { return len(doctor.Blocking(h.Parts)) == 0 }

// Of returns the parts with a status, those that stop pull requests first.
func (h Health) Of(status string) (out []doctor.Finding) {
	for _, f := range h.Parts {
		if f.Status == status {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b doctor.Finding) int {
		switch {
		case a.Blocks == b.Blocks:
			return 0
		case a.Blocks:
			return -1
		}
		return 1
	})
	return out
}

// Headline returns all of it in a few words, with the tone of the style sheet: "good", "bad" or "" for not known.
func (h Health) Headline() (text, tone string) {
	broken := h.Of(doctor.Problem)
	switch {
	case len(broken) == 1:
		return broken[0].Headline(), "bad"
	case len(broken) > 1:
		return fmt.Sprintf("%s, and %d more", broken[0].Headline(), len(broken)-1), "bad"
	case h.At.IsZero():
		return "Not looked at yet", ""
	}
	return "Healthy", "good"
}

// Answer says whether pull requests can be opened, in one sentence, with the tone of the style sheet: "yes", "held"
// where only the operator's choice stops them, or "no".
func (h Health) Answer() (text, tone string) {
	broken, held := h.Of(doctor.Problem), h.Of(doctor.Held)
	stopped := doctor.Blocking(h.Parts)
	switch {
	case len(doctor.Blocking(broken)) > 0:
		return "Pull requests are stopped: " + strings.Join(stopped, ", ") + ".", "no"
	case len(stopped) > 0 && len(broken) > 0:
		return "No pull request is opened here, as the operator has chosen, and something else is broken.", "no"
	case len(stopped) > 0 || len(held) > 0:
		return "No pull request is opened here, as the operator has chosen.", "held"
	case len(broken) > 0:
		return "Pull requests can be opened, and something else is broken.", "no"
	}
	return "Nothing here would stop a pull request.", "yes"
}

// Options configures a Checker. All fields are required except ComparePulls and Stamp.
type Options struct {
	// Doctor says what it finds of everything but whether the audit is whole and the providers answer.
	Doctor func(ctx context.Context) []doctor.Finding
	// Stamp changes when doctor has to look anew, whenever it last looked; nil: never.
	Stamp func() string
	Audit views.Audit
	// ComparePulls compares the audit with the marks of pull requests at the providers; nil: that cannot be asked.
	ComparePulls func(ctx context.Context) ([]record.HeadCheck, error)
	Registry     *gitprovider.Registry
	Env          httpx.Env
}

// Checker finds out how this server is. It is safe for concurrent use.
type Checker struct {
	doctor   func(ctx context.Context) []doctor.Finding
	stamp    func() string
	audit    views.Audit
	compare  func(ctx context.Context) ([]record.HeadCheck, error)
	registry *gitprovider.Registry
	env      httpx.Env

	verifying, looking, pinging *httpx.Turns // of reading the whole record, of doctor, of asking the providers

	mu         sync.Mutex
	verified   lastVerification
	found      []doctor.Finding // by doctor
	foundAt    time.Time
	foundFor   string          // the stamp then
	providers  []ProviderState // what they said last
	pingedAt   time.Time
	judged     []doctor.Finding // all parts, without since when
	health     Health           // the same, with it
	since      map[string]change
	version    int64     // changes with the parts that are not as they should be
	refreshing bool      // somebody looks in the background
	refreshed  time.Time // when somebody began to
}

// change records since when a part has its present state.
type change struct {
	status, title string
	at            time.Time
}

// New makes a Checker that has found out nothing yet.
func New(o Options) *Checker {
	if o.Stamp == nil {
		o.Stamp = func() string { return "" }
	}
	return &Checker{
		doctor: o.Doctor, stamp: o.Stamp, audit: o.Audit, compare: o.ComparePulls, registry: o.Registry, env: o.Env,
		verifying: httpx.NewTurns(
			1,
		), looking: httpx.NewTurns(1), pinging: httpx.NewTurns(1), since: map[string]change{},
	}
}

// updateHealth computes the health from the findings. It is called, under the lock, after any of them has changed.
func (c *Checker) updateHealth() {
	var parts []doctor.Finding
	parts = append(parts, c.found...)
	for _, p := range c.providers {
		parts = append(parts, p.findings()...)
	}
	last := c.verified.last
	v := doctor.Verified{Known: last.Known, Report: last.Report, Failure: last.Failure}
	v.Report.Problem = c.env.Redact(v.Report.Problem)
	parts = doctor.Merge(append(parts, doctor.AuditState(v)))
	c.health.At = c.foundAt
	if slices.Equal(parts, c.judged) {
		return
	}
	if !slices.Equal(wrong(parts), wrong(c.judged)) {
		c.version++
	}
	c.judged, c.health.Parts = parts, slices.Clone(parts)
	now := c.env.Now().UTC()
	for i, f := range parts {
		began := c.since[f.Name]
		if began.status != f.Status || began.title != f.Title {
			began = change{f.Status, f.Title, now}
			c.since[f.Name] = began
		}
		c.health.Parts[i].Since = &began.at
	}
}

// wrong returns the parts that pages show where they do not show all.
func wrong(parts []doctor.Finding) (out []doctor.Finding) {
	for _, f := range parts {
		if f.Status != doctor.OK && f.Status != doctor.Off {
			out = append(out, f)
		}
	}
	return out
}

// Now returns the last known health. It looks first if there was no look yet, or the operator's rules have changed;
// otherwise it does not wait.
func (c *Checker) Now(ctx context.Context) Health {
	stamp := c.stamp()
	c.mu.Lock()
	known, h := !c.foundAt.IsZero() && c.foundFor == stamp, c.health
	c.mu.Unlock()
	if known {
		return h
	}
	if err := c.refreshFindings(ctx); err != nil {
		c.env.Log.Warn("doctor did not look", "error", c.env.Redact(err.Error()))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.health
}

// Check returns the health now: doctor looks, and the providers are asked, unless that was just done.
func (c *Checker) Check(ctx context.Context) (Health, error) {
	if err := c.refreshFindings(ctx); err != nil {
		return Health{}, err
	}
	if _, err := c.Providers(ctx); err != nil {
		return Health{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.health, nil
}

// refreshFindings has doctor look, unless it has looked less than doctorAge ago and the rules have not changed since.
func (c *Checker) refreshFindings(ctx context.Context) error {
	done, err := c.looking.Wait(ctx)
	if err != nil {
		return err
	}
	defer done()
	stamp := c.stamp()
	began := c.env.Now().UTC() // what happens while doctor looks may be missing from what it finds
	c.mu.Lock()
	fresh := isRecent(began, c.foundAt, doctorAge) && c.foundFor == stamp
	c.mu.Unlock()
	if fresh {
		return nil
	}
	found := c.doctor(context.WithoutCancel(ctx)) // the answer is for those who come next, too
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found, c.foundAt, c.foundFor = found, began, stamp
	c.updateHealth()
	return nil
}

// isRecent reports whether something is less than an age ago.
func isRecent(now, at time.Time, age time.Duration) bool {
	return !at.IsZero() && !now.Before(at) && now.Sub(at) < age
}

// Version returns a number that changes whenever a part does that is, or was, not as it should be. It waits for
// nothing, but has somebody look meanwhile if that was long ago, so that everything is looked at while somebody looks
// at pages.
func (c *Checker) Version(context.Context) (int64, error) {
	stamp := c.stamp()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.env.Now(); !c.refreshing && (!isRecent(now, c.refreshed, refreshAge) || c.foundFor != stamp) {
		c.refreshing, c.refreshed = true, now
		go c.refresh()
	}
	return c.version, nil
}

// refresh looks in the background. Asking the providers takes pingBound at most.
func (c *Checker) refresh() {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.refreshing = false
	}()
	if _, err := c.Check(context.Background()); err != nil {
		c.env.Log.Warn("the health was not looked at", "error", c.env.Redact(err.Error()))
	}
}

// Bounds on the cost of asking the providers: they are asked concurrently, each within pingBound, and at most once per
// pingAge. Anybody may ask us, so many questions must not become many requests.
const (
	pingBound = 2 * time.Second
	pingAge   = 30 * time.Second
)

// The values of ProviderState.State.
const (
	stateAnswers  = "ok"
	stateDisabled = "disabled"
	stateDown     = "down"
)

// ProviderState says whether a provider serves us. Why not stays in the log, but for the code.
type ProviderState struct {
	Name    string     `json:"name"`
	State   string     `json:"state" enum:"ok,disabled,down"`
	Code    fault.Code `json:"code,omitempty" doc:"What a call would be answered with, for one that is down"`
	queried bool
}

// findings returns the finding about the provider's answer; nothing if it was not asked.
func (p ProviderState) findings() []doctor.Finding {
	switch {
	case p.State == stateDown:
		return []doctor.Finding{doctor.ProviderDown(p.Name, p.Code,
			"its changes are shown as they were seen last; the log says why")}
	case p.queried:
		return []doctor.Finding{doctor.ProviderUp(p.Name)}
	}
	return nil
}

// Providers returns the providers' last answers, or new ones if those are too old.
func (c *Checker) Providers(ctx context.Context) ([]ProviderState, error) {
	done, err := c.pinging.Wait(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	began := c.env.Now()
	c.mu.Lock()
	fresh, states := isRecent(began, c.pingedAt, pingAge), c.providers
	c.mu.Unlock()
	if fresh {
		return states, nil
	}
	states = c.pingProviders(context.WithoutCancel(ctx)) // the answer is for those who come next, too
	c.mu.Lock()
	defer c.mu.Unlock()
	c.providers, c.pingedAt = states, began
	c.updateHealth()
	return states, nil
}

// pingProviders asks all that are enabled at once.
func (c *Checker) pingProviders(ctx context.Context) []ProviderState {
	ctx, cancel := context.WithTimeout(ctx, pingBound)
	defer cancel()
	entries := c.registry.Entries()
	out := make([]ProviderState, len(entries))
	var wg sync.WaitGroup
	for i, entry := range entries {
		out[i] = ProviderState{Name: entry.Name, State: stateDisabled}
		if entry.Provider != nil {
			wg.Go(func() { out[i] = c.pingProvider(ctx, entry) })
		}
	}
	wg.Wait()
	return out
}

func (c *Checker) pingProvider(ctx context.Context, entry gitprovider.Registration) ProviderState {
	state := ProviderState{Name: entry.Name, State: stateAnswers}
	pinger, can := entry.Provider.(gitprovider.Pinger)
	if !can {
		return state
	}
	state.queried = true
	if err := pinger.Ping(ctx); err != nil {
		e := fault.From(err)
		state.State, state.Code = stateDown, e.Code
		c.env.Log.Warn("a provider does not serve us", "provider", entry.Name, "code", e.Code, "error",
			c.env.Redact(httpx.Cause(e)))
	}
	return state
}

// How often the audit is verified behind the pages: what was added since, and all of it.
const (
	addedInterval = 5 * time.Minute
	wholeInterval = 24 * time.Hour
)

// Verification is the result of verifying the audit.
type Verification struct {
	Known   bool // there is a Report
	Report  record.AuditReport
	Failure string    // why the last one could not be made, or ""
	At      time.Time // of the last one
}

// lastVerification is the last verification. Pages show it with its age and never wait for a new one.
type lastVerification struct {
	last    Verification
	expect  string    // head of the last one that found the audit whole; it must stay in the chain
	wholeAt time.Time // of the last one that began with the first row; zero if the next one has to
}

func (m *lastVerification) recordVerification(report record.AuditReport, err error, whole bool, now time.Time) {
	m.last.At, m.last.Failure = now, ""
	if err != nil {
		m.last.Failure = fault.From(err).Message
		return
	}
	m.last.Known, m.last.Report = true, report
	if whole {
		m.wholeAt = now
	}
	if report.OK() {
		m.expect = report.Head
	} else {
		m.wholeAt = time.Time{}
	}
}

// verifyFrom returns the report to go on from, the head to expect, and whether all has to be read again: daily, and as
// long as something is wrong.
func (m *lastVerification) verifyFrom(now time.Time) (known record.AuditReport, expect string, whole bool) {
	return m.last.Report, m.expect, m.wholeAt.IsZero() || now.Sub(m.wholeAt) >= wholeInterval
}

// KeepVerifying verifies the audit now and then again and again, until ctx ends.
func (c *Checker) KeepVerifying(ctx context.Context) {
	ticker := time.NewTicker(addedInterval)
	defer ticker.Stop()
	for {
		c.VerifyOnce(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// VerifyOnce verifies what was added to the audit since the last time, or all of it if that is due. A whole
// verification also expects the last head, so that rows that were cut off and written anew are noticed.
func (c *Checker) VerifyOnce(ctx context.Context) {
	done, err := c.verifying.Wait(ctx)
	if err != nil {
		return
	}
	defer done()
	c.mu.Lock()
	known, expect, whole := c.verified.verifyFrom(c.env.Now())
	c.mu.Unlock()
	var report record.AuditReport
	if whole {
		report, err = c.audit.Verify(ctx, expect)
	} else {
		report, err = c.audit.VerifyAfter(ctx, known)
	}
	if ctx.Err() != nil {
		return
	}
	c.recordVerification(report, err, whole)
	if err != nil || !report.OK() {
		c.env.Log.Error("the audit is not known to be whole", "problem", c.env.Redact(report.Problem), "first_bad",
			report.FirstBad, "error", err)
	}
}

func (c *Checker) recordVerification(report record.AuditReport, err error, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verified.recordVerification(report, err, whole, c.env.Now())
	c.updateHealth()
}

// LastVerification returns the last verification of the audit. It waits for none.
func (c *Checker) LastVerification() Verification {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.verified.last
}

// VerifyAudit verifies the whole audit now, which also must contain the head, if one is given, and agree with the marks
// of pull requests at the providers, if pulls is true. Others wait meanwhile.
func (c *Checker) VerifyAudit(ctx context.Context, expectHead string, pulls bool) (record.AuditReport, error) {
	done, err := c.verifying.Wait(ctx)
	if err != nil {
		return record.AuditReport{}, err
	}
	defer done()
	report, err := c.audit.Verify(ctx, expectHead)
	if err == nil && pulls && c.compare != nil {
		checks, failed := c.compare(ctx)
		report, err = report.Against(checks...), failed
	}
	if err == nil && !report.OK() && expectHead == "" {
		c.recordVerification(report, nil, true) // bad news is for the pages, too
	}
	return report, err
}
