package prflow

import "github.com/claudeops/claudeops/internal/gitprovider"

// AtMost is the same use case under a lower ceiling: its tier is the lower one of the Service's own and the given one,
// and a value that is no tier counts as tier 1. A door asks for it on behalf of a credential that the operator has
// limited, so authority still comes from configuration alone, and nothing can raise it. Both share everything else, what
// other processes left and was looked for included.
func (s *Service) AtMost(ceiling gitprovider.Tier) *Service {
	if ceiling >= s.Tier {
		return s
	}
	lower := &Service{Options: s.Options, resumed: s.resumed}
	lower.Tier = max(ceiling, gitprovider.TierObserve)
	return lower
}
