package scripts

import (
	"encoding/json"
	"maps"
	"slices"
)

// call is what run.ps1 reads. Named and Plain hold values as powerShellValue writes them.
type call struct {
	Path  string `json:"path"`
	Named any    `json:"named"`
	Plain any    `json:"plain"`
}

// powerShellCall is the call of a script of PowerShell, in JSON.
func (s Script) powerShellCall(arguments map[string]any) ([]byte, error) {
	named, plain := map[string]any{}, []any{}
	if s.Note != "" {
		for _, word := range textsOf(arguments["args"]) {
			plain = append(plain, word)
		}
	}
	for _, p := range s.Parameters {
		if v, ok := s.given(arguments, p.Name); ok {
			named[p.Name] = v
		}
	}
	return json.Marshal(call{Path: s.Path, Named: powerShellValue(named), Plain: powerShellValue(plain)})
}

// powerShellValue is a value that PowerShell's ConvertFrom-Json gives back as it is. A text that looks like a time would become one, and an
// object whose names differ in letter case alone would be an error: so each text begins with "=", and an object is a list of pairs.
func powerShellValue(v any) any {
	switch v := v.(type) {
	case string:
		return "=" + v
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			out = append(out, powerShellValue(item))
		}
		return out
	case map[string]any:
		pairs := make([]any, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			pairs = append(pairs, []any{"=" + name, powerShellValue(v[name])})
		}
		return map[string]any{"table": pairs}
	}
	return v
}
