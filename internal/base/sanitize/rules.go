package sanitize

import (
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/base/textscan/secretrules"
)

// textRules find what acts in a text: mentions, closing keywords, switches of CI, commands, trailers. They look at a
// view, in which every space is ' ' or a line end, and code is opaque.
type textRules struct {
	Rules
	forms textForms
	*warnings
}

// textForms are the patterns of textRules.
type textForms struct {
	mention, closingEnd, issueAddress, pattern, frontMatter, titleStart, titleMarkup *regexp.Regexp
	closing, square, stars, skipChecks, signing, line, footer, mark                  filteredForm
}

// filteredForm is a pattern that runs only on views in which it may match.
type filteredForm struct {
	*regexp.Regexp
	filter secretrules.Filter
}

// newFilteredForm returns the pattern of an expression. Each of its matches contains one of the alternatives; none says
// that this is the expression itself.
func newFilteredForm(expression string, alternatives ...string) filteredForm {
	if len(alternatives) == 0 {
		alternatives = []string{expression}
	}
	return filteredForm{regexp.MustCompile(expression), secretrules.NewFilter(alternatives...)}
}

func (f filteredForm) findAll(v *view) [][]int {
	if !f.filter.MayMatch(v.folded()) {
		return nil
	}
	return f.FindAllSubmatchIndex(v.text, -1)
}

//nolint:gochecknoglobals // compiled once
var compiledTextForms = sync.OnceValue(newTextForms)

func newTextForms() textForms {
	return textForms{
		mention: regexp.MustCompile(mentionForm), closingEnd: regexp.MustCompile(closingForm + `$`),
		issueAddress: regexp.MustCompile(issueAddressForm), pattern: regexp.MustCompile(patternForm),
		frontMatter: regexp.MustCompile(frontMatterForm), titleStart: titleStartForm(), titleMarkup: titleMarkupForm(),
		closing: newFilteredForm(closingForm + referenceForm), square: newFilteredForm(squareForm),
		stars: newFilteredForm(starsForm), skipChecks: newFilteredForm(skipChecksForm),
		signing: newFilteredForm(signingForm), footer: newFilteredForm(footerForm), mark: newFilteredForm(markForm),
		line: newLineForm(),
	}
}

// pageRules find what a rendered page hides, or loads.
type pageRules struct {
	forms pageForms
	*warnings
}

// pageForms are the patterns of pageRules.
type pageForms struct{ media, drawn, language, label *regexp.Regexp }

//nolint:gochecknoglobals // compiled once
var compiledPageForms = sync.OnceValue(newPageForms)

func newPageForms() pageForms {
	return pageForms{
		media: mediaForm(), drawn: drawnForm(),
		language: regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+#._-]{0,19}$`),
		label:    regexp.MustCompile(`^[!-~ ]{1,40}$`),
	}
}

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

// closingForm is a keyword that changes an issue, up to where its reference begins: GitHub's and Gitea's keywords
// (docs.github.com, "Linking a pull request to an issue"; Gitea's CLOSE_KEYWORDS and REOPEN_KEYWORDS), and GitHub's
// mark of a duplicate. The forges allow a colon and one space; more is matched.
const closingForm = `(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?|reopen(?:s|ed)?|duplicate\s+of)\s*:?[\s(\[{'"]*`

// referenceForm is a reference to an issue or a pull request: #1, !1, GH-1, owner/name#1, its page.
const referenceForm = `((?:[\w.-]*/)*[\w.-]*[#!]\d+|GH-\d+|` + issueAddressForm + `)`

// issueAddressForm is the address of an issue's or a pull request's page.
const issueAddressForm = `(?:(?:https?://|www\.)[^\s\x00]*?)?/(?:issues|pull|pulls|merge_requests|work_items|discussions)/\d+`

// closing puts a word between keyword and reference: forges act only on neighbours.
func (r textRules) closing(v *view) []edit {
	if r.ClosingKeywords {
		return nil
	}
	var out []edit
	for _, found := range r.forms.closing.findAll(v) {
		r.warn("%s in the %s was changed so that it closes nothing", quote(string(v.text[found[0]:found[1]])), r.where)
		out = append(out, insertion(int(v.from[found[2]]), "(see) "))
	}
	for _, link := range v.links {
		if !r.forms.issueAddress.MatchString("/" + link.destination) {
			continue
		}
		if found := r.forms.closingEnd.FindIndex(v.text[max(0, link.at-40):link.at]); found != nil {
			r.warn("the link to an issue after a closing keyword in the %s was changed so that it closes nothing", r.where)
			out = append(out, insertion(link.source, "(see) "))
		}
	}
	return out
}

