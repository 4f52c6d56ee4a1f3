package session

import (
	"regexp"
	"strconv"
)

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

// of returns the price of one message, in USD.
func (p price) of(t tokens) float64 {
	const million = 1_000_000
	longer := 1.0
	if p.longPrompt > 0 && t.Input+t.CacheRead+t.CacheWrite > p.longPrompt {
		longer = p.longFactor
	}
	hour := min(t.CacheParts.Hour, t.CacheWrite)
	input := float64(t.Input) + float64(t.CacheWrite-hour)*cacheWrite5m + float64(hour)*cacheWrite1h
	return longer * (input*p.input + float64(t.CacheRead)*p.cacheRead + float64(t.Output)*p.output) / million
}
