package config

import (
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/secretfile"
)

// Deploy says where procedures are deployed, in the terms of agentpack.
type Deploy struct {
	AgentpackHome string // "" for .agentpack of the user's home
	CodexHome     string // "" for .codex of the user's home
	Home          string // the user's, absolute; "" for none
	Machine       string // what overlays call this machine; "" for its host name
	AfterMerge    bool   // serve deploys what was merged
	// GitCredentials is a file with what git signs in with at the addresses of procedures, in the form of git's credential
	// store; "" for none.
	GitCredentials string
	// repositories that the configuration comes from, as owner/name or provider:owner/name; none for the one of the
	// checkout
	Repos []string
}

func deploySettings(e *env) Deploy {
	d := Deploy{AgentpackHome: e.get("AGENTPACK_HOME"), CodexHome: e.get("CODEX_HOME"),
		Machine: e.get("AGENTPACK_MACHINE_ID")}
	d.AfterMerge, d.Repos = e.permission("CLAUDEOPS_DEPLOY_AFTER_MERGE"), splitList(e.get("CLAUDEOPS_DEPLOY_REPOS"))
	if d.GitCredentials = e.get("CLAUDEOPS_DEPLOY_GIT_CREDENTIALS"); d.GitCredentials != "" &&
		!filepath.IsAbs(d.GitCredentials) {
		e.warn("CLAUDEOPS_DEPLOY_GIT_CREDENTIALS is %s, which is no absolute path: it counts as unset",
			shown(d.GitCredentials))
		d.GitCredentials = ""
	}
	if d.GitCredentials != "" {
		text, _ := secretfile.Read(d.GitCredentials) // git's commands say that it cannot be read
		e.rememberWhole(secretfile.InAddresses(text)...)
	}
	for _, name := range d.Repos {
		if pattern, err := policy.ParseRepoPattern(name); err != nil ||
			strings.ContainsAny(pattern.Owner+pattern.Name, "*?[{") {
			e.warn("CLAUDEOPS_DEPLOY_REPOS has %s, which is neither owner/name nor provider:owner/name, and names no repository",
				shown(name))
		}
	}
	if home := e.get("HOME"); filepath.IsAbs(home) {
		d.Home = home
	}
	return d
}

func deployVariables() []Variable {
	return []Variable{
		{Name: "AGENTPACK_HOME", Meaning: "home of deployments: repo, cache, state; unset means ~/.agentpack"},
		{Name: "CODEX_HOME", Meaning: "folder of Codex; unset means ~/.codex"},
		{Name: "AGENTPACK_MACHINE_ID", Meaning: "what overlays call this machine; unset means its host name"},
		{Name: "CLAUDEOPS_DEPLOY_AFTER_MERGE", Meaning: "true lets serve deploy what was merged; unset means false",
			Default: "false"},
		{Name: "CLAUDEOPS_DEPLOY_REPOS",
			Meaning: "repositories that AGENTPACK_HOME/repo comes from; unset means the one that it was cloned from"},
		{
			Name: "CLAUDEOPS_DEPLOY_GIT_CREDENTIALS",
			Meaning: "file with a line https://USER:TOKEN@HOST for each host of private procedures, which its owner alone may " +
				"read; unset means that git signs in nowhere",
		},
	}
}
