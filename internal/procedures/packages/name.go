package packages

import "strings"

// Name is the name of a package: name, or @scope/name.
type Name struct {
	Scope string // "" for none
	Bare  string
}

// parseName reads a name. AAM_INVALID_ARGUMENT says what a name looks like.
func parseName(text string) (Name, error) {
	n := Name{Bare: text}
	valid := true
	if scoped, isScoped := strings.CutPrefix(text, "@"); isScoped {
		n.Scope, n.Bare, _ = strings.Cut(scoped, "/")
		valid = isWord(n.Scope, "-_")
	}
	if !valid || !isWord(n.Bare, "-") {
		return Name{}, newError(InvalidArgument, "%q is no name of a package", text).
			Suggest("a name has small letters, digits and hyphens, such as my-skill or @scope/my-skill")
	}
	return n, nil
}

// isWord reports whether a text has 1 to 64 small letters, digits and characters of more, and begins with none of more.
// Names are read so often that a regular expression would be most of what an installation costs.
func isWord(text, more string) bool {
	if text == "" || len(text) > 64 {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (i == 0 || strings.IndexByte(more, c) < 0) {
			return false
		}
	}
	return true
}

// String returns the name as parseName reads it.
func (n Name) String() string {
	if n.Scope == "" {
		return n.Bare
	}
	return "@" + n.Scope + "/" + n.Bare
}

// folder returns the name of the package's folder. Two names may share one (@a/b and a--b): who writes looks whose it
// is.
func (n Name) folder() string {
	if n.Scope == "" {
		return n.Bare
	}
	return n.Scope + "--" + n.Bare
}

// validArtifactName reports whether an artifact may be named so.
func validArtifactName(name string) bool {
	return isWord(name, "-")
}

// Spec asks for a package: a name, and a constraint or a tag.
type Spec struct {
	Name Name
	Want string // "" for the latest
}

// parseSpec reads name, name@constraint or name@tag. The @ of a scope is not the separator.
func parseSpec(text string) (Spec, error) {
	name, want := text, ""
	if at := strings.LastIndex(name, "@"); at > 0 {
		if name, want = name[:at], strings.TrimSpace(name[at+1:]); want == "" {
			return Spec{}, newError(InvalidArgument, "%q names no version after the @",
				text).Suggest("leave out the @ for the latest version")
		}
	}
	parsed, err := parseName(name)
	return Spec{Name: parsed, Want: want}, err
}

// String returns the spec as parseSpec reads it.
func (s Spec) String() string {
	if s.Want == "" {
		return s.Name.String()
	}
	return s.Name.String() + "@" + s.Want
}
