package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/settings/config"
)

func TestTheServerStaysOnLoopbackUnlessToldOtherwise(t *testing.T) {
	w := load(nil).Web
	if w.Addr != config.DefaultAddr || w.Host() != "127.0.0.1" || w.Problem != "" || len(w.Tokens) != 0 ||
		w.BasePath != "" {
		t.Errorf("got %+v", w)
	}
	w = load(map[string]string{
		"CLAUDEOPS_ADDR": ":9", "CLAUDEOPS_HOSTS": "Ops.example, 10.0.0.7, ::1", "CLAUDEOPS_BASE_PATH": "/a/ops/",
		"CLAUDEOPS_API_TOKENS": "one-token,two-token", "CLAUDEOPS_TRUSTED_PROXIES": "10.1.2.3/8 fd00::/8,127.0.0.1 ::1",
		"CLAUDEOPS_PROXY_USER_HEADER": "X-User", "CLAUDEOPS_LOG_FORMAT": "JSON",
	}).Web
	if w.Problem != "" || w.Host() != "" || len(w.Hosts) != 3 || w.Hosts[0] != "ops.example" || w.BasePath != "/a/ops" ||
		len(w.Tokens) != 2 || fmt.Sprint(w.TrustedProxies) != "[10.0.0.0/8 fd00::/8 127.0.0.1/32 ::1/128]" || !w.LogJSON {
		t.Errorf("got %+v", w)
	}
}

func TestAServerDoesNotStartOnAGuessOfWhoMayCallIt(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"CLAUDEOPS_ADDR":              {"CLAUDEOPS_ADDR": "8080"},
		"CLAUDEOPS_BASE_PATH":         {"CLAUDEOPS_BASE_PATH": "/a/../b"},
		"CLAUDEOPS_TRUSTED_PROXIES":   {"CLAUDEOPS_TRUSTED_PROXIES": "10.0.0"},
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

func TestThePublicAddressHasTheBasePathOnce(t *testing.T) {
	for _, c := range []struct{ public, base, want, problem string }{
		{"", "", "", ""},
		{"https://Ops.example", "", "https://ops.example", ""},
		{"https://ops.example/", "/ops", "https://ops.example/ops", ""},
		{"https://ops.example:8443/ops/", "/ops", "https://ops.example:8443/ops", ""},
		{"http://[::1]:8080", "", "http://[::1]:8080", ""},
		{"https://ops.example/other", "/ops", "", "CLAUDEOPS_BASE_PATH"},
		{"https://ops.example/ops", "", "", "CLAUDEOPS_BASE_PATH"},
		{"ops.example", "", "", "CLAUDEOPS_PUBLIC_URL"},
		{"ftp://ops.example", "", "", "CLAUDEOPS_PUBLIC_URL"},
		{"https://ann:secret@ops.example", "", "", "CLAUDEOPS_PUBLIC_URL"},
		{"https://ops.example/?a=b", "", "", "CLAUDEOPS_PUBLIC_URL"},
		{"https://ops.example/#x", "", "", "CLAUDEOPS_PUBLIC_URL"},
		{"https://ops example", "", "", "CLAUDEOPS_PUBLIC_URL"},
		{"https:///x", "", "", "CLAUDEOPS_PUBLIC_URL"},
	} {
		got := load(map[string]string{"CLAUDEOPS_PUBLIC_URL": c.public, "CLAUDEOPS_BASE_PATH": c.base}).Web
		if got.PublicURL != c.want || !strings.Contains(got.Problem, c.problem) || (got.Problem == "") != (c.problem == "") {
			t.Errorf("%q below %q: %q, %q", c.public, c.base, got.PublicURL, got.Problem)
		}
		if strings.Contains(got.Problem, "secret") {
			t.Errorf("the problem repeats the address: %s", got.Problem)
		}
	}
}
