package fault_test

import (
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
)

func TestWhatIsKnownAfterAFailure(t *testing.T) {
	for code, want := range map[fault.Code]struct{ ambiguous, refusal bool }{
		fault.UpstreamError:    {ambiguous: true},
		fault.Timeout:          {ambiguous: true},
		fault.Internal:         {ambiguous: true},
		fault.Misconfigured:    {ambiguous: true},
		fault.RateLimited:      {},
		fault.ProviderDisabled: {},
		fault.Conflict:         {refusal: true},
		fault.DuplicatePR:      {refusal: true},
		fault.NotFound:         {refusal: true},
		fault.LimitReached:     {refusal: true},
		fault.CodeOf(nil):      {},
	} {
		if code.Ambiguous() != want.ambiguous || code.Refusal() != want.refusal {
			t.Errorf("%q: ambiguous %v, refusal %v; want %+v", code, code.Ambiguous(), code.Refusal(), want)
		}
	}
}
