package packages

import (
	"strings"

	"github.com/Masterminds/semver/v3"
)

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
		return Name{}, newError(InvalidArgument, "%q is not a valid package name", text).
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

// folderName returns the name of the package's folder. Two names may share one (@a/b and a--b): who writes looks
// whose it is.
func (n Name) folderName() string {
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

// Constraint is a condition on versions: exact, = == > >= < <= ^ ~ and *, joined with commas, which mean and. A
// prerelease satisfies only a constraint that names a prerelease of the same three numbers.
type Constraint struct {
	text  string
	inner *semver.Constraints // nil: any
	pre   []*semver.Version   // the prereleases that it names
}

// parseConstraint reads a constraint. AAM_INVALID_ARGUMENT for what is none.
func parseConstraint(text string) (Constraint, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "*" {
		return Constraint{text: "*"}, nil
	}
	bad := newError(InvalidArgument, "%q is not a valid version constraint",
		text).Suggest("write 1.2.3, ^1.2.0, ~1.2.0, >=1.0.0,<2.0.0 or *")
	c := Constraint{text: trimmed}
	var parts []string
	for _, part := range strings.Split(trimmed, ",") {
		operator, version := cutOperator(strings.TrimSpace(part))
		v, err := parseLooseVersion(version)
		if err != nil {
			return Constraint{}, bad
		}
		if v.Prerelease() != "" {
			c.pre = append(c.pre, v)
		}
		parts = append(parts, operator+v.String())
	}
	inner, err := semver.NewConstraint(strings.Join(parts, ", "))
	if err != nil {
		return Constraint{}, bad
	}
	c.inner = inner
	return c, nil
}

// cutOperator parts a condition into its operator, which is = where there is none, and the version.
func cutOperator(text string) (operator, version string) {
	for _, known := range []string{"==", ">=", "<=", "=", ">", "<", "^", "~"} {
		if version, has := strings.CutPrefix(text, known); has {
			if known == "==" {
				known = "="
			}
			return known, strings.TrimSpace(version)
		}
	}
	return "=", text
}

// parseLooseVersion takes 1 and 1.2 for 1.0.0 and 1.2.0.
func parseLooseVersion(text string) (*semver.Version, error) {
	if major, minor, _ := strings.Cut(text, "."); isNumber(major) && (isNumber(minor) || text == major) {
		return semver.NewVersion(text)
	}
	return semver.StrictNewVersion(text)
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// parseVersion reads a version by SemVer 2.0.0. AAM_INVALID_ARGUMENT for what is none.
func parseVersion(text string) (*semver.Version, error) {
	v, err := semver.StrictNewVersion(text)
	if err != nil {
		return nil, newError(InvalidArgument, "%q is not a version",
			text).Suggest("write three numbers, such as 1.2.0, or 1.2.0-beta.1")
	}
	return v, nil
}

// Admits reports whether a version satisfies the constraint.
func (c Constraint) Admits(v *semver.Version) bool {
	if v.Prerelease() == "" {
		return c.inner == nil || c.inner.Check(v)
	}
	named := false
	for _, p := range c.pre {
		named = named || p.Major() == v.Major() && p.Minor() == v.Minor() && p.Patch() == v.Patch()
	}
	return named && c.inner.Check(v)
}

// String returns the constraint as it was written.
func (c Constraint) String() string { return c.text }
