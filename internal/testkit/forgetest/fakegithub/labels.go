package fakegithub

import "regexp"

// labelLook holds the properties of a label besides its name. Description is nil for none.
type labelLook struct {
	color       string
	description any
	isDefault   bool
}

// plainColor is the colour of labels made in passing, without one.
const plainColor = "ededed"

// stockLabels returns the labels that GitHub defines in a new repository.
func stockLabels() map[string]labelLook {
	return map[string]labelLook{
		"bug":              {"d73a4a", "Something isn't working", true},
		"documentation":    {"0075ca", "Improvements or additions to documentation", true},
		"duplicate":        {"cfd3d7", "This issue or pull request already exists", true},
		"enhancement":      {"a2eeef", "New feature or request", true},
		"good first issue": {"7057ff", "Good for newcomers", true},
		"help wanted":      {"008672", "Extra attention is needed", true},
		"invalid":          {"e4e669", "This doesn't seem right", true},
		"question":         {"d876e3", "Further information is requested", true},
		"wontfix":          {"ffffff", "This will not be worked on", true},
	}
}

// look returns the appearance of a label of the repository.
func (p *place) look(name string) labelLook {
	if look, given := p.looks[lower(name)]; given {
		return look
	}
	if look, stock := stockLabels()[name]; stock {
		return look
	}
	return labelLook{color: plainColor}
}

// isColor reports whether GitHub takes a text for a colour.
func isColor(text string) bool { return regexp.MustCompile(`^[0-9a-fA-F]{6}$`).MatchString(text) }
