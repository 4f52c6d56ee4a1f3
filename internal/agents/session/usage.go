package session

import (
	"encoding/json"
	"regexp"
	"strconv"

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
		*t = tokens(p).clamp()
	}
	return nil
}

// maxTokens bounds a number that somebody else tells us.
const maxTokens = 1_000_000_000

func (t tokens) clamp() tokens {
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
	u.CostUSD += p.cost(t)
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

func (m outputMessage) final() (f finalUsage) {
	_ = json.Unmarshal(m.text, &f) // what cannot be read is left out
	return f
}

// usage returns the session's usage; false if the CLI does not report it. Its figures by model are complete; the sum
// beside it lacks the last message of a session that reached its limit of cost (2.1.329).
func (f finalUsage) usage() (u sessions.Usage, said bool) {
	u = sessions.Usage{CostUSD: max(f.Cost, 0), CostSource: sessions.CostClient}
	for _, m := range f.Models {
		t := tokens{Input: m.Input, Output: m.Output, CacheRead: m.CacheRead, CacheWrite: m.CacheWrite}.clamp()
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

// price is a model's list price, in USD for a million tokens.
type price struct {
	input, output float64
	cacheRead     float64
	// A request whose whole prompt is longer than longPrompt tokens costs longFactor times as much; 0 for models without
	// that.
	longPrompt int64
	longFactor float64
}

// Writing to the cache costs this much of input, by how long it is kept.
const (
	cacheWrite5m = 1.25
	cacheWrite1h = 2.0
)

// prices returns the list prices of Claude models on Anthropic's own API as published in November 2026
// (platform.claude.com/docs/en/about-claude/pricing), by family and version. Clouds and gateways may charge otherwise.
func prices() map[string]price {
	return map[string]price{
		"fable-5.1": {input: 10, output: 50, cacheRead: 0.25}, "fable-5": {input: 10, output: 50, cacheRead: 1},
		"mythos-5.1": {input: 10, output: 50, cacheRead: 0.25}, "mythos-5": {input: 10, output: 50, cacheRead: 1},
		"opus-5.5": {input: 4, output: 20, cacheRead: 0.2}, "opus-5": {input: 5, output: 25, cacheRead: 0.5},
		"opus-4.8": {input: 5, output: 25, cacheRead: 0.5}, "opus-4.7": {input: 5, output: 25, cacheRead: 0.5},
		"opus-4.6": {input: 5, output: 25, cacheRead: 0.5}, "opus-4.5": {input: 5, output: 25, cacheRead: 0.5},
		"opus-4.1": {input: 15, output: 75, cacheRead: 1.5}, "opus-4": {input: 15, output: 75, cacheRead: 1.5},
		"sonnet-5.5": {input: 2, output: 10, cacheRead: 0.1}, "sonnet-5": {input: 2, output: 10, cacheRead: 0.2},
		"sonnet-4.6": {input: 3, output: 15, cacheRead: 0.3}, "sonnet-4.5": {input: 3, output: 15, cacheRead: 0.3},
		"sonnet-4":  {input: 3, output: 15, cacheRead: 0.3},
		"haiku-5.5": {input: 0.1, output: 0.5, cacheRead: 0.01, longPrompt: 100_000, longFactor: 5},
		"haiku-4.5": {input: 1, output: 5, cacheRead: 0.1},
	}
}

// modelVersion finds family and version in the names that APIs, clouds and gateways give to models: claude-opus-5-5,
// us.anthropic.claude-opus-4-8-v1:0, anthropic/claude-sonnet-5.5, claude-sonnet-4-20250514. "" if it is another name.
func modelVersion(name string) string {
	m := regexp.MustCompile(
		`(?:^|[./])claude-(fable|mythos|opus|sonnet|haiku)-(\d{1,2})(?:[-.](\d{1,2}))?(?:\D|$)`).FindStringSubmatch(name)
	if m == nil {
		return ""
	}
	version := m[1] + "-" + m[2]
	if minor, err := strconv.Atoi(m[3]); err == nil && minor > 0 {
		version += "." + strconv.Itoa(minor)
	}
	return version
}

// cost returns the price of one message, in USD.
func (p price) cost(t tokens) float64 {
	const million = 1_000_000
	longer := 1.0
	if p.longPrompt > 0 && t.Input+t.CacheRead+t.CacheWrite > p.longPrompt {
		longer = p.longFactor
	}
	hour := min(t.CacheParts.Hour, t.CacheWrite)
	input := float64(t.Input) + float64(t.CacheWrite-hour)*cacheWrite5m + float64(hour)*cacheWrite1h
	return longer * (input*p.input + float64(t.CacheRead)*p.cacheRead + float64(t.Output)*p.output) / million
}
