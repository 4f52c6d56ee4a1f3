package mcpconfig_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
)

func FuzzMerge(f *testing.F) {
	f.Add(`{"mcpServers":{"claudeops":{"command":"x"},"tools":{"command":"t","args":["${GRAFANA_TOKEN:-x}"]}}}`,
		`{"mcpServers":{"Tools":{}}}`)
	f.Add(`{"mcpServers":{"claudeops__x":{"type":"http","url":"https://x.example","headers":{"A":"${GITHUB_TOKEN}"}}}}`,
		`[]`)
	f.Add(`{"mcpServers":{"a":{"type":"sse","url":"http://h/?q=<&>"},"ｃlaudeops":null}}`, "{\"mcpServers\":{\"\xff\":{}}}")
	f.Fuzz(func(t *testing.T, a, b string) {
		contributions := []mcpconfig.Contribution{{From: "b", Text: []byte(b)}, {From: "a", Text: []byte(a)}}
		r := mcpconfig.Merge(system(), contributions, rules(mcpconfig.All))
		config := r.Config()["mcpServers"]
		if string(config["claudeops"]) != ours || len(config) != len(r.Servers) || len(config) > mcpconfig.MaxServers+1 {
			t.Fatalf("the configuration is %s", config)
		}
		normalise := regexp.MustCompile(`[^A-Za-z0-9_-]`)
		for name, entry := range config {
			normal := strings.ToLower(normalise.ReplaceAllString(name, "_"))
			if name != "claudeops" && (strings.HasPrefix(normal, "claudeops") || strings.Contains(name, "__") ||
				normalise.MatchString(name)) {
				t.Errorf("the name %q shadows ours", name)
			}
			text := strings.ToUpper(strings.ReplaceAll(string(entry), `"GITHUB_TOKEN":""`, ""))
			if name != "claudeops" && (strings.Contains(text, "${GITHUB_") || strings.Contains(text, "${CLAUDEOPS_") ||
				!json.Valid(entry)) {
				t.Errorf("%q asks for a variable of ours: %s", name, entry)
			}
		}
		for _, refusal := range r.Refused {
			if refusal.Reason == "" || len(refusal.String()) > 600 {
				t.Errorf("a poor refusal: %q", refusal)
			}
		}
	})
}
