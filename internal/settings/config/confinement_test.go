package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/settings/config"
)

func TestTheBoundaryIsNeverAGuess(t *testing.T) {
	for _, test := range []struct{ name, value, problem string }{
		{"CLAUDEOPS_BOUNDARY", "landlok", "CLAUDEOPS_BOUNDARY is"},
		{"CLAUDEOPS_BOUNDARY", "user", ""},
		{"CLAUDEOPS_AGENT_NET", "none", "CLAUDEOPS_AGENT_NET is"},
		{"CLAUDEOPS_AGENT_NET", "model", ""},
		{"CLAUDEOPS_AGENT_READ", "/var/log,etc", "CLAUDEOPS_AGENT_READ holds"},
		{"CLAUDEOPS_AGENT_WRITE", "/srv/x, /srv/y/../z", ""},
	} {
		c := load(map[string]string{test.name: test.value})
		if got := c.Sessions.Problem; !strings.Contains(got, test.problem) || (test.problem == "") != (got == "") {
			t.Errorf("%s=%s: %q, want %q", test.name, test.value, got, test.problem)
		}
	}
	c := load(map[string]string{"CLAUDEOPS_AGENT_WRITE": "/srv/x, /srv/y/../z",
		"CLAUDEOPS_AGENT_USER": "agents"}).Permissions.Confinement
	if c.Boundary != config.BoundaryAuto || c.Net != config.NetAny || c.AgentUser != "agents" ||
		!slices.Equal(c.Write, []string{"/srv/x", "/srv/z"}) {
		t.Errorf("%+v", c)
	}
}

func TestThePortsOfTheModel(t *testing.T) {
	for _, test := range []struct {
		env  []string
		want []uint16
	}{
		{nil, []uint16{443}},
		{[]string{"ANTHROPIC_BASE_URL=http://127.0.0.1:8765/x"}, []uint16{8765}},
		{[]string{"ANTHROPIC_BASE_URL=https://gateway.example.org"}, []uint16{443}},
		{[]string{"HTTPS_PROXY=http://proxy:3128", "http_proxy=proxy"}, []uint16{443, 3128, 80}},
	} {
		if got := config.ModelPorts(test.env); !slices.Equal(got, test.want) {
			t.Errorf("%v: %v, want %v", test.env, got, test.want)
		}
	}
}

func TestWhetherNamesHaveToBeLookedUpToAskTheModel(t *testing.T) {
	for _, test := range []struct {
		env  []string
		want bool
	}{
		{nil, true},
		{[]string{"ANTHROPIC_BASE_URL=http://127.0.0.1:8765/x"}, false},
		{[]string{"ANTHROPIC_BASE_URL=http://localhost:8765"}, false},
		{[]string{"ANTHROPIC_BASE_URL=https://[2001:db8::1]/"}, false},
		{[]string{"ANTHROPIC_BASE_URL=https://gateway.example.org"}, true},
		{[]string{"HTTPS_PROXY=http://10.0.0.1:3128"}, false},
		{[]string{"https_proxy=10.0.0.1:3128"}, false},
		{[]string{"HTTPS_PROXY=http://proxy:3128"}, true},
		{[]string{"HTTP_PROXY=http://10.0.0.1:3128"}, true},
		{[]string{"HTTPS_PROXY=http://10.0.0.1:3128", "NO_PROXY=.anthropic.com"}, true},
		{[]string{"HTTPS_PROXY=http://10.0.0.1:3128", "CLAUDE_CODE_USE_BEDROCK=1"}, true},
		{[]string{"ANTHROPIC_BASE_URL=http://127.0.0.1:1", "http_proxy=proxy"}, true},
	} {
		if got := config.ModelNeedsNames(test.env); got != test.want {
			t.Errorf("%v: %t, want %t", test.env, got, test.want)
		}
	}
}
