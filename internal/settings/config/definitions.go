package config

import (
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/settings/sources"
)

// Definitions says where definitions of agents and tools are looked for, in the terms of Fractary Forge.
type Definitions struct {
	ConfigFile string // "" to look in home, and for what narrows it in the project
	CacheDir   string // "" for the configuration's or the default
	Home       string // the user's, absolute; "" for none
	Token      string // of registries of type stockyard that name no variable
	// LogLevel is the lowest level that mcp-server and serve log where the toolset is enabled; default slog.LevelInfo.
	LogLevel slog.Level
}

func definitions(e *env) Definitions {
	d := Definitions{ConfigFile: e.get("FRACTARY_CONFIG"), CacheDir: e.get("FRACTARY_CACHE_DIR"),
		Token: e.secret("FRACTARY_REGISTRY_TOKEN")}
	if home := e.get("HOME"); filepath.IsAbs(home) {
		d.Home = home
	}
	switch level := e.get("FRACTARY_LOG_LEVEL"); strings.ToLower(level) {
	case "", "info":
	case "debug":
		d.LogLevel = slog.LevelDebug
	case "warn", "warning":
		d.LogLevel = slog.LevelWarn
	case "error":
		d.LogLevel = slog.LevelError
	default:
		e.warn("FRACTARY_LOG_LEVEL is debug, info, warn or error, not %.20q; info is used", level)
	}
	return d
}

// RegistryToken reads the variable that the operator's configuration of a registry names, by the rules for all
// variables; "" for one that sources.Reserved keeps from registries.
func RegistryToken(lookup func(string) (string, bool), name string) string {
	if sources.Reserved(name) {
		return ""
	}
	e := env{lookup: lookup}
	return e.variableOrFile(name)
}

func definitionVariables() []Variable {
	return []Variable{
		{Name: "FRACTARY_CONFIG",
			Meaning: "the operator's configuration of definitions, outside of projects; unset means ~/.fractary/config.json, " +
				"of which a project's may choose"},
		{Name: "FRACTARY_CACHE_DIR",
			Meaning: "cache of registries, a folder outside of projects; unset means ~/.fractary/cache"},
		{Name: "FRACTARY_LOG_LEVEL",
			Meaning: "debug, info, warn or error: what mcp-server and serve log where the toolset definitions is enabled",
			Default: "info"},
		{Name: "FRACTARY_REGISTRY_TOKEN", Meaning: "token of registries of type stockyard in the operator's configuration",
			Secret: true},
	}
}
