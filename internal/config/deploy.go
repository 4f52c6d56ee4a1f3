package config

import "path/filepath"

// Deploy is where procedures are put in place, in the words of agentpack.
type Deploy struct {
	AgentpackHome string // "" for .agentpack of the user's home
	CodexHome     string // "" for .codex of the user's home
	Home          string // the user's, absolute; "" for none
	Machine       string // what overlays call this machine; "" for its host name
}

func deploySettings(e *env) Deploy {
	d := Deploy{AgentpackHome: e.get("AGENTPACK_HOME"), CodexHome: e.get("CODEX_HOME"), Machine: e.get("AGENTPACK_MACHINE_ID")}
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
	}
}
