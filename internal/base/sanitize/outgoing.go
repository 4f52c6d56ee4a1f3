// Package sanitize rewrites the title and the body that an agent gives to a pull request, so that on a forge they do
// nothing but be read. What a forge or a bot would act on (mentions, closing keywords, CI switches, trailers, bots'
// commands, images) is written so that they do not; what a rendered page would hide (HTML, comments, definitions,
// titles of links) is written so that it is seen. Both texts also become messages of commits, which are read without
// Markdown.
//
// The body is parsed with the grammars of the forges. Nothing is removed: characters are added, or written as an entity
// of the same character. Text that does none of this stays as it is, byte for byte. docs/explain/outgoing-text.md lists
// all cases.
package sanitize

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/textscan"
)

// Rules holds the mentions and keywords that the operator's policy allows. The zero value allows nothing.
type Rules struct {
	Mentions        []string // names that may be mentioned, without @, lower case; a team is org/team
	ClosingKeywords bool     // "fixes #1" may close issues
}

// maxRounds bounds how often a text is rewritten and parsed again. A change may bring up what was inside of something
// else; text that somebody wrote to be read needs two rounds or three.
const maxRounds = 10

// Title rewrites a title: one line, read without Markdown. The result may be longer. Rewriting it again changes
// nothing. warnings say what was changed, in English, at most maxWarnings of them.
//
// The text should be what the content gate accepts: valid UTF-8 without control and hidden characters. What is promised
// of the result is promised for such a text.
func (r Rules) Title(text string) (rewritten string, warnings []string) {
	w := newRewriter(r, "title")
	text = strings.ToValidUTF8(text, "\ufffd")
	for range maxRounds {
		next := w.apply(text, w.titleEdits(text))
		if next == text {
			break
		}
		text = next
	}
	return text, w.list()
}

// Body rewrites a Markdown body. A footer that follows after an empty line is a block of its own, outside of everything
// in the body. The result may be longer, has no space at its end, and rewriting it again changes nothing. A body that
// exceeds the bounds of package markdown, or whose rewriting comes to no end, is shown as one code block.
//
// warnings and the precondition are as for Title; a body may also have line ends, of either kind, and tabs.
func (r Rules) Body(text string) (rewritten string, warnings []string) {
	w := newRewriter(r, "body")
	text = strings.TrimRight(strings.ToValidUTF8(text, "\ufffd"), " \t\r\n")
	if isOneFence(text) {
		return w.sourceOnly(text), w.list()
	}
	next, why := w.harmless(text)
	if why == "" {
		return next, w.list()
	}
	w.warn("the body is shown as a code block, since %s", why)
	return w.sourceOnly(fenced(text)), w.list()
}

// harmless rewrites a body until nothing is left to change. If it fails, why says so: the body is too much to parse,
// the last round still changed it, a footer would be part of something in the body, or a change took something off the
// page, such as a star that has become a sign of emphasis.
func (w *rewriter) harmless(text string) (rewritten, why string) {
	var before []string // what each grammar's page shows of the text as it was written
	for range maxRounds {
		r, tooMuch := w.findEdits(text)
		if tooMuch != "" {
			return "", "it has " + tooMuch
		}
		if before == nil {
			before = r.shown
		}
		next := w.apply(text, r.edits)
		if next != text {
			text = next
			continue
		}
		if r.footerStands && keeps(r.shown, before) {
			return text, ""
		}
		break
	}
	return "", "no other form of it was found that hides nothing and does nothing"
}

// rewriter is one rewriting of one text.
type rewriter struct {
	*warnings
	text textRules
	page pageRules
}

func newRewriter(r Rules, where string) *rewriter {
	w := &warnings{where: where}
	return &rewriter{
		warnings: w, text: textRules{Rules: r, forms: compiledTextForms(), warnings: w},
		page: pageRules{forms: compiledPageForms(), warnings: w},
	}
}

// titleEdits returns the edits for a title: it is read as it is written, and by some readers (release notes) as
// Markdown.
func (w *rewriter) titleEdits(text string) []edit {
	var out []edit
	for _, v := range []*view{rawView(text), decodedView(text)} {
		out = append(out, w.text.switches(v)...)
		out = append(out, w.text.lines(v)...)
		out = append(out, w.text.mentions(v)...)
		out = append(out, w.text.closing(v)...)
		out = append(out, w.text.titleStart(v)...)
		out = append(out, w.text.titleMarkup(v)...)
	}
	return out
}

