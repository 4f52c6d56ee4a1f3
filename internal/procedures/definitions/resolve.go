package definitions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/agnivade/levenshtein"
)

// Reference names a definition: its name and a range of versions.
type Reference struct {
	Name  string
	Range string // npm's ranges; "", "latest" and "*" take any
}

// ParseReference reads name or name@range. An @ at the beginning belongs to the name.
func ParseReference(text string) Reference {
	text = strings.TrimSpace(text)
	if at := strings.LastIndex(text, "@"); at > 0 {
		return Reference{Name: text[:at], Range: text[at+1:]}
	}
	return Reference{Name: text}
}

// String returns the reference as ParseReference reads it.
func (r Reference) String() string {
	if r.any() {
		return r.Name
	}
	return r.Name + "@" + r.Range
}

func (r Reference) any() bool { return r.Range == "" || r.Range == "latest" || r.Range == "*" }

// admits reports whether a version satisfies the range. A range that is none is compared as text.
func (r Reference) admits(version string) bool {
	if r.any() {
		return true
	}
	constraint, err := semver.NewConstraint(r.Range)
	if err != nil {
		return version == r.Range
	}
	v, err := semver.NewVersion(version)
	return err == nil && constraint.Check(v)
}

// notFoundError says where a definition was looked for in vain.
type notFoundError struct {
	Kind      Kind
	Reference Reference
	Versions  []string // those that there are, if only the range does not fit
	Similar   []string // names that differ little
	Reasons   Problems // files and registries that could not be asked
}

// Error implements error.
func (e *notFoundError) Error() string {
	text := fmt.Sprintf("%s %q was not found", e.Kind, e.Reference)
	switch {
	case len(e.Versions) > 0:
		text = fmt.Sprintf("no version of %s %q satisfies %q; there are %s", e.Kind, e.Reference.Name, e.Reference.Range,
			strings.Join(e.Versions, ", "))
	case len(e.Reasons) > 0:
		text += "; " + e.Reasons[0].String()
	}
	return text
}

// Found is a definition with the place that it comes from.
type Found struct {
	Definition *Definition
	Source     Source
	Registry   string // that it comes from; "" for a definition of this machine
	Path       string
	Problems   Problems // of its own file
	file       file
}

// resolve finds a definition: in the project, else the highest version in the global registry that satisfies the range,
// else in the first of the configured registries, in the order of their priority, that has the name. source "" is all
// of them. *notFoundError if there is none; a broken definition is found, with its problems.
func (c *Catalog) resolve(ctx context.Context, kind Kind, ref Reference, source Source) (*Found, error) {
	missing := &notFoundError{Kind: kind, Reference: ref}
	for _, p := range c.places() {
		if source != "" && source != p.source {
			continue
		}
		found, err := c.resolveIn(p, kind, ref, missing)
		if found != nil || err != nil {
			return found, err
		}
	}
	if c.opts.Registries != nil && (source == "" || source == Stockyard) {
		found, reasons := c.opts.Registries.component(ctx, c.validator, kind, ref)
		if found != nil {
			return found, nil
		}
		missing.Reasons = append(missing.Reasons, reasons...)
	}
	missing.Similar = c.similar(kind, ref.Name)
	return nil, missing
}

// similar returns at most five names that differ little from one that was not found.
func (c *Catalog) similar(kind Kind, name string) []string {
	var out []string
	for _, p := range c.places() {
		for _, known := range p.names(kind) {
			if len(out) < 5 && levenshtein.ComputeDistance(known, name) <= 2 && !slices.Contains(out, known) {
				out = append(out, known)
			}
		}
	}
	return out
}

func (c *Catalog) resolveIn(p place, kind Kind, ref Reference, missing *notFoundError) (*Found, error) {
	candidates, problems, err := p.files(kind, ref.Name)
	if err != nil {
		return nil, err
	}
	missing.Reasons = append(missing.Reasons, problems.Errors()...)
	if len(candidates) == 0 {
		if candidates, err = c.saying(p, kind, ref.Name); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(candidates, func(a, b file) int {
		return cmp.Or(-compareVersions(a.version, b.version), layout(a)-layout(b))
	})
	for _, f := range candidates {
		if f.version != "" && !ref.admits(f.version) {
			missing.Versions = append(missing.Versions, f.version)
			continue
		}
		definition, problems := c.load(f)
		if definition == nil || f.version == "" && !ref.admits(definition.Version) && !ref.any() {
			if definition != nil {
				missing.Versions = append(missing.Versions, definition.Version)
				continue
			}
			definition = &Definition{Kind: kind, Name: f.name, tree: &value{kind: kindMapping}}
		}
		return &Found{Definition: definition, Source: p.source, Path: f.path(), Problems: problems, file: f}, nil
	}
	return nil, nil
}

// saying lists the files that say a name, whatever theirs is.
func (c *Catalog) saying(p place, kind Kind, name string) ([]file, error) {
	all, _, err := p.files(kind, "")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(f file) bool {
		s, _ := c.summary(f)
		return s.Name != name
	}), nil
}

// layout orders files of one name: a folder before a flat file, Markdown before YAML.
func layout(f file) int {
	rank := 0
	if strings.Count(strings.TrimPrefix(f.rel, f.place.below), "/") < 3 {
		rank += len(extensions())
	}
	for i, ext := range extensions() {
		if strings.HasSuffix(f.rel, ext) {
			return rank + i
		}
	}
	return rank
}

// isNotFound reports whether an error is a *notFoundError.
func isNotFound(err error) bool {
	var missing *notFoundError
	return errors.As(err, &missing)
}
