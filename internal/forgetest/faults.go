package forgetest

import (
	"context"

	"github.com/claudeops/claudeops/internal/fault"
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
	MethodSetBody         = "SetBody"
	MethodLastRemark      = "LastRemark"
	MethodOpenOurs        = "OpenOurs"
	MethodOurBranches     = "OurBranches"
	MethodReadCommit      = "ReadCommit"
	MethodWithdraw        = "Withdraw"
)

// faults are what waits for the next calls of one method. Each call takes the first of each kind.
type faults struct {
	failBefore, failAfter []error
	before, after         []func()
	gates                 []gate
}

type gate struct{ entered, released chan struct{} }

// FailBefore makes the next call of the method fail before it does anything.
func (f *Fake) FailBefore(method string, err *fault.Error) {
	f.locked(func() { w := f.waiting(method); w.failBefore = append(w.failBefore, err) })
}

// FailAfter makes the next call of the method do its work and then fail with upstream_error, as when the connection
// drops before the answer arrives: an ambiguous failure.
func (f *Fake) FailAfter(method string) {
	err := fault.New(fault.UpstreamError, "the connection dropped before the answer arrived")
	f.locked(func() { w := f.waiting(method); w.failAfter = append(w.failAfter, err) })
}

// Before runs do before the next call of the method does its work: what somebody else does meanwhile. do may use the
// Fake.
func (f *Fake) Before(method string, do func()) {
	f.locked(func() { w := f.waiting(method); w.before = append(w.before, do) })
}

// After runs do after the next call of the method has done its work and before it returns. do may use the Fake.
func (f *Fake) After(method string, do func()) {
	f.locked(func() { w := f.waiting(method); w.after = append(w.after, do) })
}

// Block makes the next call of the method wait, before it does its work, until release is called or its context ends.
// entered is closed when the call has arrived. release must be called once.
func (f *Fake) Block(method string) (entered <-chan struct{}, release func()) {
	g := gate{make(chan struct{}), make(chan struct{})}
	f.locked(func() { w := f.waiting(method); w.gates = append(w.gates, g) })
	return g.entered, func() { close(g.released) }
}

// waiting is the faults of a method. The caller holds the lock.
func (f *Fake) waiting(method string) *faults {
	if f.faults[method] == nil {
		f.faults[method] = &faults{}
	}
	return f.faults[method]
}

// call is how every method runs: it is counted, meets its faults, and acts under the lock.
func (f *Fake) call(ctx context.Context, method string, act func() error) error {
	f.mu.Lock()
	f.calls = append(f.calls, method)
	w := f.waiting(method)
	before, after := take(&w.before), take(&w.after)
	failBefore, failAfter, g := take(&w.failBefore), take(&w.failAfter), take(&w.gates)
	f.mu.Unlock()

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
	f.host.Locked(func() { err = act() })
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