// sourceEdits returns the edits for what acts in the source of a body, in code as well: forges copy it into messages of
// commits, and bots read it as it is.
func (w *rewriter) sourceEdits(text string) []edit {
	v := rawView(text)
	out := w.text.switches(v)
	out = append(out, w.text.lines(v)...)
	out = append(out, w.text.marks(v)...)
	return append(out, w.text.bots(v)...)
}

// sourceOnly applies sourceEdits alone, to a text that is one code block.
func (w *rewriter) sourceOnly(text string) string {
	for range maxRounds {
		next := w.apply(text, w.sourceEdits(text))
		if next == text {
			break
		}
		text = next
	}
	return text
}

// bodyEdits is the result of reading a body.
type bodyEdits struct {
	edits        []edit
	shown        []string // what the page of each grammar shows
	footerStands bool
}

// findEdits finds out what is to be changed in a body, or what it has that is too much to parse.
func (w *rewriter) findEdits(text string) (r bodyEdits, tooMuch string) {
	r = bodyEdits{edits: append(w.sourceEdits(text), w.text.frontMatter(text)...), footerStands: true}
	for _, grammar := range grammars() {
		p, tooMuch := parsePage(grammar, text)
		if tooMuch != "" {
			return bodyEdits{}, tooMuch
		}
		r.footerStands = r.footerStands && p.footerStands
		r.shown = append(r.shown, p.words.String())
		for _, rule := range []func(*parsedBody) []edit{w.page.structure, w.page.math} {
			r.edits = append(r.edits, rule(p)...)
		}
		for _, rule := range []func(*view) []edit{w.text.switches, w.text.lines, w.text.mentions, w.text.closing,
			w.text.shortLinks, w.text.footers} {
			r.edits = append(r.edits, rule(p.view)...)
		}
	}
	return r, ""
}

// keeps reports whether each text of all holds the characters of its counterpart in before, in order, spaces aside.
func keeps(all, before []string) bool {
	for i := range all {
		rest := strings.ReplaceAll(all[i], "%40", "@")
		seen := textscan.Clean(before[i], len(before[i])+1)
		for _, want := range strings.ReplaceAll(seen, "%40", "@") {
			if want == ' ' || want == '\n' || want == '\r' || want == '\t' {
				continue
			}
			at := strings.IndexRune(rest, want)
			if at < 0 {
				return false
			}
			rest = rest[at+utf8.RuneLen(want):]
		}
	}
	return true
}

// edit puts something in the place of text[at:at+cut].
type edit struct {
	at, cut int
	put     string
}

// insertion puts text before an offset.
func insertion(at int, text string) edit { return edit{at: at, put: text} }

// entity writes the ASCII character at an offset as an entity: it is shown, and begins nothing.
func entity(text string, at int) edit {
	put := "&#" + strconv.Itoa(int(text[at])) + ";"
	switch text[at] {
	case '<':
		put = "&lt;"
	case '&':
		put = "&amp;"
	}
	return edit{at: at, cut: 1, put: put}
}

// apply makes the edits. Of two that touch the same characters the first is made; the other is found again, if it is
// still needed, in the next round.
func (*rewriter) apply(text string, edits []edit) string {
	if len(edits) == 0 {
		return text
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(a.at-b.at, b.cut-a.cut) })
	var b strings.Builder
	done, last := 0, edit{at: -1}
	for _, e := range edits {
		if e.at < done || e.at == last.at {
			continue
		}
		b.WriteString(text[done:e.at])
		b.WriteString(e.put)
		done, last = e.at+e.cut, e
	}
	b.WriteString(text[done:])
	return b.String()
}

// maxWarnings bounds the warnings about one text; maxQuoted bounds what each quotes of it, in bytes.
const (
	maxWarnings = 20
	maxQuoted   = 60
)

// warnings say what was changed in one text.
type warnings struct {
	where    string // "title" or "body"
	texts    []string
	overflow bool // some were left out
}

func (w *warnings) warn(format string, args ...any) {
	switch warning := fmt.Sprintf(format, args...); {
	case slices.Contains(w.texts, warning):
	case len(w.texts) == maxWarnings:
		w.overflow = true
	default:
		w.texts = append(w.texts, warning)
	}
}

func (w *warnings) list() []string {
	if w.overflow {
		return append(w.texts, fmt.Sprintf("there were more changes of this kind to the %s", w.where))
	}
	return w.texts
}

// quote returns a piece of the text for a warning.
func quote(text string) string {
	if len(text) > maxQuoted {
		text = strings.ToValidUTF8(text[:maxQuoted], "") + "..."
	}
	return fmt.Sprintf("%q", text)
}
