package outgoing

import "regexp"

// Texts in the message of a commit, wherever they stand, that switch CI off: of GitHub Actions, Gitea and Forgejo,
// GitLab, Woodpecker, Azure Pipelines and others ("[skip netlify]").
const (
	squareForm = `(?i)\[[\s_*~-]*(?:(?:skip|no)[\s_*~:-]*(` + systems + `)|` + systems + `[\s_*~:-]*(skip)|` +
		`skip[\s_*~:-]+([a-z][a-z0-9-]{0,20})|[a-z][a-z0-9-]{0,20}[\s_*~:-]+(skip))[\s_*~-]*\]`
	systems = `(?:ci|cd|cicd|actions?|builds?|checks?|deploy(?:ments?)?|pipelines?|tests?|workflows?|lint|release|all)`

	starsForm      = `(?i)\*\s*\*\s*\*[\s_-]*no[\s_-]*(ci)[\s_-]*\*\s*\*\s*\*`
	skipChecksForm = `(?i)(?:skip|request)[\s_-]*checks?\s*[:=]\s*(true|yes|1|on)`
)

// switches puts words into them. What is put there begins and ends with a letter or a space where the switch had one,
// so that signs of emphasis next to it mean what they meant.
func (r textRules) switches(v *view) []edit {
	var out []edit
	add := func(found []int, before, after string) {
		for i := 2; i < len(found); i += 2 {
			if found[i] < 0 {
				continue
			}
			r.warn("%s in the %s was changed so that it switches no checks off", quote(string(v.text[found[0]:found[1]])),
				r.where)
			if before != "" {
				out = append(out, insertion(int(v.from[found[i]]), before))
			}
			if after != "" {
				out = append(out, insertion(int(v.to[found[i+1]-1]), after))
			}
		}
	}
	for _, form := range []*regexp.Regexp{r.forms.square, r.forms.stars} {
		for _, found := range form.FindAllSubmatchIndex(v.text, -1) {
			add(found, "", " as text")
		}
	}
	for _, found := range r.forms.skipChecks.FindAllSubmatchIndex(v.text, -1) {
		add(found, "(as text) ", "")
	}
	return out
}
