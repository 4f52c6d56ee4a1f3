package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// told returns what a client learns about the server before the first call: its instructions, and the descriptions of
// tools by name.
func (d *doors) told() (instructions string, tools map[string]string, size int) {
	d.Helper()
	greeting := d.mcp("initialize",
		`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"tester","version":"9"}}`)
	instructions, _ = greeting["instructions"].(string)
	list := d.mcp("tools/list", `{}`)
	tools = map[string]string{}
	for _, t := range list["tools"].([]any) {
		tool := t.(map[string]any)
		tools[tool["name"].(string)], _ = tool["description"].(string)
	}
	text, err := json.Marshal(list["tools"])
	if err != nil {
		d.Fatal(err)
	}
	return instructions, tools, len(instructions) + len(text) - strings.Count(string(text), `\u00`)*5
}

func TestWhatAModelIsToldDependsOnTheConfiguration(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		env           map[string]string
		says          []string
		saysNot       string
		ofCreate      string // what the description of create_pr says; "" for not listed
		repositoryURL bool
	}{
		"tier 2": {
			map[string]string{"CLAUDEOPS_TIER": "2"},
			[]string{"tier 2", "at most 3 files", "checks/*.md, playbooks/*.md", "propose with create_pr", "clone_url: file://"},
			"ry run", "prefer `edits`", true,
		},
		"tier 3 in dry run": {
			map[string]string{"CLAUDEOPS_TIER": "3", "CLAUDEOPS_DRY_RUN": "true"},
			[]string{"tier 3", "at most 100 files", "Dry run: create_pr checks everything and opens nothing"}, "",
			"in dry run: nothing is written", true,
		},
		"tier 1": {
			map[string]string{"CLAUDEOPS_TIER": "1"}, []string{"tier 1, which reads", "into your report"}, "create_pr",
			"at tier 1 each call is refused", true,
		},
		"read-only": {
			map[string]string{"CLAUDEOPS_TIER": "2", "CLAUDEOPS_READ_ONLY": "true"}, []string{"reads only", "into your report"},
			"create_pr", "", true,
		},
		"a policy that cannot be read": {
			map[string]string{"CLAUDEOPS_TIER": "2", "CLAUDEOPS_POLICY": "/nonexistent/policy.yaml"}, []string{"reads only"},
			"create_pr",
			"Takes no proposals now", false,
		},
		"an allowlist": {
			map[string]string{"CLAUDEOPS_TIER": "2", "CLAUDEOPS_REPOS": "joe/infra,acme/*"},
			[]string{"Repositories: joe/infra (clone_url file://", "/joe/infra), acme/*"}, "OWNER", "prefer `edits`", true,
		},
		"no provider": {
			map[string]string{"CLAUDEOPS_TIER": "2", "CLAUDEOPS_LOCAL_ROOT": ""}, []string{"No provider is configured"},
			"clone_url", "prefer `edits`", false,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := newDoors(t)
			d.env["CLAUDEOPS_TOOLSETS"] = "pr"
			for variable, value := range c.env {
				d.env[variable] = value
			}
			instructions, tools, _ := d.told()
			for _, want := range c.says {
				if !strings.Contains(instructions, want) {
					t.Errorf("the instructions lack %q: %s", want, instructions)
				}
			}
			if c.saysNot != "" && strings.Contains(instructions, c.saysNot) {
				t.Errorf("the instructions have %q: %s", c.saysNot, instructions)
			}
			if strings.Contains(instructions, "clone_url") != c.repositoryURL {
				t.Errorf("the instructions say of clone URLs: %s", instructions)
			}
			if got, listed := tools["create_pr"]; listed != (c.ofCreate != "") || !strings.Contains(got, c.ofCreate) {
				t.Errorf("create_pr is described as %q", got)
			}
		})
	}
}

// maxTold bounds what a model reads of the default toolset before it does anything: 1,600 tokens. tools/list alone has
// less than 6,144.
const maxTold = 7000

func TestWhatAModelIsToldStaysSmallWhateverIsConfigured(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf("an-owner-with-a-long-name-%d/a-repository-with-a-long-name-%d", i, i))
	}
	for name, env := range map[string]map[string]string{
		"as it comes":      {},
		"a long allowlist": {"CLAUDEOPS_REPOS": strings.Join(many, ",")},
		"in dry run":       {"CLAUDEOPS_DRY_RUN": "true"},
		"all providers in dry run": {"CLAUDEOPS_DRY_RUN": "true", "GITHUB_TOKEN": "x", "GITEA_URL": "https://git.example.org",
			"GITEA_TOKEN": "y"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoors(t)
			d.env["CLAUDEOPS_TOOLSETS"], d.env["CLAUDEOPS_TIER"] = "pr", "2"
			for variable, value := range env {
				d.env[variable] = value
			}
			instructions, _, size := d.told()
			t.Logf("%d bytes, %d of them instructions", size, len(instructions))
			if size > maxTold {
				t.Errorf("instructions and tools have %d bytes, at most %d are wanted; %s", size, maxTold, instructions)
			}
		})
	}
}
