package config

import (
	"log/slog"
	"path/filepath"
	"strings"
)

// Definitions is where definitions of agents and tools are looked for, in the words of Fractary Forge.
type Definitions struct {
	ConfigFile string // "" to look in project and home
	CacheDir   string // "" for the configuration's or the default
	Home       string // the user's, absolute; "" for none
	Token      string // of registries of type stockyard that name no variable
	// LogLevel is the lowest level that mcp-server and serve log where the toolset is enabled; default slog.LevelInfo.
	LogLevel slog.Level
}

func definitions(e *env) Definitions {
	d := Definitions{ConfigFile: e.get("FRACTARY_CONFIG"), CacheDir: e.get("FRACTARY_CACHE_DIR"), Token: e.secret("FRACTARY_REGISTRY_TOKEN")}
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

// RegistryToken reads the variable that a registry's configuration names, by the rules for all variables.
func RegistryToken(lookup func(string) (string, bool), name string) string {
	e := env{lookup: lookup}
	return e.variableOrFile(name)
}

func definitionVariables() []Variable {
	return []Variable{
		{Name: "FRACTARY_CONFIG", Meaning: "configuration of definitions; unset means .fractary/config.json of the project, then of the user"},
		{Name: "FRACTARY_CACHE_DIR", Meaning: "cache of registries; unset means ~/.fractary/cache"},
		{Name: "FRACTARY_LOG_LEVEL", Meaning: "debug, info, warn or error: what mcp-server and serve log where the toolset definitions is enabled", Default: "info"},
		{Name: "FRACTARY_REGISTRY_TOKEN", Meaning: "token of registries of type stockyard", Secret: true},
	}
}
