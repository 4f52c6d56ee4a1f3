package outgoing

import (
	"regexp"
	"strings"
)

// lineForm matches text that may act at the start of a line: a bot's command, a trailer of a commit. Signs of quotes
// and lists may precede it.
const lineForm = `(?im)^(?:[\s>]|[-*+]\s|\d+[.)]\s)*([/!]([a-z][a-z0-9]*(?:[_-][a-z0-9]+)*)(?:$|[\s:])|` + commandForm + `|` +
	trailerForm + `)`

// isCommand reports whether a word behind a slash is a command of one of the bots of Kubernetes, Mergify, Renovate,
// Azure, Atlantis, code reviewers and others.
func isCommand(word string) bool {
	const words = " add_docs allow-tests apply approve approved area ask assign atlantis autofix azp backport benchmark bot build cancel " +
		"cc cherry-pick " +
		"cherrypick cla claude clear close code-review codex command compile copilot deploy describe destroy draft " +
		"duplicate easycla " +
		"enhance estimate execute fix force-merge forge format gemini hold improve integrate joke kind label land lgtm lifecycle " +
		"lint lock meow merge milestone ok-to-test opencode override packit pipeline plan priority promote publish queue " +
		"ready rebase gcbrun payload e2e noop preview digger terraform update_changelog generate_labels " +
		"rebuild recheck reject release remove reopen request-review rerun resolve restart retest retitle retry review " +
		"rollback shipit " +
		"shrug sig skip spend squash start stop submit summary sync tag take test test-all tide title transfer " +
		"transfer-issue trigger " +
		"try unapprove unassign uncc undeploy unhold unlabel unlgtm unlock unqueue update update-branch verify woof "
	word = strings.ToLower(word)
	return strings.Contains(words, " "+word+" ") || strings.HasPrefix(word, "remove-") || strings.HasPrefix(word, "test-")
}

// isFolder reports whether a word behind a slash is a folder or an address that texts of operators name, so that a line
// which has nothing else is not a command. Any other word that stands alone may be one.
func isFolder(word string) bool {
	const words = " api app apps backup backups bin boot cache config data dev docs etc export healthz health home lib " +
		"lib64 live livez login logs media metrics mnt nix opt proc ready readyz root run sbin scripts share srv state " +
		"static status storage swap sys tmp usr users var volume volumes www "
	return strings.Contains(words, " "+strings.ToLower(word)+" ")
}

// commandForm matches commands other than a word behind a slash.
const commandForm = `(?:atlantis|digger|terrateam|spacelift)\s+(?:plan|apply|unlock|lock|approve\w*|import|state|destroy)\b` +
	`|\.(?:deploy|noop|lock|unlock|rollback|apply|plan|destroy)(?:$|\s)` +
	`|(?:bors|homu)\b[^\n]*?(?:r[+=-]|merge|try|delegate|retry|ping|cancel|p=|d[+=])` +
	`|r[+]\s*$|r=[\w-]+\s*$|r\?\s` +
	`|(?:jenkins|ghprb)\b[,:]?\s[^\n]*?(?:test|build|retry|please)` +
	`|(?:ok to test|add to whitelist|(?:re)?test this(?: please)?|retest please|recheck)[.!]?\s*$`

// trailerForm are git's trailers, and lines that programs look for in the same place: those of Gerrit, Zuul and
// release-please.
const trailerForm = `(?:[a-z]+-){1,3}by\s*:|(?:change-id|depends-on|release-as|on-behalf-of|cherry-picked-from|skip-checks?|` +
	`request-checks?|git-dch)\s*:|BREAKING[ -]CHANGE\s*:|(?:BEGIN|END)_(?:COMMIT_OVERRIDE|NESTED_COMMIT|VERSION_OVERRIDE)`

// lines puts a word before commands and trailers: they act only at the start of a line.
func (r textRules) lines(v *view) []edit {
	var out []edit
	for _, found := range r.forms.line.FindAllSubmatchIndex(v.text, -1) {
		if found[4] >= 0 && !r.commands(v, found[4], found[5]) {
			continue
		}
		r.warn("%s in the %s was changed so that no program takes it for a command or a trailer",
			quote(strings.TrimSpace(string(v.text[found[2]:found[3]]))), r.where)
		out = append(out, insertion(int(v.from[found[2]]), "(quoted) "))
	}
	return out
}

// commands reports whether the word behind a slash that stands at text[from:to] of a view is a command.
func (r textRules) commands(v *view, from, to int) bool {
	word := string(v.text[from:to])
	rest, _, _ := strings.Cut(string(v.text[to:min(len(v.text), to+80)]), "\n")
	return isCommand(word) || v.text[from-1] == '/' && strings.TrimSpace(rest) == "" && !isFolder(word)
}

// markForm matches the beginning of a pull request's signed mark, which only our footer may have.
const markForm = `(?i)<!(\s*)--\s*claude-ops\s*:`

// marks splits what reads like a mark.
func (r textRules) marks(v *view) []edit {
	var out []edit
	for _, found := range r.forms.mark.FindAllSubmatchIndex(v.text, -1) {
		if found[2] == found[3] {
			r.warn("text in the body that reads like the mark of Claude Ops was split")
			out = append(out, insertion(int(v.from[found[2]]), " "))
		}
	}
	return out
}

// footerForm matches the beginning of our footer.
const footerForm = `(?im)^\s*(Proposed\s+by\s+an\s+agent\s+through\s+Claude\s+Ops)`

// footers marks text that reads like our footer.
func (r textRules) footers(v *view) []edit {
	var out []edit
	for _, found := range r.forms.footer.FindAllSubmatchIndex(v.text, -1) {
		r.warn("text in the body that reads like the footer of Claude Ops is marked as quoted")
		out = append(out, insertion(int(v.from[found[2]]), "(quoted) "))
	}
	return out
}

// titleStartForm returns the starts of a title by which git or a forge treats a commit or a pull request in a special
// way.
func titleStartForm() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^\s*((?:fixup|squash|amend)\s*!|\[\s*(?:wip|draft)\s*\]|(?:wip|draft)\s*:|\(draft\))`)
}

// titleStart puts such a start into brackets.
func (r textRules) titleStart(v *view) []edit {
	found := titleStartForm().FindSubmatchIndex(v.text)
	if found == nil {
		return nil
	}
	r.warn("%s in the title was changed so that it is only text", quote(string(v.text[found[2]:found[3]])))
	return []edit{insertion(int(v.from[found[2]]), "("), insertion(int(v.to[found[3]-1]), ")")}
}

// titleMarkupForm matches mark-up in a title that hides or loads something where the title is shown as Markdown, such
// as in notes of a release.
func titleMarkupForm() *regexp.Regexp {
	return regexp.MustCompile(`<()[!?]|<()/?[A-Za-z][^>]*>|!()\[[^\]]*[\](]`)
}

// titleMarkup puts a space into such mark-up.
func (r textRules) titleMarkup(v *view) []edit {
	var out []edit
	for _, found := range titleMarkupForm().FindAllSubmatchIndex(v.text, -1) {
		r.warn("%s in the title was changed so that it is only text", quote(string(v.text[found[0]:found[1]])))
		out = append(out, insertion(int(v.to[found[0]]), " "))
	}
	return out
}
