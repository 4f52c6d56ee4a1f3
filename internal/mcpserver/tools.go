package mcpserver

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
)

// Names of the tools. They are a contract: prompts, settings and clients name them.
const (
	ToolCreatePR    = "create_pr"
	ToolListPRs     = "list_prs"
	ToolGetPRStatus = "get_pr_status"
)

// ToolNames returns the tools in the order of tools/list.
func ToolNames() []string { return []string{ToolCreatePR, ToolGetPRStatus, ToolListPRs} }

//go:embed schema/*.json
var schemas embed.FS

// definition describes one tool to clients.
type definition struct {
	name, title, description        string
	readOnly, destructive, repeatOK bool
}

// definitions describes the tools. create_pr is no destructive tool: it only adds a branch and a pull request. The same
// call again returns the pull request that exists, so it is idempotent.
func definitions() []definition {
	return []definition{
		{
			name: ToolCreatePR, title: "Propose a change",
			description: "Propose a change to checks, playbooks, skills or manifests as one pull request, which a person reviews " +
				"and merges. All files go into one commit. A refusal names every rule that was broken and what to do; do not " +
				"repeat a refused call unchanged. The same change again returns the pull request that exists (reused). With " +
				"dry_run in the answer nothing was written.",
			repeatOK: true,
		},
		{
			name: ToolListPRs, title: "List open proposals",
			description: "List the open pull requests of ours (label claude-ops) in a repository, with the files that each changes. " +
				"Look here before you propose.",
			readOnly: true, repeatOK: true,
		},
		{
			name: ToolGetPRStatus, title: "Read a pull request",
			description: "State, mergeability, reviews and CI checks of one pull request.",
			readOnly:    true, repeatOK: true,
		},
	}
}

// tool builds the definition's MCP form. Every hint is explicit, since the library's defaults say otherwise.
func (d definition) tool() (mcp.Tool, error) {
	input, err := schema(d.name + ".input.json")
	if err != nil {
		return mcp.Tool{}, err
	}
	output, err := schema(d.name + ".output.json")
	if err != nil {
		return mcp.Tool{}, err
	}
	t := mcp.NewToolWithRawSchema(d.name, d.description, input)
	t.RawOutputSchema = output
	t.Title = d.title
	openWorld := true
	t.Annotations = mcp.ToolAnnotation{
		Title: d.title, ReadOnlyHint: &d.readOnly, DestructiveHint: &d.destructive,
		IdempotentHint: &d.repeatOK, OpenWorldHint: &openWorld,
	}
	return t, nil
}

// schema reads an embedded schema without its white space: clients send tools/list to a model.
func schema(name string) (json.RawMessage, error) {
	text, err := schemas.ReadFile("schema/" + name)
	if err != nil {
		return nil, fmt.Errorf("embedded schema: %w", err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return nil, fmt.Errorf("embedded schema %s: %w", name, err)
	}
	return b.Bytes(), nil
}
