package operation

import (
	"context"

	"github.com/claudeops/claudeops/internal/records/record"
)

// Caller says who calls, and how to reach them while they wait.
type Caller struct {
	record.Actor
	// TokenHash is that of the token that was shown, or by which the person is signed in; "" for none. What is made
	// with it ends with it.
	TokenHash string
	// Progress, if not nil, is told of each phase of a creation as it begins, and while a write takes long. It is never
	// called by two at once.
	Progress func(phase string)
	// Recheck asks the door again whether it would let the caller in, with no fewer rights than the call began with. nil
	// at doors without a credential, such as the command line. See Admitted.
	Recheck func(ctx context.Context) error
}

// Admitted is asked after a call has waited for whatever it waits for, and before its first write: the credential may
// have been revoked or have expired meanwhile, its rights may have been lowered, or the connection may have been cut
// off. The error is unauthenticated, forbidden or tier_denied then, and nothing may be written. If nobody can be asked,
// the error says so.
//
// It may write to the records, so it is not to be called within one of their transactions.
func (c Caller) Admitted(ctx context.Context) error {
	if c.Recheck == nil {
		return nil
	}
	return c.Recheck(ctx)
}
