package definitions

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

func TestConfigTakesTheFirstFile(t *testing.T) {
	project, home := t.TempDir(), t.TempDir()
	load := func(file string) []string {
		t.Helper()
		c, err := LoadConfig(ConfigOptions{File: file, Project: project, Home: home})
		if err != nil {
			t.Fatal(err)
		}
		out := append([]string{}, c.Sources...)
		for _, r := range c.Registries {
			out = append(out, r.Name)
		}
		return out
	}
	same := func(got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if got := load(""); len(got) != 0 {
		t.Errorf("without a file: %v", got)
	}
	operationtest.WriteFiles(t, home, map[string]string{".fractary/config.json": `{"registries":[{"name":"user","url":"https://example.org/r.json"}]}`})
	same(load(""), filepath.Join(home, ".fractary/config.json"), "user")
	operationtest.WriteFiles(t, project, map[string]string{".fractary/config.yaml": "registries:\n  - {name: later, url: ./r, priority: 9}\n  - {name: sooner, url: ./r, priority: 1}\n"})
	same(load(""), filepath.Join(project, ".fractary/config.yaml"), "sooner", "later")
	operationtest.WriteFiles(t, project, map[string]string{".fractary/config.json": "{\n\t\"registries\": []\n}\n"})
	same(load(""), filepath.Join(project, ".fractary/config.json"))
	operationtest.WriteFiles(t, project, map[string]string{"other.json": `{"registries":[{"name":"other","url":"x.json"}]}`})
	same(load("other.json"), filepath.Join(project, "other.json"), "other")
}

func TestConfigRefusesWhatIsMalformed(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": `{`, "a list": `[]`, "no url": `{"registries":[{"name":"a"}]}`, "a scheme": `{"registries":[{"name":"a","url":"ftp://x/y"}]}`,
		"a priority": `{"registries":[{"name":"a","url":"x","priority":0}]}`, "a type": `{"registries":[{"name":"a","url":"x","type":"other"}]}`,
	} {
		project := operationtest.WriteFiles(t, t.TempDir(), map[string]string{".fractary/config.json": text})
		if _, err := LoadConfig(ConfigOptions{Project: project}); codeOf(err) != ConfigError || !strings.Contains(err.Error(), "config.json") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := LoadConfig(ConfigOptions{File: "/nowhere/config.json"}); codeOf(err) != ConfigError {
		t.Errorf("a named file that is missing: %v", err)
	}
}

func TestConfigGet(t *testing.T) {
	project := operationtest.WriteFiles(t, t.TempDir(), map[string]string{".fractary/config.json": `{"registries":[{"name":"a","url":"x","auth":{"token_env":"T","token":"s3cret"}}],"custom":{"n":1,"none":null}}`})
	c, err := LoadConfig(ConfigOptions{Project: project, Home: "/home/u"})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"registries.0.url": "x", "registries.0.priority": "100", "cache.directory": "/home/u/.fractary/cache", "custom.none": nil, "resolution.local": true,
	} {
		got, exists := c.Get(key)
		if text, ok := got.(interface{ String() string }); ok {
			got = text.String()
		}
		if !exists || got != want {
			t.Errorf("%s: %v, %v", key, got, exists)
		}
	}
	for _, key := range []string{"registries.1", "registries.x", "registries.-1", "gone", "custom.n.m", ""} {
		if got, exists := c.Get(key); exists {
			t.Errorf("%q: %v", key, got)
		}
	}
	for _, defaults := range []bool{true, false} {
		if text := cmp.Diff(nil, c.Values(defaults)); strings.Contains(text, "s3cret") {
			t.Errorf("a secret is shown: %s", text)
		}
	}
}
