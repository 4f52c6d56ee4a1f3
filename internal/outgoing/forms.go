package outgoing

import "regexp"

// forms are the patterns that the rules look for in a view, compiled once for each text. In a view every space is ' ' or
// a line end, and code is opaque.
type forms struct {
	mention, closing, closingEnd, issueAddress *regexp.Regexp
	square, stars, skipChecks                  *regexp.Regexp
	line, footer, mark                         *regexp.Regexp
	media, drawn, language, label              *regexp.Regexp
}

func newForms() forms {
	return forms{
		mention: regexp.MustCompile(mentionForm),
		closing: regexp.MustCompile(closingForm + referenceForm), closingEnd: regexp.MustCompile(closingForm + `$`),
		issueAddress: regexp.MustCompile(issueAddressForm),
		square:       regexp.MustCompile(squareForm), stars: regexp.MustCompile(starsForm), skipChecks: regexp.MustCompile(skipChecksForm),
		line: regexp.MustCompile(lineForm), footer: regexp.MustCompile(footerForm), mark: regexp.MustCompile(markForm),
		media: mediaForm(), drawn: drawnForm(),
		language: regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+#._-]{0,19}$`),
		label:    regexp.MustCompile(`^[!-~ ]{1,40}$`),
	}
}
