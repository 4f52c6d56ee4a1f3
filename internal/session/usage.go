package session

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// CostSource says where a cost comes from.
type CostSource string

// The sources of a cost.
const (
	// CostClient is the CLI's own figure, from its last word.
	CostClient CostSource = "client"
	// CostClientGuess is the CLI's own figure for a model whose price it does not know itself.
	CostClientGuess CostSource = "client_guess"
	// CostEstimate is our sum by list prices over the messages that came: the session runs, or ended without the CLI's last word.
	CostEstimate CostSource = "estimate"
	// CostUnknown is that tokens were used, and the price of at least one model is not known. The cost is that of the others.
	CostUnknown CostSource = "unknown"
)

// CostSources lists them, the most certain first.
func CostSources() []CostSource {
	return []CostSource{CostClient, CostClientGuess, CostEstimate, CostUnknown}
}

// Usage is what a session used of its models, and what that cost. While it runs, and where it ended without the CLI's last word,
// it is the sum over the messages that came.
type Usage struct {
	InputTokens      int64      `json:"input_tokens" doc:"Neither read from the cache nor written to it"`
	OutputTokens     int64      `json:"output_tokens"`
	CacheReadTokens  int64      `json:"cache_read_tokens"`
	CacheWriteTokens int64      `json:"cache_write_tokens"`
	CostUSD          float64    `json:"cost_usd"`
	CostSource       CostSource `json:"cost_source,omitempty" enum:"client,client_guess,estimate,unknown" doc:"client: Claude Code's own figure; client_guess: its figure for a model whose price it does not know; estimate: ours by list prices, while a session runs and where it ended without Claude Code's last word; unknown: the price of a model is not known, and cost_usd is that of the others. Of a sum the least certain one. Absent: nothing was used"`
}

// Tokens is how many there are of all kinds.
func (u Usage) Tokens() int64 {
	return u.InputTokens + u.OutputTokens + u.CacheReadTokens + u.CacheWriteTokens
}

// tokens is what one message used, in the words of the API.
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

// atLeast is t, with what is more in later news of the same message.
func (t tokens) atLeast(later tokens) tokens {
	t.Input, t.Output = max(t.Input, later.Input), max(t.Output, later.Output)
	t.CacheRead, t.CacheWrite = max(t.CacheRead, later.CacheRead), max(t.CacheWrite, later.CacheWrite)
	t.CacheParts.Hour = max(t.CacheParts.Hour, later.CacheParts.Hour)
	return t
}

// meter sums what the messages of a session used.
type meter struct {
	prices   map[string]price
	finished Usage // without the message that comes now

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

// total is the sum so far.
func (m *meter) total() Usage {
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
		u.CostSource = CostEstimate
	}
	if !known {
		u.CostSource = CostUnknown
	}
	return u
}

// finalUsage is what the CLI's last word says of the whole session.
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

// usage is that figure; false if the CLI says nothing. What it says by model is complete; the sum beside it lacks the last message of a
// session that reached its limit of cost (2.1.329).
func (f finalUsage) usage() (u Usage, said bool) {
	u = Usage{CostUSD: max(f.Cost, 0), CostSource: CostClient}
	for _, m := range f.Models {
		t := tokens{Input: m.Input, Output: m.Output, CacheRead: m.CacheRead, CacheWrite: m.CacheWrite}.bounded()
		u.InputTokens += t.Input
		u.OutputTokens += t.Output
		u.CacheReadTokens += t.CacheRead
		u.CacheWriteTokens += t.CacheWrite
		if m.Basis == "unknown" {
			u.CostSource = CostClientGuess
		}
	}
	if len(f.Models) == 0 {
		t := f.Usage
		u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens = t.Input, t.Output, t.CacheRead, t.CacheWrite
	}
	return u, u.Tokens() > 0 || u.CostUSD > 0
}

// Cost is the cost in words, with what kind of figure it is.
func (u Usage) Cost() string {
	const pattern = "%.4f USD"
	switch u.CostSource {
	case CostClient:
		return fmt.Sprintf(pattern, u.CostUSD)
	case CostClientGuess:
		return fmt.Sprintf(pattern+", as Claude Code guesses for a model whose price it does not know", u.CostUSD)
	case CostEstimate:
		return fmt.Sprintf("an estimated "+pattern, u.CostUSD)
	case CostUnknown:
		if u.CostUSD > 0 {
			return fmt.Sprintf("an estimated "+pattern+" and more, since the price of a model is not known", u.CostUSD)
		}
		return "cost not known, since the price of the model is not known"
	}
	if u.CostUSD > 0 { // a record from before sources were told apart
		return fmt.Sprintf(pattern, u.CostUSD)
	}
	return "none recorded"
}

// Words says how many tokens of each kind there are.
func (u Usage) Words() string {
	if u.Tokens() == 0 {
		return "no tokens recorded"
	}
	return fmt.Sprintf("%d tokens: %d input, %d output, %d read from the cache, %d written to it",
		u.Tokens(), u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens)
}

// Add adds what another session used. Of two sources the less certain one stands.
func (u Usage) Add(o Usage) Usage {
	certain := append([]CostSource{""}, CostSources()...)
	return Usage{
		InputTokens: u.InputTokens + o.InputTokens, OutputTokens: u.OutputTokens + o.OutputTokens,
		CacheReadTokens: u.CacheReadTokens + o.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens + o.CacheWriteTokens,
		CostUSD: u.CostUSD + o.CostUSD, CostSource: certain[max(slices.Index(certain, u.CostSource), slices.Index(certain, o.CostSource), 0)],
	}
}

// UsageGroup is what several sessions used.
type UsageGroup struct {
	Day      string // on which they began, in UTC, as 2006-01-02; "" if that is not told apart
	Tier     gitprovider.Tier
	State    State // "" if that is not told apart
	Sessions int
	Usage    // with the least certain of their sources, if CostSource does not tell them apart
}
