package session

import (
	"fmt"
	"math"
	"testing"

	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// oneTurn is the usage of the messages of these tests: at opus-5.5's price 0.0295 USD.
const oneTurn = `{"input_tokens":1000,"cache_creation_input_tokens":2000,"cache_read_input_tokens":30000,"output_tokens":400,` +
	`"cache_creation":{"ephemeral_5m_input_tokens":1500,"ephemeral_1h_input_tokens":500}}`

// The CLI's own figures for three turns, as 2.1.329 gave them for these models. e2e holds that it still does.
func TestAnEstimateIsWhatTheClientSaysItself(t *testing.T) {
	for model, three := range map[string]float64{
		"claude-haiku-5-5": 0.0026625, "claude-haiku-5-5@20260901": 0.0026625, "claude-haiku-4-5-20251001": 0.026625,
		"claude-sonnet-4-6": 0.079875, "claude-sonnet-5": 0.05325, "claude-sonnet-5-5": 0.04425,
		"anthropic/claude-sonnet-5.5": 0.04425,
		"claude-opus-5":               0.133125, "claude-opus-5-5": 0.0885, "us.anthropic.claude-opus-4-8-v1:0": 0.133125,
		"claude-fable-5": 0.26625, "claude-fable-5-1": 0.19875,
	} {
		m := newMeter()
		var used tokens
		must.Do(t, used.UnmarshalJSON([]byte(oneTurn)))
		for i := range 3 {
			m.see(fmt.Sprint(i), model, used)
		}
		if got := m.total(); math.Abs(got.CostUSD-three) > 1e-9 || got.CostSource != sessions.CostEstimate {
			t.Errorf("%s: %+v, want %v", model, got, three)
		}
	}
}

func TestNamesThatAreNoModelOfOursHaveNoPrice(t *testing.T) {
	for _, name := range []string{"", "my-model", "claude", "claude-opus", "claude-opus-", "claude-opus-555",
		"xclaude-opus-5", "gpt-5", "claude-opus-5.55"} {
		if _, known := prices()[modelVersion(name)]; known {
			t.Errorf("%q has the price of %s", name, modelVersion(name))
		}
	}
	for name, want := range map[string]string{"claude-sonnet-4-20250514": "sonnet-4",
		"claude-opus-4-1-20250805": "opus-4.1", "claude-opus-5-5[1m]": "opus-5.5"} {
		if got := modelVersion(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestALongPromptCostsMoreWhereTheListSaysSo(t *testing.T) {
	p := prices()["haiku-5.5"]
	if got := p.cost(tokens{Input: 50_000, CacheRead: 50_000}); math.Abs(got-0.0055) > 1e-9 {
		t.Errorf("100,000 tokens cost %v", got)
	}
	if got := p.cost(tokens{Input: 50_001, CacheRead: 50_000,
		Output: 1000}); math.Abs(got-5*(0.0050001+0.0005+0.0005)) > 1e-9 {
		t.Errorf("100,001 tokens cost %v", got)
	}
}

func TestAMessageIsCountedOnceHoweverManyPartsItHas(t *testing.T) {
	m := newMeter()
	m.see("a", "claude-opus-5-5", tokens{Input: 10, Output: 3})
	m.see("a", "claude-opus-5-5", tokens{Input: 10, Output: 3})
	m.more(tokens{Output: 400})
	m.see("b", "somebody-elses", tokens{Input: 5})
	m.see("b", "somebody-elses", tokens{Input: 5, Output: 1})
	got := m.total()
	if got.InputTokens != 15 || got.OutputTokens != 401 || got.CostSource != sessions.CostUnknown ||
		math.Abs(got.CostUSD-0.00804) > 1e-9 {
		t.Errorf("%+v", got)
	}
}

func TestTheLastWordIsTheSumOverModels(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want sessions.Usage
		said bool
	}{
		"by model": {
			`{"total_cost_usd":0.5,"usage":{"input_tokens":1},"modelUsage":{"a":{"inputTokens":2,"outputTokens":3,"costBasis":"list"},
			"b":{"cacheReadInputTokens":4,"cacheCreationInputTokens":5,"costBasis":"list"}}}`,
			sessions.Usage{InputTokens: 2, OutputTokens: 3, CacheReadTokens: 4, CacheWriteTokens: 5, CostUSD: 0.5,
				CostSource: sessions.CostClient}, true,
		},
		"of a model that the client does not know": {
			`{"total_cost_usd":0.5,"modelUsage":{"a":{"inputTokens":2,"costBasis":"unknown"}}}`,
			sessions.Usage{InputTokens: 2, OutputTokens: 0, CacheReadTokens: 0, CacheWriteTokens: 0, CostUSD: 0.5,
				CostSource: sessions.CostClientGuess}, true,
		},
		"without models": {`{"total_cost_usd":0.5,"usage":{"input_tokens":1,"output_tokens":2}}`,
			sessions.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 0, CacheWriteTokens: 0, CostUSD: 0.5,
				CostSource: sessions.CostClient}, true},
		"of nothing": {`{"total_cost_usd":0,"usage":{"input_tokens":0},"modelUsage":{}}`,
			sessions.Usage{CostSource: sessions.CostClient}, false},
		"in other types": {`{"total_cost_usd":"much","usage":[1],"modelUsage":7}`,
			sessions.Usage{CostSource: sessions.CostClient}, false},
		"below zero": {`{"total_cost_usd":-1,"modelUsage":{"a":{"inputTokens":-2,"outputTokens":1}}}`,
			sessions.Usage{InputTokens: 0, OutputTokens: 1, CacheReadTokens: 0, CacheWriteTokens: 0, CostUSD: 0,
				CostSource: sessions.CostClient}, true},
		"an absurd number": {`{"total_cost_usd":1,"modelUsage":{"a":{"inputTokens":9223372036854775807}}}`,
			sessions.Usage{InputTokens: maxTokens, OutputTokens: 0, CacheReadTokens: 0, CacheWriteTokens: 0, CostUSD: 1,
				CostSource: sessions.CostClient}, true},
	} {
		got, said := outputMessage{text: []byte(c.line)}.final().usage()
		if got != c.want || said != c.said {
			t.Errorf("%s: %+v, %v", name, got, said)
		}
	}
}

func TestRetriesAreToldByTheirAnswers(t *testing.T) {
	r := retries{}
	for _, line := range []string{
		`{"attempt":1,"max_retries":10,"error_status":429,"error":"rate_limit"}`,
		`{"attempt":2,"error_status":529,"error":"overloaded"}`,
		`{"attempt":3,"error_status":529,"error":"overloaded"}`, `{"error_status":null,"error":"unknown"}`,
		`{"error_status":"x"}`,
	} {
		r.add(outputMessage{text: []byte(line)}.retry().apiAnswer())
	}
	want := "the model's API answered with no answer, 2 times; status 529 (overloaded), 2 times; status 429 " +
		"(rate_limit), once"
	must.Equal(t, r.summaryText(), want)
	for i := range 2 * maxAnswers {
		r.add(fmt.Sprint(i))
	}
	if len(r) > maxAnswers || (retries{}).summaryText() != "" {
		t.Errorf("%d answers", len(r))
	}
}
