package agentdocs

import (
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/settings/config"
)

// What the files are compared with. Everything that is not taken from another package stands here and nowhere else.

// serverName is the name under which .claude/mcp.json registers the server; Claude Code calls a tool X of it
// mcp__claudeops__X.
const serverName = "claudeops"

// containerBinary is where the container image has the binary.
const containerBinary = "/app/claudeops"

// toolNames are the tools of the MCP server (design §4).
func toolNames() (names []string) {
	for _, o := range prflow.Toolset(nil).Operations {
		if o.Tool.Title != "" {
			names = append(names, o.Name)
		}
	}
	return names
}

// bodySections are the sections of a proposal's body, in order.
func bodySections() []string { return []string{"## Observed", "## Why", "## What", "## Impact"} }

// proposerPrompts are the prompts of the tiers that may propose; observerPrompt is the one of the tier that may not.
func proposerPrompts() []string {
	return []string{"prompts/tier2-investigate.md", "prompts/tier3-remediate.md"}
}

const observerPrompt = "prompts/tier1-observe.md"

func prompts() []string { return append([]string{observerPrompt}, proposerPrompts()...) }

// codesForReaders are the codes that the two reading tools can answer, and those that tier 1 meets when it proposes.
func codesForReaders() []fault.Code {
	return []fault.Code{
		fault.TierDenied, fault.ReadOnly, fault.InvalidArgument, fault.NotFound, fault.RepoNotAllowed,
		fault.ProviderUnresolved, fault.ProviderDisabled, fault.RateLimited, fault.UpstreamError, fault.Timeout,
		fault.Internal,
	}
}

// serverVariables are the variables that the MCP server reads, with their defaults, which the server alone knows.
func serverVariables() map[string]string {
	vars := map[string]string{}
	for _, v := range config.ServerVariables(forges.All()) {
		vars[v.Name] = v.Default
	}
	return vars
}

// checkSections and playbookSections are the sections that every check and playbook has, in this order and no others.
func checkSections() []string {
	return []string{"Purpose", "Commands", "Normal", "Thresholds", "Record", "Escalate"}
}

func playbookSections() []string {
	return []string{"When to use", "Preconditions", "Steps", "Verification", "Rollback", "Stop when"}
}
