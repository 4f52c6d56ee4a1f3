package config_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/config"
)

func TestTheServerStaysOnLoopbackUnlessToldOtherwise(t *testing.T) {
	w := load(nil).Web
	if w.Addr != config.DefaultAddr || w.Host() != "127.0.0.1" || w.Problem != "" || len(w.Tokens) != 0 || w.BasePath != "" {
		t.Errorf("got %+v", w)
	}
	w = load(map[string]string{
		"CLAUDEOPS_ADDR": ":9", "CLAUDEOPS_HOSTS": "Ops.example, 10.0.0.7, ::1", "CLAUDEOPS_BASE_PATH": "/a/ops/",
		"CLAUDEOPS_API_TOKENS": "one-token,two-token", "CLAUDEOPS_TRUSTED_PROXIES": "10.1.2.3/8 fd00::/8",
		"CLAUDEOPS_PROXY_USER_HEADER": "X-User", "CLAUDEOPS_LOG_FORMAT": "JSON",
	}).Web
	if w.Problem != "" || w.Host() != "" || len(w.Hosts) != 3 || w.Hosts[0] != "ops.example" || w.BasePath != "/a/ops" ||
		len(w.Tokens) != 2 || w.TrustedProxies[0].String() != "10.0.0.0/8" || !w.LogJSON {
		t.Errorf("got %+v", w)
	}
}

func TestAServerDoesNotStartOnAGuessOfWhoMayCallIt(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"CLAUDEOPS_ADDR":              {"CLAUDEOPS_ADDR": "8080"},
		"CLAUDEOPS_BASE_PATH":         {"CLAUDEOPS_BASE_PATH": "/a/../b"},
		"CLAUDEOPS_TRUSTED_PROXIES":   {"CLAUDEOPS_TRUSTED_PROXIES": "10.0.0.1"},
		"CLAUDEOPS_PROXY_USER_HEADER": {"CLAUDEOPS_PROXY_USER_HEADER": "X-User"},
		"CLAUDEOPS_HOSTS":             {"CLAUDEOPS_HOSTS": "https://ops.example"},
	} {
		if w := load(env).Web; !strings.Contains(w.Problem, name) {
			t.Errorf("%v: problem %q", env, w.Problem)
		}
	}
	for _, path := range []string{"ops", "//evil.example", "/a b", "/a?b", "/a\"", "/.."} {
		if w := load(map[string]string{"CLAUDEOPS_BASE_PATH": path}).Web; w.Problem == "" {
			t.Errorf("the base path %q was taken as %q", path, w.BasePath)
		}
	}
}
