package scripts

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// call is the input of run.ps1. Named and Plain hold values as powerShellValue writes them.
type call struct {
	Path  string `json:"path"`
	Named any    `json:"named"`
	Plain any    `json:"plain"`
}

// powerShellCall returns the call of a script of PowerShell, in JSON.
func (s Script) powerShellCall(arguments map[string]any) ([]byte, error) {
	named, plain := map[string]any{}, []any{}
	if s.Note != "" {
		named, plain = bind(textsOf(arguments["args"]))
	}
	for _, p := range s.Parameters {
		if v, ok := s.given(arguments, p.Name); ok {
			named[p.Name] = v
		}
	}
	return json.Marshal(call{Path: s.Path, Named: powerShellValue(named), Plain: powerShellValue(plain)})
}

// powerShellValue returns a value that PowerShell's ConvertFrom-Json gives back as it is. A text that looks like a time
// would become one, and an object whose names differ in letter case alone would be an error: so each text begins with
// "=", and an object is a list of pairs.
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

// bind tells which plain words are names of parameters and which are values, since a list that run.ps1 hands on holds
// values alone: -Name takes the word behind it, unless that is a name too; -Name:value takes its own.
func bind(words []string) (named map[string]any, plain []any) {
	named, plain = map[string]any{}, []any{}
	for at := 0; at < len(words); at++ {
		name, own, joined := parameterName(words[at])
		switch {
		case name == "":
			plain = append(plain, words[at])
		case joined:
			named[name] = switchOr(own)
		case at+1 < len(words) && !isParameterName(words[at+1]):
			at++
			named[name] = words[at]
		default:
			named[name] = true
		}
	}
	return named, plain
}

func isParameterName(word string) bool {
	name, _, _ := parameterName(word)
	return name != ""
}

// parameterName returns the name in -Name or -Name:value; "" if the word is a value.
func parameterName(word string) (name, value string, joined bool) {
	rest, dashed := strings.CutPrefix(word, "-")
	name, value, joined = strings.Cut(rest, ":")
	first, _ := utf8.DecodeRuneInString(name)
	if !dashed || first != '_' && !unicode.IsLetter(first) || strings.ContainsFunc(name, unicode.IsSpace) {
		return "", "", false
	}
	return name, value, joined
}

// switchOr returns a text, or what $true and $false stand for.
func switchOr(text string) any {
	switch strings.ToLower(text) {
	case "$true":
		return true
	case "$false":
		return false
	}
	return text
}
