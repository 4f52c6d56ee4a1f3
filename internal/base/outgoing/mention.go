package outgoing

import (
	"slices"
	"sort"
	"strings"
)

// mentionForm is a mention. GitHub, Gitea and Forgejo accept letters, digits, '-', '_', '.' and one slash for teams.
// What may stand before the sign is judged by mentions.
const mentionForm = `@([A-Za-z0-9_-][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_-][A-Za-z0-9_.-]*)?)`

// isBot reports whether a name is that of a program that reads the source of a body, code included, and does what it
// finds there.
func isBot(name string) bool {
	const names = " allcontributors amazon-q bors claude codecov codecov-commenter codex coderabbit coderabbitai " +
		"copilot cursor " +
		"cursoragent deepsource deepsourcebot dependabot dependabot-preview devin devin-ai-integration ellipsis-dev gemini " +
		"gemini-cli " +
		"gemini-code-assist github-actions gitstream-cm google-labs-jules greptile greptileai greptile-apps homu imgbot jules " +
		"k8s-ci-robot kodiakhq meeseeksdev mergify mergifyio netlify openhands openhands-agent pre-commit-ci qodo qodo-ai " +
		"qodo-merge qodo-merge-pro renovate renovate-bot rfcbot rust-timer rustbot sourcery-ai sweep-ai swe-agent trunk-io "
	return strings.Contains(names, " "+strings.ToLower(name)+" ")
}

// mentions puts a space behind the @ of every mention that is not allowed. In an address, which mentions no one, the
// sign is written as %40, because the message of a commit has no addresses. A mail address mentions no one.
func (r textRules) mentions(v *view) []edit {
	var out []edit
	for _, found := range r.forms.mention.FindAllSubmatchIndex(v.text, -1) {
		at := found[0]
		if at > 0 && isAlphanumeric(v.text[at-1]) && !v.edge[at] {
			continue
		}
		name := strings.TrimRight(string(v.text[found[2]:found[3]]), ".-")
		if r.mayMention(name) && !slices.Contains(v.edge[at+1:found[3]], true) {
			continue
		}
		out = append(out, r.silence(v, at, name))
	}
	return out
}

// bots is like mentions for programs, wherever their name stands.
func (r textRules) bots(v *view) []edit {
	var out []edit
	for _, found := range r.forms.mention.FindAllSubmatchIndex(v.text, -1) {
		at := found[0]
		name, _, _ := strings.Cut(strings.TrimRight(string(v.text[found[2]:found[3]]), ".-_"), "/")
		if isBot(name) && !r.mayMention(name) && (at == 0 || !isAlphanumeric(v.text[at-1])) {
			out = append(out, r.silence(v, at, name))
		}
	}
	return out
}

func (r textRules) mayMention(name string) bool {
	return slices.Contains(r.Mentions, strings.ToLower(name))
}

// silence returns the edit for the @ at an index of the view.
func (r textRules) silence(v *view, at int, name string) edit {
	r.warn("the mention of %s in the %s was made silent", name, r.where)
	of := sort.Search(len(v.addresses), func(i int) bool { return v.addresses[i].to > at })
	if of < len(v.addresses) && v.addresses[of].from < at && isWebAddress(string(v.text[v.addresses[of].from:at])) {
		return edit{int(v.from[at]), int(v.to[at] - v.from[at]), "%40"}
	}
	return insertion(int(v.to[at]), " ")
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// isWebAddress reports whether a text begins like an address of the web, not like one of a mail box.
func isWebAddress(text string) bool {
	text = strings.ToLower(text)
	return strings.HasPrefix(text, "http") || strings.HasPrefix(text, "www.")
}