// newLineForm matches text that may act at the start of a line: a bot's command, a trailer of a commit. Signs of quotes
// and lists may precede it.
func newLineForm() filteredForm {
	acts := append([]string{slashForm}, append(commandForms(), trailerForms()...)...)
	return newFilteredForm(`(?im)^(?:[\s>]|[-*+]\s|\d+[.)]\s)*(`+strings.Join(acts, "|")+`)`, acts...)
}

// slashForm matches a word behind a slash or an exclamation mark.
const slashForm = `[/!]([a-z][a-z0-9]*(?:[_-][a-z0-9]+)*)(?:$|[^\w/.-]|\.(?:$|\s))`

// isCommand reports whether a word is a command of one of the bots of Kubernetes, Mergify, Renovate, Azure, Atlantis,
// code reviewers and others, although it stands behind an exclamation mark, or is a folder's name.
func isCommand(word string) bool {
	const words = " add_docs allow-tests apply approve approved area ask assign atlantis autofix azp backport backup bench " +
		"benchmark bot build cancel config run status " +
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

// isFolder reports whether a word behind a slash is a folder or an address that texts of operators name. Any other word
// there may be a command.
func isFolder(word string) bool {
	const words = " api app apps backup backups bin boot cache config data dev docs etc export healthz health home lib " +
		"lib64 live livez login logs media metrics mnt nix opt proc ready readyz root run sbin scripts share srv state " +
		"static status storage swap sys tmp usr users var volume volumes www "
	return strings.Contains(words, " "+strings.ToLower(word)+" ")
}

// commandForms match commands other than a word behind a slash.
func commandForms() []string {
	return []string{
		`(?:atlantis|digger|terrateam|spacelift)\s+(?:plan|apply|unlock|lock|approve\w*|import|state|destroy)\b`,
		`\.(?:deploy|noop|lock|unlock|rollback|apply|plan|destroy|shipit|restart)(?:$|\s)`,
		`(?:bors|homu)\b[^\n]*?(?:r[+=-]|merge|try|delegate|retry|ping|cancel|p=|d[+=])`,
		`r[+]\s*$`, `r=[\w-]+\s*$`, `r\?\s`,
		`(?:jenkins|ghprb|buildkite|elasticmachine)\b[,:]?\s[^\n]*?(?:test|build|retry|run|merge|please)`,
		`(?:re-?)?run\s+(?:ci|e2e|[\w-]+-ci(?:/[\w-]+)*)[.!]?\s*$`,
		`(?:ok to test|add to whitelist|(?:re)?test this(?: please)?|retest please)[.!]?\s*$`,
		`recheck(?: no bug| bug \d+)?[.!]?\s*$`, `pre-commit\.ci\s+(?:autofix|run)\b`,
	}
}

// trailerForms match git's trailers, and lines that programs look for in the same place: those of Gerrit, Zuul and
// release-please.
func trailerForms() []string {
	return []string{
		`(?:[a-z]+-){1,3}by\s*:`,
		`(?:change-id|depends-on|release-as|on-behalf-of|cherry-picked-from|skip-checks?|request-checks?|git-dch)\s*:`,
		`BREAKING[ -]CHANGE\s*:|(?:BEGIN|END)_(?:COMMIT_OVERRIDE|NESTED_COMMIT|VERSION_OVERRIDE)`,
	}
}

// lines puts a word before commands and trailers: they act only at the start of a line.
func (r textRules) lines(v *view) []edit {
	var out []edit
	for _, found := range r.forms.line.findAll(v) {
		if found[4] >= 0 && !r.commands(v, found[4], found[5]) {
			continue
		}
		r.warn("%s in the %s was changed so that no program takes it for a command or a trailer",
			quote(strings.TrimSpace(string(v.text[found[2]:found[3]]))), r.where)
		out = append(out, insertion(int(v.from[found[2]]), "(quoted) "))
	}
	return out
}

// commands reports whether the word behind a slash or an exclamation mark that stands at text[from:to] of a view may be
// a command. A folder's name is one only if it is known as a command and something follows.
func (r textRules) commands(v *view, from, to int) bool {
	word := string(v.text[from:to])
	rest, _, _ := strings.Cut(string(v.text[to:min(len(v.text), to+80)]), "\n")
	switch {
	case v.text[from-1] == '!':
		return isCommand(word)
	case isFolder(word):
		return isCommand(word) && strings.TrimSpace(rest) != "" && (!v.raw || !r.forms.pattern.MatchString(rest))
	}
	return isCommand(word) || !v.raw || !r.forms.pattern.MatchString(rest)
}

// patternForm matches how a line of awk goes on that began with a pattern. Of a text as it is written, code is a part.
const patternForm = `^[^/]*/\s*\{`

// markForm matches the beginning of a pull request's signed mark, which only our footer may have.
const markForm = `(?i)<!(\s*)--\s*claude-ops\s*:`

// marks splits what reads like a mark.
func (r textRules) marks(v *view) []edit {
	var out []edit
	for _, found := range r.forms.mark.findAll(v) {
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
	for _, found := range r.forms.footer.findAll(v) {
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
	found := r.forms.titleStart.FindSubmatchIndex(v.text)
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
	for _, found := range r.forms.titleMarkup.FindAllSubmatchIndex(v.text, -1) {
		r.warn("%s in the title was changed so that it is only text", quote(string(v.text[found[0]:found[1]])))
		out = append(out, insertion(int(v.to[found[0]]), " "))
	}
	return out
}

// Texts in the message of a commit, wherever they stand, that switch CI off: of GitHub Actions, Gitea and Forgejo,
// GitLab, Woodpecker, Azure Pipelines and others ("[skip netlify]").
const (
	squareForm = `(?i)\[[\s_*~-]*(?:(?:skip|no)[\s_*~:-]*(` + systems + `)|` + systems + `[\s_*~:-]*(skip)|` +
		`skip[\s_*~:-]+([a-z][a-z0-9-]{0,20})|[a-z][a-z0-9-]{0,20}[\s_*~:-]+(skip))[\s_*~-]*\]`
	systems = `(?:ci|cd|cicd|actions?|builds?|checks?|deploy(?:ments?)?|pipelines?|tests?|workflows?|lint|release|all)`

	starsForm      = `(?i)\*\s*\*\s*\*[\s_-]*no[\s_-]*(ci)[\s_-]*\*\s*\*\s*\*`
	skipChecksForm = `(?i)(?:skip|request)[\s_-]*checks?\s*[:=]\s*(true|yes|1|on)`
)

// signingForm matches words by which bots take an agreement as signed, wherever they stand in a comment.
const signingForm = `(?i)\bi\s+(?:do\s+)?(?:hereby\s+)?(sign|accept|agree\s+to)\s+(?:the\s+)?(?:[\w-]+\s+){0,4}?` +
	`(?:cla|dco|(?:contributor|licen[cs]e)\s+agreement|certificate\s+of\s+origin)\b`

// switches puts words into these, and into what signs an agreement. What is put there begins and ends with a letter or
// a space where the switch had one, so that signs of emphasis next to it mean what they meant.
func (r textRules) switches(v *view) []edit {
	const noSwitch = "it switches no checks off"
	var out []edit
	add := func(found []int, why, before, after string) {
		for i := 2; i < len(found); i += 2 {
			if found[i] < 0 {
				continue
			}
			r.warn("%s in the %s was changed so that %s", quote(string(v.text[found[0]:found[1]])), r.where, why)
			if before != "" {
				out = append(out, insertion(int(v.from[found[i]]), before))
			}
			if after != "" {
				out = append(out, insertion(int(v.to[found[i+1]-1]), after))
			}
		}
	}
	for _, form := range []filteredForm{r.forms.square, r.forms.stars} {
		for _, found := range form.findAll(v) {
			add(found, noSwitch, "", " as text")
		}
	}
	for _, found := range r.forms.skipChecks.findAll(v) {
		add(found, noSwitch, "(as text) ", "")
	}
	for _, found := range r.forms.signing.findAll(v) {
		add(found, "it signs nothing", "(as text) ", "")
	}
	return out
}
