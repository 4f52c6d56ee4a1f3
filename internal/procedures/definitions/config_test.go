package definitions

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

func TestConfigIsTheOperatorsAndThenTheProjects(t *testing.T) {
	project, home := t.TempDir(), t.TempDir()
	users, asJSON, asYAML := filepath.Join(home, ".fractary/config.json"), filepath.Join(project,
		".fractary/config.json"), filepath.Join(project, ".fractary/config.yaml")
	load := func(file string) []string {
		t.Helper()
		c, err := loadConfig(ConfigOptions{File: file, Project: project, Home: home})
		if err != nil {
			t.Fatal(err)
		}
		out := append([]string{}, c.Sources...)
		for _, r := range c.Registries {
			out = append(out, fmt.Sprint(r.Name, " ", r.asked()))
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
	operationtest.WriteFiles(t, home,
		map[string]string{".fractary/config.json": `{"registries":[{"name":"user","url":"https://example.org/r.json"}]}`})
	same(load(""), users, "user true")
	operationtest.WriteFiles(t, project, map[string]string{".fractary/config.yaml": "cache: {ttl: 5}\n"})
	same(load(""), users, asYAML, "user true")
	operationtest.WriteFiles(t, project,
		map[string]string{".fractary/config.yaml": "registries:\n  - {name: later, url: ./r, priority: 9}\n  - {name: " +
			"sooner, url: ./r, priority: 1}\n"})
	same(load(""), users, asYAML, "sooner false", "later false")
	operationtest.WriteFiles(t, project, map[string]string{".fractary/config.json": "{\n\t\"registries\": []\n}\n"})
	same(load(""), users, asJSON)
	operationtest.WriteFiles(t, project,
		map[string]string{"other.json": `{"registries":[{"name":"other","url":"x.json"}]}`})
	same(load("other.json"), users, filepath.Join(project, "other.json"), "other false")
	outside := operationtest.WriteFiles(t, t.TempDir(),
		map[string]string{"f.json": `{"registries":[{"name":"other","url":"x.json"}]}`})
	same(load(filepath.Join(outside, "f.json")), filepath.Join(outside, "f.json"), "other true")
	for to, name := range map[string]string{filepath.Join(project, "other.json"): "in",
		filepath.Join(outside, "f.json"): "out"} {
		if err := os.Symlink(to, filepath.Join(map[string]string{"in": outside, "out": project}[name], name)); err != nil {
			t.Fatal(err)
		}
	}
	same(load(filepath.Join(outside, "in")), users, filepath.Join(outside, "in"), "other false")
	if _, err := loadConfig(ConfigOptions{File: "out", Project: project, Home: home}); codeOf(err) != ConfigError {
		t.Errorf("a link of the project that leaves it: %v", err)
	}
	c, err := loadConfig(ConfigOptions{Project: home, Home: home})
	if err != nil || len(c.Registries) != 1 || !c.Registries[0].asked() {
		t.Errorf("where the project is the user's home: %+v, %v", c.Registries, err)
	}
}

func TestConfigRefusesWhatIsMalformed(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": `{`, "a list": `[]`, "no url": `{"registries":[{"name":"a"}]}`,
		"a scheme":   `{"registries":[{"name":"a","url":"ftp://x/y"}]}`,
		"a priority": `{"registries":[{"name":"a","url":"x","priority":0}]}`,
		"a type":     `{"registries":[{"name":"a","url":"x","type":"other"}]}`,
	} {
		project := operationtest.WriteFiles(t, t.TempDir(), map[string]string{".fractary/config.json": text})
		if _, err := loadConfig(ConfigOptions{Project: project}); codeOf(err) != ConfigError ||
			!strings.Contains(err.Error(), "config.json") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := loadConfig(ConfigOptions{File: "/nowhere/config.json"}); codeOf(err) != ConfigError {
		t.Errorf("a named file that is missing: %v", err)
	}
}

func TestConfigGet(t *testing.T) {
	home := operationtest.WriteFiles(t, t.TempDir(),
		map[string]string{".fractary/config.json": `{"registries":[{"name":"a","url":"x","auth":{"token_env":"T","token":"s3cret"}}],"custom":{"n":1,"none":null}}`})
	c, err := loadConfig(ConfigOptions{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"registries.0.url": "x", "registries.0.priority": "100", "cache.directory": filepath.Join(home, ".fractary/cache"),
		"custom.none": nil, "resolution.local": true,
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
