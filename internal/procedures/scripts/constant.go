package scripts

import (
	"slices"
	"strconv"
	"strings"
)

// constantOf returns the value of an expression that is a constant: a text, a number, $true, $false, $null, or a list
// of these.
func constantOf(tokens []token) Constant {
	const mostParentheses = 10
	for range mostParentheses {
		if len(tokens) > 2 && tokens[0].is("(") && tokens[len(tokens)-1].is(")") && closes(tokens) {
			tokens = tokens[1 : len(tokens)-1]
		}
	}
	switch {
	case len(tokens) == 0:
		return Constant{}
	case len(tokens) == 1:
		return single(tokens[0])
	case tokens[0].is("@(") && tokens[len(tokens)-1].is(")") && closes(tokens):
		return list(tokens[1 : len(tokens)-1])
	case slices.ContainsFunc(tokens, func(t token) bool { return t.is(",") }):
		return list(tokens)
	}
	return Constant{}
}

// closes reports whether the first bracket is closed by the last token.
func closes(tokens []token) bool {
	depth := 0
	for i, t := range tokens {
		switch {
		case t.kind == punct && strings.HasSuffix(t.text, "("):
			depth++
		case t.is(")"):
			depth--
		}
		if depth == 0 {
			return i == len(tokens)-1
		}
	}
	return false
}

// list returns a list of constants that commas or line ends part; unknown if one of them is none.
func list(tokens []token) Constant {
	out := []any{}
	for len(tokens) > 0 {
		c := single(tokens[0])
		if !c.Known {
			return Constant{}
		}
		out = append(out, c.Value)
		tokens = tokens[1:]
		if len(tokens) > 0 && tokens[0].is(",") {
			tokens = tokens[1:]
		}
	}
	return Constant{Known: true, Value: out}
}

func single(t token) Constant {
	switch t.kind {
	case constant:
		return Constant{Known: true, Value: t.text}
	case variable:
		switch strings.ToLower(t.text) {
		case "true":
			return Constant{Known: true, Value: true}
		case "false":
			return Constant{Known: true, Value: false}
		case "null":
			return Constant{Known: true}
		}
	case word:
		return number(t.text)
	}
	return Constant{}
}

// number reads a number of PowerShell: decimal or hexadecimal, with a sign and with a factor such as MB.
func number(text string) Constant {
	factor := int64(1)
	lower := strings.ToLower(text)
	for suffix, n := range map[string]int64{"kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40} {
		if trimmed, ok := strings.CutSuffix(lower, suffix); ok && trimmed != "" && !strings.HasPrefix(lower, "0x") {
			lower, factor = trimmed, n
		}
	}
	if trimmed := strings.TrimRight(lower, "ld"); trimmed != lower && !strings.HasPrefix(lower, "0x") {
		lower = trimmed
	}
	if n, err := strconv.ParseInt(lower, 0, 64); err == nil && !strings.HasPrefix(strings.TrimLeft(lower, "+-"), "0o") {
		return Constant{Known: true, Value: n * factor}
	}
	if f, err := strconv.ParseFloat(lower, 64); err == nil {
		return Constant{Known: true, Value: f * float64(factor)}
	}
	return Constant{}
}
