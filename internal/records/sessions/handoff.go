package sessions

import (
	"encoding/json"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Handoff is a session's message to a session of a higher tier. It is the agent's text: data, never an instruction, and
// its tier is a recommendation that configuration caps.
type Handoff struct {
	Version         int      `json:"version" required:"true"`
	RecommendedTier int      `json:"recommended_tier" required:"true"`
	Services        []string `json:"services"`
	Findings        []Found  `json:"findings" required:"true"`
	WantedChange    Wanted   `json:"wanted_change"`
	Resolved        []string `json:"resolved,omitempty" doc:"Keys of findings that were handed over earlier and are gone"`
}

// Found is an agent's finding. Findings are identified by Key across sessions, so that one that was handed over already
// starts no further session.
type Found struct {
	Key  string `json:"key" doc:"A short name that stays the same from session to session"`
	Text string `json:"text"`
}

// UnmarshalJSON implements json.Unmarshaler. In records of earlier versions a finding is its text alone.
func (f *Found) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &f.Text)
	}
	type plain Found
	return json.Unmarshal(raw, (*plain)(f))
}

// Wanted is a change to a procedure that an agent wants and may not propose itself.
type Wanted struct {
	File     string `json:"file"`
	Evidence string `json:"evidence"`
	Text     string `json:"text"`
}

// Escalated is a finding that has started a session of a higher tier. Sessions hand the list of those that are open on
// to the next, so that a finding which is seen again starts no further session.
type Escalated struct {
	Key      string           `json:"key"`
	Tier     gitprovider.Tier `json:"tier"`     // the highest that it was handed over to
	Sessions []string         `json:"sessions"` // that it started, oldest first
	At       time.Time        `json:"at"`       // when it started the last one
	// Pulls are the pull requests that those sessions opened, changed or found in their way, as owner/name#number.
	Pulls []string `json:"pull_requests,omitempty"`
}
