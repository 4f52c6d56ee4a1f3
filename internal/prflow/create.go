package prflow

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/record"
)

// CreateResult is the answer to a proposal (design §4). In a dry run Number is 0 and URL empty.
type CreateResult struct {
	Number   int      `json:"number,omitempty"`
	URL      string   `json:"url,omitempty"`
	Branch   string   `json:"branch"`
	Commit   string   `json:"commit,omitempty"`
	Files    []string `json:"files"`
	Reused   bool     `json:"reused,omitempty" doc:"The same change was open already"`
	DryRun   bool     `json:"dry_run,omitempty" doc:"Nothing was written"`
	Warnings []string `json:"warnings,omitempty"`
	Preview  *Preview `json:"preview,omitempty"`

	RequestID string `json:"-"`
}

// Created reports whether a pull request was opened: by none of a dry run, and of one that was open already.
func (r CreateResult) Created() bool { return !r.DryRun && !r.Reused }

// creation is one run of the pipeline.
type creation struct {
	*Service
	caller    operation.Caller
	started   time.Time
	requestID string
	action    string // of the audit
	pinned    string // provider that the repository is known to be at; "" to find it out

	req         CreateRequest
	repo        gitprovider.RepoRef
	changes     gitprovider.ChangeSet // empty unless tier and scope agree
	resolution  gitprovider.Resolution
	snapshot    *gitprovider.Snapshot
	seen        record.Position // where the record stood before the snapshot was taken
	branch      string
	commit      string
	leaving     leaving
	title, body string // as they leave: rewritten, with the footer
	redirects   string // what the change does to the manifest's section Git Provider; "" for nothing
	filesDigest string
	digest      string

	marks    map[int]mark // the true marks of the snapshot's pull requests, by number
	verdicts []record.Verdict
	warnings []string
	// foreignWarnings are those of warnings that are about pull requests of others.
	foreignWarnings []string
	recorded        bool        // the attempt is in the audit already
	reserved        bool        // the files are held by the record of this proposal, which nobody has ended yet
	heir            bool        // the branch was named by an earlier proposal of ours, whose place this one has taken
	telling         *sync.Mutex // held while the caller is told how far this is

	nothingLate bool // a look after an ambiguous failure has shown that the write had no effect, and will have none
}

// Create proposes a change. raw is the JSON object of a CreateRequest, decoded here so that every door is equally
// strict. Every call leaves one attempt in the audit; if it cannot be recorded, nothing is proposed.
//
// The error is a *fault.Error with any code of the contract. RequestID in the result names the attempt; for an error
// use operation.RequestIDOf.
func (s *Service) Create(ctx context.Context, caller operation.Caller, raw []byte) (CreateResult, error) {
	defer s.notify(ctx)
	c := s.newCreation(caller, record.ActionCreate)
	return c.attempted(ctx, func() (CreateResult, error) { return c.run(ctx, raw) })
}

func (s *Service) newCreation(caller operation.Caller, action string) *creation {
	return &creation{
		Service: s, caller: caller, started: s.Now(), requestID: s.NewID(), action: action, telling: new(sync.Mutex),
	}
}

// attempted runs the pipeline, and records it if it fails.
func (c *creation) attempted(ctx context.Context, run func() (CreateResult, error)) (CreateResult, error) {
	result, err := c.guarded(ctx, run)
	if err != nil {
		err = c.fail(ctx, err)
	}
	result.RequestID = c.requestID
	return result, err
}

// guarded turns a panic into an error, so that the attempt is recorded like any other. A proposal that may have written
// something by then is left to be settled.
func (c *creation) guarded(ctx context.Context, run func() (CreateResult, error)) (result CreateResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.Log.Error("panic in a creation", "request_id", c.requestID, "panic", p, "stack", string(debug.Stack()))
			if c.reserved {
				c.leaveUnsettled(ctx)
			}
			result, err = CreateResult{}, fault.From(fmt.Errorf("panic: %v", p))
		}
	}()
	return run()
}

func (c *creation) run(ctx context.Context, raw []byte) (CreateResult, error) {
	c.resumeOnce(ctx)
	if err := c.gates(ctx, raw); err != nil {
		return CreateResult{}, err
	}
	if err := c.dress(); err != nil {
		return CreateResult{}, err
	}
	c.progress("checking for duplicates")
	reused, err := c.remoteRules(ctx)
	switch {
	case err != nil:
		return CreateResult{}, err
	case reused != nil:
		return c.reuse(ctx, *reused)
	case c.DryRun:
		return c.dryRun(ctx)
	}
	return c.write(ctx)
}

func (c *creation) progress(phase string) {
	c.telling.Lock()
	defer c.telling.Unlock()
	if c.caller.Progress != nil {
		c.caller.Progress(phase)
	}
}
