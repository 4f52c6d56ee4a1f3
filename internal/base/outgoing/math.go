package outgoing

import (
	"bytes"
	"strings"
)

// math writes the signs of formulas as entities where a formula could hide text or reach over the end of code: GitHub
// and Gitea render what stands between dollars, older versions of Gitea also between \( and \), and \[ and \].
func (r pageRules) math(p *page) []edit {
	var out []edit
	for _, b := range p.nodes.blocks {
		out = append(out, r.formulas(p, b)...)
	}
	return out
}

// formulas returns the edits of math for one block.
func (r pageRules) formulas(p *page, b span) []edit {
	var dollars, escaped []int
	for i := b.from; i < b.to; i++ {
		switch {
		case p.view.is(i, '$'):
			dollars = append(dollars, int(p.view.from[i]))
		case (p.view.text[i] == '(' || p.view.text[i] == '[') && p.text[p.view.from[i]] == '\\':
			escaped = append(escaped, int(p.view.from[i]))
		}
	}
	var out []edit
	end := 0
	if b.to > b.from {
		end = min(int(p.view.to[b.to-1]), len(p.text))
	}
	if len(dollars) > 0 && mayBeFormula(p.text[dollars[0]:end]) {
		r.warn("dollars in the body are written so that they begin no formula")
		for _, at := range dollars {
			out = append(out, entity(p.text, at))
		}
	}
	for _, at := range escaped {
		rest := p.text[at:end]
		if closing := map[byte]string{'(': `\)`, '[': `\]`}[rest[1]]; strings.Contains(rest, closing) ||
			startsLine(p.text, at) {
			r.warn(`\%c in the body is written so that it begins no formula`, rest[1])
			out = append(out, edit{at, 2, entity(rest, 1).put})
		}
	}
	return out
}

// mayBeFormula reports whether text, which begins with a dollar, may be read as a formula with a command, a comment or
// code in it.
func mayBeFormula(text string) bool {
	return strings.HasPrefix(text, "$$") || strings.Contains(text[1:], "$$") ||
		strings.Contains(text[1:], "$") && strings.ContainsAny(text, "\\%{`")
}

func startsLine(text string, at int) bool {
	return strings.TrimLeft(text[strings.LastIndexByte(text[:at], '\n')+1:at], " \t>") == ""
}

// shortLinks splits [[: Gitea makes links and images of what follows it.
func (r textRules) shortLinks(v *view) []edit {
	var out []edit
	for i := 1; i < len(v.text); i++ {
		if v.text[i] == '[' && v.text[i-1] == '[' && bytes.Contains(v.text[i:min(len(v.text), i+1000)], []byte("]]")) {
			r.warn("[[ in the body was split, so that it begins no link of a wiki")
			out = append(out, insertion(int(v.from[i]), " "))
		}
	}
	return out
}

// frontMatter writes a rule in the first line with other signs if it begins data of a page that Gitea would not show as
// they are: comments, and what tells it how to show them.
func (r textRules) frontMatter(text string) []edit {
	found := r.forms.frontMatter.FindStringSubmatchIndex(text)
	if found == nil || plainData(text[found[4]:found[5]]) {
		return nil
	}
	r.warn("the rule in the first line of the body is written as ***")
	return []edit{{found[2], found[3] - found[2], strings.Repeat("*", found[3]-found[2])}}
}

// frontMatterForm is a rule in the first line, and what stands between it and the next one.
const frontMatterForm = `(?s)^[ \t\r\n]*(-{3,})[ \t\r]*\n(.*?\n|)-{3,}[ \t\r]*(?:\n|$)`

// plainData reports whether data of a page are shown as they are written: names with values and lists, without
// comments, signs of YAML that stand for something else, and Gitea's own settings.
func plainData(data string) bool {
	for line := range strings.Lines(data) {
		line = strings.TrimLeft(line, " \t-")
		name, value, named := strings.Cut(line, ":")
		if !named {
			name, value = "", line
		}
		value = strings.TrimSpace(value)
		if strings.HasPrefix(line, "#") || strings.Contains(line, " #") || strings.Contains(line, "\t#") ||
			strings.ContainsAny(name, "\"'{}[]&*!?%") || value != "" && strings.IndexByte("&*!%@`?{", value[0]) >= 0 ||
			strings.EqualFold(strings.TrimSpace(name), "gitea") || strings.HasPrefix(strings.TrimSpace(name), "<<") {
			return false
		}
	}
	return true
}
