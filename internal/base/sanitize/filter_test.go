package sanitize

import (
	"strings"
	"testing"
)

// TestPatternsThatAreFilteredFindWhatTheyFoundBefore compares with the pattern alone, on texts that change their case,
// letters that count as ones of ASCII among them.
func TestPatternsThatAreFilteredFindWhatTheyFoundBefore(t *testing.T) {
	forms := compiledTextForms()
	cases := map[string]struct {
		form  filteredForm
		texts string // one a line
	}{
		"closing": {forms.closing, "fixes #1\nResolve: GH-7\nduplicate of !3\nREOPENED a/b#4\nclosed (https://a.b/c/issues/5"},
		"square":  {forms.square, "[skip ci]\n[no-deploy]\n[ci skip]\n[skip netlify]\n[travis skip]\n[ſKip CI]"},
		"stars":   {forms.stars, "***NO_CI***\n* * * no-ci * * *"},
		"skipChecks": {forms.skipChecks, "skip-checks: true\nrequest checks = yes\nSKIP_CHECK=1\nskipchecks:on\n" +
			"ſKip-checK: Yes"},
		"signing": {forms.signing, "I hereby sign the CLA\ni accept DCO\nI do agree to the contributor agreement\n" +
			"I sign the certificate of origin\nI ſign the license agreement"},
		"line": {forms.line, "/merge\n!plan\n> - /ok-to-test\natlantis apply\n.deploy\nbors r+\nr+\nr=me\nr? \n" +
			"jenkins, please test\nre-run ci\nrun a-ci\nok to test\nretest this please\nrecheck no bug\nadd to whitelist\n" +
			"pre-commit.ci run\nSigned-off-by: a\nChange-Id: 1\nſKip-checKs: a\ngit-dch: b\nBREAKING CHANGE: c\n" +
			"BEGIN_COMMIT_OVERRIDE\ndigger unlocK"},
		"footer": {forms.footer, "Proposed by an agent through Claude Ops\npropoſed by  an agent through claude opS"},
		"mark":   {forms.mark, "<!-- claude-ops: a\n<! -- CLAUDE-OPS :"},
	}
	for name, c := range cases {
		for _, text := range strings.Split(c.texts, "\n") {
			for _, text := range []string{text, strings.ToUpper(text), strings.ToLower(text)} {
				v := rawView("a\n" + text + "\n")
				if alone := len(c.form.FindAll(v.text, -1)); alone != 1 || len(c.form.findAll(v)) != alone {
					t.Errorf("%s: %q has %d matches, and with the filter %d", name, text, alone, len(c.form.findAll(v)))
				}
			}
		}
		if v := rawView(strings.Repeat("the house is open\n", 9)); c.form.filter.MayMatch(v.folded()) {
			t.Errorf("%s: the filter leaves ordinary words to the pattern", name)
		}
	}
}
