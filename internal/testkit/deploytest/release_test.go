package deploytest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/testkit/deploytest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	compiled, err := jsonschema.NewCompiler().Compile(filepath.Join("testdata", name))
	must.Do(t, err)
	return compiled
}

// asJSON is a value as the library of schemas wants it.
func asJSON(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	must.Do(t, err)
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	must.Do(t, err)
	return out
}

func TestTheEntryOfTheRegistryIsValidAndTrue(t *testing.T) {
	var entry struct {
		Version  string `json:"version"`
		Packages []struct {
			Identifier string `json:"identifier"`
			Variables  []struct {
				Name     string `json:"name"`
				IsSecret bool   `json:"isSecret"`
			} `json:"environmentVariables"`
		} `json:"packages"`
	}
	text := read(t, "server.json")
	var whole any
	must.Do(t, json.Unmarshal([]byte(text), &entry), json.Unmarshal([]byte(text), &whole))
	if err := schema(t, "server.schema.json").Validate(asJSON(t, whole)); err != nil {
		t.Error(err)
	}
	if entry.Version != released(t) || len(entry.Packages) != 1 ||
		entry.Packages[0].Identifier != "ghcr.io/claudeops/claudeops:"+entry.Version {
		t.Errorf("version %s, packages %+v; the source is %s", entry.Version, entry.Packages, released(t))
	}
	secret := map[string]bool{}
	for _, v := range config.ServerVariables(forges.All()) {
		secret[v.Name] = v.Secret
	}
	named := map[string]bool{}
	for _, v := range entry.Packages[0].Variables {
		named[v.Name] = true
		if is, known := secret[v.Name]; !known || is != v.IsSecret {
			t.Errorf("%s: read by the server %t, a secret %t", v.Name, known, is)
		}
	}
	for _, d := range forges.All() {
		for _, v := range d.Variables {
			if v.Needed && !named[v.Name] {
				t.Errorf("server.json does not name %s", v.Name)
			}
		}
	}
}

// released is the version of the source, which CHANGELOG.md begins with.
func released(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^## (\S+), `).FindStringSubmatch(read(t, "CHANGELOG.md"))
	if found == nil {
		t.Fatal("CHANGELOG.md has no version")
	}
	return found[1]
}

