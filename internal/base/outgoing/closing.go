package outgoing

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
	for _, found := range r.forms.closing.FindAllSubmatchIndex(v.text, -1) {
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
