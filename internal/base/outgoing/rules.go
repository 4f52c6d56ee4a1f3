package outgoing

import "regexp"

// textRules find what acts in a text: mentions, closing keywords, switches of CI, commands, trailers. They look at a
// view, in which every space is ' ' or a line end, and code is opaque.
type textRules struct {
	Rules
	forms textForms
	*warnings
}

// textForms are the patterns of textRules, compiled once for each text.
type textForms struct {
	mention, closing, closingEnd, issueAddress *regexp.Regexp
	square, stars, skipChecks                  *regexp.Regexp
	line, footer, mark, frontMatter            *regexp.Regexp
}

func newTextForms() textForms {
	return textForms{
		mention: regexp.MustCompile(mentionForm),
		closing: regexp.MustCompile(closingForm + referenceForm), closingEnd: regexp.MustCompile(closingForm + `$`),
		issueAddress: regexp.MustCompile(issueAddressForm),
		square:       regexp.MustCompile(squareForm), stars: regexp.MustCompile(starsForm),
		skipChecks: regexp.MustCompile(skipChecksForm),
		line:       regexp.MustCompile(lineForm), footer: regexp.MustCompile(footerForm), mark: regexp.MustCompile(markForm),
		frontMatter: regexp.MustCompile(frontMatterForm),
	}
}

// pageRules find what a rendered page hides, or loads.
type pageRules struct {
	forms pageForms
	*warnings
}

// pageForms are the patterns of pageRules, compiled once for each text.
type pageForms struct{ media, drawn, language, label *regexp.Regexp }

func newPageForms() pageForms {
	return pageForms{
		media: mediaForm(), drawn: drawnForm(),
		language: regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+#._-]{0,19}$`),
		label:    regexp.MustCompile(`^[!-~ ]{1,40}$`),
	}
}
