package forgetest

import (
	"context"
	"slices"
	"sync"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// The methods of a Fake, as Calls names them.
const (
	MethodSnapshot        = "Snapshot"
	MethodCommit          = "Commit"
	MethodOpenPullRequest = "OpenPullRequest"
	MethodLabel           = "Label"
	MethodFindByHead      = "FindByHead"
	MethodBranchTip       = "BranchTip"
	MethodDeleteBranch    = "DeleteBranch"
	MethodListOpen        = "ListOpen"
	MethodStatus          = "Status"
	MethodPing            = "Ping"
	MethodDetails         = "Details"
	MethodOpenOurs        = "OpenOurs"
	MethodOurBranches     = "OurBranches"
	MethodReadCommit      = "ReadCommit"
	MethodReadBlob        = "ReadBlob"
	MethodListFiles       = "ListFiles"
	MethodWithdraw        = "Withdraw"
	MethodClose           = "Close"
	MethodAppend          = "Append"
	MethodSetText         = "SetText"
	MethodComment         = "Comment"
	MethodReply           = "Reply"
	MethodRemarks         = "Remarks"
	MethodChecks          = "Checks"
	MethodReviewStates    = "ReviewStates"
)

// Script records which methods of a Fake were called, and sets what happens at the next calls. It is safe for
// concurrent use.
type Script struct {
	host *memhost.Host

	mu     sync.Mutex // guards what follows
	calls  []string
	faults map[string]*faults
}

// Calls returns the names of the methods that were called, in order, whatever came of them.
func (s *Script) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Count returns how often a method was called.
func (s *Script) Count(method string) int {
	n := 0
	for _, call := range s.Calls() {
		if call == method {
			n++
		}
	}
	return n
}

// Writes returns the number of calls of methods that write: Commit, OpenPullRequest, Label, DeleteBranch, SetText,
// Withdraw, Close, Append, Comment, Reply.
func (s *Script) Writes() int {
	return s.Count(MethodCommit) + s.Count(MethodOpenPullRequest) + s.Count(MethodLabel) + s.Count(MethodDeleteBranch) +
		s.Count(MethodWithdraw) + s.Count(MethodClose) + s.Count(MethodAppend) + s.Count(MethodSetText) +
		s.Count(MethodComment) + s.Count(MethodReply)
}

// Reads returns the number of calls of methods that only read.
func (s *Script) Reads() int { return len(s.Calls()) - s.Writes() }

// ForgetCalls sets all counts to zero.
func (s *Script) ForgetCalls() { s.locked(func() { s.calls = nil }) }

func (s *Script) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// faults wait for the next calls of one method. Each call takes the first of each kind.
type faults struct {
	failBefore, failAfter []error
	before, after         []func()
	gates                 []gate
}

type gate struct{ entered, released chan struct{} }

// FailBefore makes the next call of the method fail before it does anything.
func (s *Script) FailBefore(method string, err *fault.Error) {
	s.locked(func() { w := s.waiting(method); w.failBefore = append(w.failBefore, err) })
}

// FailAfter makes the next call of the method do its work and then fail with upstream_error, as when the connection
// drops before the answer arrives: an ambiguous failure.
func (s *Script) FailAfter(method string) {
	err := fault.New(fault.UpstreamError, "the connection dropped before the answer arrived")
	s.locked(func() { w := s.waiting(method); w.failAfter = append(w.failAfter, err) })
}

// Before runs do before the next call of the method does its work: what somebody else does meanwhile. do may use the
// Fake.
func (s *Script) Before(method string, do func()) {
	s.locked(func() { w := s.waiting(method); w.before = append(w.before, do) })
}

// After runs do after the next call of the method has done its work and before it returns. do may use the Fake.
func (s *Script) After(method string, do func()) {
	s.locked(func() { w := s.waiting(method); w.after = append(w.after, do) })
}

// Block makes the next call of the method wait, before it does its work, until release is called or its context ends.
// entered is closed when the call has arrived. release must be called once.
func (s *Script) Block(method string) (entered <-chan struct{}, release func()) {
	g := gate{make(chan struct{}), make(chan struct{})}
	s.locked(func() { w := s.waiting(method); w.gates = append(w.gates, g) })
	return g.entered, func() { close(g.released) }
}

// waiting returns the faults of a method. The caller holds the lock.
func (s *Script) waiting(method string) *faults {
	if s.faults[method] == nil {
		s.faults[method] = &faults{}
	}
	return s.faults[method]
}

// call runs every method: it is counted, meets its faults, and acts under the lock.
func (s *Script) call(ctx context.Context, method string, act func() error) error {
	s.mu.Lock()
	s.calls = append(s.calls, method)
	w := s.waiting(method)
	before, after := take(&w.before), take(&w.after)
	failBefore, failAfter, g := take(&w.failBefore), take(&w.failAfter), take(&w.gates)
	s.mu.Unlock()

	if before != nil {
		before()
	}
	if g.entered != nil {
		close(g.entered)
		select {
		case <-g.released:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return fault.From(ctx.Err())
	}
	if failBefore != nil {
		return failBefore
	}
	var err error
	s.host.Locked(func() { err = act() })
	if after != nil {
		after()
	}
	if err == nil {
		err = failAfter
	}
	return err
}

// take removes the first element, or gives the zero value.
func take[T any](list *[]T) T {
	var first T
	if len(*list) > 0 {
		first, *list = (*list)[0], (*list)[1:]
	}
	return first
}
