package outgoing

// Texts in the message of a commit, wherever they stand, that switch CI off: of GitHub Actions, Gitea and Forgejo, GitLab,
// Woodpecker, Azure Pipelines and others ("[skip netlify]").
const (
	squareForm = `(?i)\[[\s_*~-]*(?:(?:skip|no)[\s_*~:-]*(` + systems + `)|` + systems + `[\s_*~:-]*(skip)|` +
		`skip[\s_*~:-]+([a-z][a-z0-9-]{0,20})|[a-z][a-z0-9-]{0,20}[\s_*~:-]+(skip))[\s_*~-]*\]`
	systems = `(?:ci|cd|cicd|actions?|builds?|checks?|deploy(?:ments?)?|pipelines?|tests?|workflows?|lint|release|all)`

	starsForm      = `(?i)\*\s*\*\s*\*[\s_-]*no[\s_-]*(ci)[\s_-]*\*\s*\*\s*\*`
	skipChecksForm = `(?i)(?:skip|request)[\s_-]*checks?\s*[:=]\s*(true|yes|1|on)`
)

// switches puts the word that matters into brackets of its own.
func (w *rewriter) switches(v *view) []edit {
	var out []edit
	add := func(found []int) {
		for i := 2; i < len(found); i += 2 {
			if found[i] < 0 {
				continue
			}
			w.warn("%s in the %s was changed so that it switches no checks off",
				quote(string(v.text[found[0]:found[1]])), w.where)
			out = append(out, insertion(int(v.from[found[i]]), "("), insertion(int(v.to[found[i+1]-1]), ")"))
		}
	}
	for _, found := range w.forms.square.FindAllSubmatchIndex(v.text, -1) {
		add(found)
	}
	for _, found := range w.forms.stars.FindAllSubmatchIndex(v.text, -1) {
		add(found)
	}
	for _, found := range w.forms.skipChecks.FindAllSubmatchIndex(v.text, -1) {
		add(found)
	}
	return out
}
