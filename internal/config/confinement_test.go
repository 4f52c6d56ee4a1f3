package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/config"
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
	c := load(map[string]string{"CLAUDEOPS_AGENT_WRITE": "/srv/x, /srv/y/../z", "CLAUDEOPS_AGENT_USER": "agents"}).Permissions.Confinement
	if c.Boundary != config.BoundaryAuto || c.Net != config.NetAny || c.AgentUser != "agents" || !slices.Equal(c.Write, []string{"/srv/x", "/srv/z"}) {
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