func TestThePluginHasTheVersionOfTheSource(t *testing.T) {
	const folder = "plugins/claudeops/"
	var plugin struct{ Name, Version, Description string }
	var market struct {
		Plugins []struct{ Name, Source, Description string }
	}
	must.Do(t, json.Unmarshal([]byte(read(t, folder+".claude-plugin/plugin.json")), &plugin),
		json.Unmarshal([]byte(read(t, ".claude-plugin/marketplace.json")), &market))
	var servers struct {
		Servers map[string]struct {
			AlwaysLoad bool
			Args       []string
			Env        map[string]string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(read(t, folder+".mcp.json")), &servers); err != nil ||
		!servers.Servers["claudeops"].AlwaysLoad {
		t.Errorf("the tools of the plugin are not shown to the model at once: %+v, %v", servers, err)
	}
	if s := servers.Servers["claudeops"]; len(s.Env) != 0 || !slices.Equal(s.Args, []string{"mcp-server"}) {
		t.Errorf("the plugin decides settings in place of the operator: %q, %q", s.Env, s.Args)
	}
	if plugin.Version != released(t) || len(market.Plugins) != 1 || market.Plugins[0].Name != plugin.Name ||
		market.Plugins[0].Source != "./"+strings.TrimSuffix(folder, "/") ||
		market.Plugins[0].Description != plugin.Description {
		t.Errorf("plugin %+v, marketplace %+v; the source is %s", plugin, market, released(t))
	}
}

// The image of a release is that of the Dockerfile, but for where its programs come from.
func TestTheImageOfAReleaseIsTheSame(t *testing.T) {
	cmd := exec.Command("sed", "-f", filepath.Join("deploy", "packages", "dockerfile.sed"), "Dockerfile")
	cmd.Dir = top
	text, err := cmd.Output()
	must.Do(t, err)
	all, err := deploytest.ParseDockerfile(string(text))
	if err != nil || len(all) != 2 {
		t.Fatalf("%d stages, %v:\n%s", len(all), err, text)
	}
	_, cli, final := stages(t)
	if !reflect.DeepEqual(all[0], cli) || all[1].Base != final.Base {
		t.Errorf("the stages are\n%+v\n%+v, want\n%+v\n%+v", all[0], all[1], cli, final)
	}
	var want []string
	for _, c := range final.Each("COPY") {
		if strings.HasPrefix(c.Args, "prompts ") { // the licences of others, which only a release has
			want = append(want, "LICENSE dist-files/THIRD_PARTY_NOTICES.txt /app/")
		}
		want = append(want, regexp.MustCompile(`^--from=build /out/`).ReplaceAllString(c.Args, "$${TARGETPLATFORM}/"))
	}
	var got []string
	for _, c := range all[1].Each("COPY") {
		got = append(got, c.Args)
	}
	if !slices.Equal(got, want) || all[1].Last("CMD").Args != final.Last("CMD").Args ||
		all[1].Last("USER").Args != final.Last("USER").Args {
		t.Errorf("the image of a release copies %q, want %q", got, want)
	}
}

// Actions are named by a commit, since a tag can be moved, and get no more rights than they are given.
func TestWorkflowsNameTheirActionsByCommit(t *testing.T) {
	var files []string
	for _, folder := range []string{".github", ".gitea"} {
		found, err := filepath.Glob(filepath.Join(top, folder, "workflows", "*.yml"))
		must.Do(t, err)
		files = append(files, found...)
	}
	if len(files) != 4 {
		t.Fatalf("workflows %q", files)
	}
	pinned := regexp.MustCompile(`^(https://github\.com/)?[a-z-]+/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	for _, file := range files {
		text := operationtest.ReadFile(t, file)
		uses := regexp.MustCompile(`(?m)uses: *(.+)$`).FindAllStringSubmatch(string(text), -1)
		for _, use := range uses {
			if !pinned.MatchString(use[1]) {
				t.Errorf("%s uses %s", file, use[1])
			}
		}
		var workflow struct {
			Permissions map[string]string `yaml:"permissions"`
		}
		must.Do(t, yaml.Unmarshal(text, &workflow))
		for what, right := range workflow.Permissions {
			if what != "contents" || right != "read" {
				t.Errorf("%s gives every job %s: %s", file, what, right)
			}
		}
		if len(uses) == 0 || workflow.Permissions == nil {
			t.Errorf("%s uses %d actions with the permissions %v", file, len(uses), workflow.Permissions)
		}
	}
}

func TestManifestsOfKubernetesAreValid(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(top, "deploy", "kubernetes", "*", "*.yaml"))
	more, moreErr := filepath.Glob(filepath.Join(top, "deploy", "kubernetes", "overlays", "*", "*.yaml"))
	must.Do(t, err, moreErr)
	valid, count := schema(t, "kubernetes.schema.json"), 0
	for _, file := range append(files, more...) {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		f, err := os.Open(file)
		must.Do(t, err)
		decoder := yaml.NewDecoder(f)
		for {
			var manifest any
			if err := decoder.Decode(&manifest); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			count++
			if err := valid.Validate(asJSON(t, manifest)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if count != 6 {
		t.Errorf("%d manifests", count)
	}
	broken := map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "x"},
		"spec": map[string]any{"port": 80}}
	if valid.Validate(asJSON(t, broken)) == nil {
		t.Error("a field that does not exist is let through")
	}
}

type podSpec struct {
	Containers []struct {
		Env []struct {
			Name, Value string
		}
		VolumeMounts []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
		SecurityContext map[string]any `yaml:"securityContext"`
	}
	SecurityContext map[string]any `yaml:"securityContext"`
}

func TestThePodHasThePlacesAndTheSecretsOfTheImage(t *testing.T) {
	var manifest struct {
		Spec struct{ Template struct{ Spec podSpec } }
	}
	must.Do(t, yaml.Unmarshal([]byte(read(t, "deploy/kubernetes/base/deployment.yaml")), &manifest))
	pod := manifest.Spec.Template.Spec
	if len(pod.Containers) != 1 {
		t.Fatalf("%d containers", len(pod.Containers))
	}
	c := pod.Containers[0]
	var got, want, mounts []string
	for _, e := range c.Env {
		got = append(got, e.Name+"="+e.Value)
	}
	for _, v := range secrets() {
		want = append(want, v.Name+"_FILE=/run/secrets/claudeops/"+secretFile(v))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("variables of secrets are\n%q, want\n%q", got, want)
	}
	for _, m := range c.VolumeMounts {
		mounts = append(mounts, m.MountPath)
	}
	for _, m := range composed(t).Services["claudeops"].Volumes {
		if !slices.Contains(mounts, m.Target) {
			t.Errorf("nothing is mounted at %s", m.Target)
		}
	}
	if pod.SecurityContext["runAsUser"] != 10001 || pod.SecurityContext["runAsNonRoot"] != true ||
		c.SecurityContext["readOnlyRootFilesystem"] != true ||
		c.SecurityContext["allowPrivilegeEscalation"] != false {
		t.Errorf("the pod runs with %v, the container with %v", pod.SecurityContext, c.SecurityContext)
	}
}

// Tagging a version that the files do not name would publish another one.
func TestAReleaseWhoseVersionsDifferIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ tag, file, from, to, says string }{
		"they agree":             {tag: "v1.2.3"},
		"a candidate":            {tag: "v1.2.3-rc.1", file: "CHANGELOG.md", from: "2026-11-26", to: "unreleased"},
		"no tag of a version":    {tag: "1.2", says: "is not of the form"},
		"another changelog":      {tag: "v1.2.4", says: "the newest version of CHANGELOG.md is"},
		"a changelog of no date": {"v1.2.3", "CHANGELOG.md", "2026-11-26", "unreleased", "has no date"},
		"another server.json": {"v1.2.3", "server.json", `"version": "1.2.3"`, `"version": "1.2.2"`,
			"server.json has another version"},
		"another image there": {"v1.2.3", "server.json", "claudeops:1.2.3", "claudeops:1.2.2", "names another image"},
		"other manifests":     {"v1.2.3", "kustomization.yaml", "1.2.3", "1.2.2", "the manifests of Kubernetes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{
				"CHANGELOG.md": "# Changelog\n\n## 1.2.3, 2026-11-26\n\n## 1.2.2, 2026-11-01\n",
				"server.json": "{\n  \"version\": \"1.2.3\",\n  \"packages\": [{\"identifier\": " +
					"\"ghcr.io/claudeops/claudeops:1.2.3\"}]\n}\n",
				"deploy/kubernetes/base/kustomization.yaml": "    newTag: 1.2.3\n",
			} {
				if filepath.Base(file) == c.file {
					text = strings.Replace(text, c.from, c.to, 1)
				}
				path := filepath.Join(dir, file)
				must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
			}
			script, err := filepath.Abs(filepath.Join(top, "deploy", "packages", "release.sh"))
			must.Do(t, err)
			cmd := exec.Command("bash", script, c.tag)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if (err == nil) != (c.says == "") || !strings.Contains(string(out), c.says) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
