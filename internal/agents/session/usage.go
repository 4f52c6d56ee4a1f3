package session

import (
	"encoding/json"

	"github.com/claudeops/claudeops/internal/records/sessions"
)

// tokens is the usage of one message, in the terms of the API.
type tokens struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
	CacheParts struct {
		Hour int64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
}

// UnmarshalJSON implements json.Unmarshaler. What cannot be read counts as nothing.
func (t *tokens) UnmarshalJSON(text []byte) error {
	type plain tokens
	var p plain
	if json.Unmarshal(text, &p) == nil {
		*t = tokens(p).bounded()
	}
	return nil
}

// maxTokens bounds a number that somebody else tells us.
const maxTokens = 1_000_000_000

func (t tokens) bounded() tokens {
	for _, n := range []*int64{&t.Input, &t.Output, &t.CacheRead, &t.CacheWrite, &t.CacheParts.Hour} {
		*n = min(max(*n, 0), maxTokens)
	}
	return t
}

// atLeast returns t, raised to larger values in a later report of the same message.
func (t tokens) atLeast(later tokens) tokens {
	t.Input, t.Output = max(t.Input, later.Input), max(t.Output, later.Output)
	t.CacheRead, t.CacheWrite = max(t.CacheRead, later.CacheRead), max(t.CacheWrite, later.CacheWrite)
	t.CacheParts.Hour = max(t.CacheParts.Hour, later.CacheParts.Hour)
	return t
}

// meter sums what the messages of a session used.
type meter struct {
	prices   map[string]price
	finished sessions.Usage // without the message that comes now

	message, model string
	now            tokens
}

func newMeter() *meter { return &meter{prices: prices()} }

// see takes news of a message: its first ones say what was read, the last ones how much it wrote.
func (m *meter) see(message, model string, t tokens) {
	if message == "" || message != m.message {
		m.finished = m.total()
		m.message, m.model, m.now = message, model, tokens{}
	}
	m.now = m.now.atLeast(t)
}

// more takes what else is known of the message that comes now.
func (m *meter) more(t tokens) { m.now = m.now.atLeast(t) }

// total returns the sum so far.
func (m *meter) total() sessions.Usage {
	u, t := m.finished, m.now
	if t == (tokens{}) {
		return u
	}
	u.InputTokens += t.Input
	u.OutputTokens += t.Output
	u.CacheReadTokens += t.CacheRead
	u.CacheWriteTokens += t.CacheWrite
	p, known := m.prices[modelVersion(m.model)]
	u.CostUSD += p.of(t)
	if u.CostSource == "" {
		u.CostSource = sessions.CostEstimate
	}
	if !known {
		u.CostSource = sessions.CostUnknown
	}
	return u
}

// finalUsage is the usage of the whole session in the CLI's last message.
type finalUsage struct {
	Cost   float64 `json:"total_cost_usd"`
	Usage  tokens  `json:"usage"`
	Models map[string]struct {
		Input      int64  `json:"inputTokens"`
		Output     int64  `json:"outputTokens"`
		CacheRead  int64  `json:"cacheReadInputTokens"`
		CacheWrite int64  `json:"cacheCreationInputTokens"`
		Basis      string `json:"costBasis"`
	} `json:"modelUsage"`
}

func (m message) final() (f finalUsage) {
	_ = json.Unmarshal(m.text, &f) // what cannot be read is left out
	return f
}

// usage returns the session's usage; false if the CLI does not report it. Its figures by model are complete; the sum
// beside it lacks the last message of a session that reached its limit of cost (2.1.329).
func (f finalUsage) usage() (u sessions.Usage, said bool) {
	u = sessions.Usage{CostUSD: max(f.Cost, 0), CostSource: sessions.CostClient}
	for _, m := range f.Models {
		t := tokens{Input: m.Input, Output: m.Output, CacheRead: m.CacheRead, CacheWrite: m.CacheWrite}.bounded()
		u.InputTokens += t.Input
		u.OutputTokens += t.Output
		u.CacheReadTokens += t.CacheRead
		u.CacheWriteTokens += t.CacheWrite
		if m.Basis == "unknown" {
			u.CostSource = sessions.CostClientGuess
		}
	}
	if len(f.Models) == 0 {
		t := f.Usage
		u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens = t.Input, t.Output, t.CacheRead, t.CacheWrite
	}
	return u, u.Tokens() > 0 || u.CostUSD > 0
}
