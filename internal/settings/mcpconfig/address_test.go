package mcpconfig_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
)

func TestAddress(t *testing.T) {
	for given, want := range map[string]string{
		"https://ops.example.org": "https://ops.example.org/mcp", "https://ops.example.org/": "https://ops.example.org/mcp",
		"https://ops.example.org/mcp":        "https://ops.example.org/mcp",
		"https://ops.example.org/mcp/":       "https://ops.example.org/mcp",
		"https://ops.example.org:8443/base/": "https://ops.example.org:8443/base/mcp",
		"http://localhost:8080":              "http://localhost:8080/mcp",
		"http://127.0.0.1:8080/ops":          "http://127.0.0.1:8080/ops/mcp", "http://[::1]:8080": "http://[::1]:8080/mcp",
		"http://ops.example.org": "", "http://127.0.0.1.example.org": "", "http://10.0.0.1": "",
		"https://ann:secret@ops.example.org":   "",
		"https://ops.example.org?token=secret": "", "https://ops.example.org#x": "", "https://": "", "https:///base": "",
		"https://[::1":          "",
		"ftp://ops.example.org": "", "ops.example.org": "", "unix:/x": "", "": "",
	} {
		got, err := mcpconfig.Address(given)
		if got != want || (err == nil) != (want != "") || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}
}

func TestEveryClientIsToldOfAnAddressWithoutAToken(t *testing.T) {
	const at = "https://ops.example.org/mcp"
	for _, f := range mcpconfig.AddressForms() {
		text := f.Text(at)
		if !strings.Contains(text, at) || !strings.Contains(text, mcpconfig.TokenVariable) || f.File == "" || f.Name == "" {
			t.Errorf("%s: %s", f.Client, text)
		}
		if f.Client != "codex" && !json.Valid([]byte(text)) {
			t.Errorf("%s: no JSON: %s", f.Client, text)
		}
		if words := strings.Join(f.Add(at), " "); (words == "") != (f.Client == "cursor") || words != "" &&
			(!strings.Contains(words, at) || !strings.Contains(words, mcpconfig.TokenVariable)) {
			t.Errorf("%s: %s", f.Client, words)
		}
	}
}

func TestShellLine(t *testing.T) {
	words := []string{"claude", "a b", "", "it's", "Bearer ${X}", "--url=https://ops.example/mcp"}
	const want = `claude 'a b' '' 'it'\''s' 'Bearer ${X}' --url=https://ops.example/mcp`
	if got := mcpconfig.ShellLine(words); got != want || words[1] != "a b" {
		t.Errorf("%s, from %q", got, words)
	}
}
