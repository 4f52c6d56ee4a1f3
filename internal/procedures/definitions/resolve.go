package definitions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
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
	file       definitionFile
}

// resolve finds a definition: in the project, else the highest version in the global registry that satisfies the range,
// else in the first of the configured registries, in the order of their priority, that has the name. source "" is all
// of them. *notFoundError if there is none; a broken definition is found, with its problems.
func (c *Catalog) resolve(ctx context.Context, kind Kind, ref Reference, source Source) (*Found, error) {
	missing := &notFoundError{Kind: kind, Reference: ref}
	folder := ""
	if kind == Skill { // has no version: what stands in its place says which folder
		folder, ref.Range = ref.Range, ""
	}
	for _, p := range c.places() {
		if source != "" && source != p.source || folder != "" && folder != p.below {
			continue
		}
		found, err := c.resolveIn(p, kind, ref, missing)
		if found != nil || err != nil {
			return found, err
		}
	}
	if c.opts.Registries != nil && kind != Skill && (source == "" || source == Stockyard) {
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

func (c *Catalog) resolveIn(p definitionRoot, kind Kind, ref Reference, missing *notFoundError) (*Found, error) {
	candidates, problems, err := p.definitionFiles(kind, ref.Name)
	if err != nil {
		return nil, err
	}
	missing.Reasons = append(missing.Reasons, problems.Errors()...)
	if len(candidates) == 0 {
		if candidates, err = c.saying(p, kind, ref.Name); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(candidates, func(a, b definitionFile) int {
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
func (c *Catalog) saying(p definitionRoot, kind Kind, name string) ([]definitionFile, error) {
	all, _, err := p.definitionFiles(kind, "")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(f definitionFile) bool {
		s, _ := c.summary(f)
		return s.Name != name
	}), nil
}

// layout orders files of one name: a folder before a flat file, Markdown before YAML.
func layout(f definitionFile) int {
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

// maxInheritance bounds a chain of definitions that extend each other.
const maxInheritance = 50

// inheritanceError says why what a definition extends cannot be merged in.
type inheritanceError struct {
	Chain []string // from the definition that was asked for
	Why   string
	Cause error
}

// Error implements error.
func (e *inheritanceError) Error() string {
	return fmt.Sprintf("%s: %s", e.Why, strings.Join(e.Chain, " extends "))
}

// Unwrap gives the cause.
func (e *inheritanceError) Unwrap() error { return e.Cause }

// Merged is a definition with all that it extends merged in.
type Merged struct {
	*Found
	Chain []string // names with versions, from the definition itself to the one that extends nothing
}

// Merge merges what a definition extends: a key of the child wins; of tools, tags and depends_on the base's come first
// and then what the child adds; parameters and config are merged one level deep, custom_tools by name. The reference in
// `extends` stays, so that it can be shown. *inheritanceError for a base that is missing or broken, a cycle, or a chain
// of more than 50.
func (c *Catalog) Merge(ctx context.Context, found *Found) (*Merged, error) {
	self := found.Definition
	chain := []string{label(found)}
	if self.Format != "" { // which extend nothing
		return &Merged{Found: found, Chain: chain}, nil
	}
	trees := []*value{self.tree}
	seen := []string{identity(found)}
	for at := found; at.Definition.Extends != ""; {
		ref := ParseReference(at.Definition.Extends)
		base, err := c.resolve(ctx, self.Kind, ref, "")
		if err != nil {
			return nil, &inheritanceError{Chain: append(chain, ref.String()), Why: "what is extended was not found", Cause: err}
		}
		chain = append(chain, label(base))
		switch {
		case slices.Contains(seen, identity(base)):
			return nil, &inheritanceError{Chain: chain, Why: "the definitions extend each other in a circle"}
		case len(chain) > maxInheritance:
			return nil, &inheritanceError{Chain: chain,
				Why: fmt.Sprintf("more than %d definitions extend each other", maxInheritance)}
		case len(base.Problems.Errors()) > 0:
			return nil, &inheritanceError{Chain: chain, Why: "what is extended is broken: " + base.Problems.Errors()[0].String()}
		}
		seen, trees = append(seen, identity(base)), append(trees, base.Definition.tree)
		at = base
	}
	tree := trees[len(trees)-1]
	for _, child := range slices.Backward(trees[:len(trees)-1]) {
		tree = mergeTrees(tree, child)
	}
	merged := readDefinition(self.Kind, tree)
	merged.Extends = self.Extends
	out := *found
	out.Definition = merged
	return &Merged{Found: &out, Chain: chain}, nil
}

func label(f *Found) string { return Reference{f.Definition.Name, f.Definition.Version}.String() }

// identity tells two files apart.
func identity(f *Found) string { return string(f.Source) + " " + f.Path }

func mergeTrees(base, child *value) *value {
	out := &value{kind: kindMapping, line: child.line, column: child.column, entries: slices.Clone(base.entries)}
	for _, e := range child.entries {
		i := slices.IndexFunc(out.entries, func(known mappingEntry) bool { return known.key == e.key })
		if i < 0 {
			out.entries = append(out.entries, e)
			continue
		}
		e.value = mergeField(e.key, out.entries[i].value, e.value)
		out.entries[i] = e
	}
	return out
}

func mergeField(key string, base, child *value) *value {
	switch {
	case base.kind != child.kind:
		return child
	case key == "tools" || key == "tags" || key == "depends_on":
		return union(base, child, func(v *value) string { return v.text })
	case key == "custom_tools":
		return union(base, child, func(v *value) string { return v.get("name").string() })
	case (key == "parameters" || key == "config") && child.kind == kindMapping:
		out := *child
		out.entries = slices.Clone(base.entries)
		for _, e := range child.entries {
			if i := slices.IndexFunc(out.entries, func(known mappingEntry) bool { return known.key == e.key }); i >= 0 {
				out.entries[i] = e
			} else {
				out.entries = append(out.entries, e)
			}
		}
		return &out
	}
	return child
}

// union returns the base's items and then those that the child adds; an item of the child replaces the base's of the
// same name.
func union(base, child *value, name func(*value) string) *value {
	out := *child
	out.items = slices.Clone(base.items)
	for _, item := range child.items {
		if i := slices.IndexFunc(out.items, func(known *value) bool { return name(known) == name(item) }); i >= 0 {
			out.items[i] = item
		} else {
			out.items = append(out.items, item)
		}
	}
	return &out
}

// Validation is the result of validating one definition.
type Validation struct {
	Path       string
	Definition *Definition // nil if nothing could be read
	Problems   Problems    // errors and warnings, by place
}

// valid reports whether there is no error.
func (v Validation) valid() bool { return len(v.Problems.Errors()) == 0 }

// validateNamed validates a definition that Resolve finds. strict also resolves what it refers to, and warns of unknown
// fields.
func (c *Catalog) validateNamed(ctx context.Context, kind Kind, ref Reference, strict bool) (Validation, error) {
	found, err := c.resolve(ctx, kind, ref, "")
	if err != nil {
		return Validation{}, err
	}
	return c.judged(ctx, found, strict), nil
}

// validatePath validates a file of the project or of the user's registry, whatever its folder. VALIDATION_ERROR for a
// path that lies in neither, PERMISSION_DENIED for one that a symbolic link leads out.
func (c *Catalog) validatePath(ctx context.Context, kind Kind, name string, strict bool) (Validation, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(c.opts.Project, name)
	}
	name = filepath.Clean(name)
	for _, p := range c.places() {
		rel, err := filepath.Rel(p.root, name)
		if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			continue
		}
		f := definitionFile{place: p, kind: kind, rel: filepath.ToSlash(rel)}
		content, err := f.read()
		if err != nil {
			return Validation{}, unreadableFile(kind, name, err)
		}
		definition, problems := c.validator.Validate(kind, name, content)
		if definition == nil {
			return Validation{Path: name, Problems: problems}, nil
		}
		return c.judged(ctx, &Found{Definition: definition, Source: p.source, Path: name, Problems: problems, file: f},
			strict), nil
	}
	return Validation{}, newError(PermissionDenied, "%s lies outside of the project and of the user's registry",
		name).With("path", name).
		Suggest("give a path below the project's folder")
}

func unreadableFile(kind Kind, name string, err error) *Error {
	e := newError(ValidationError, "%s %s", name, pathlessError(err)).With("path", name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e = newError(notFoundCode(kind), "there is no file %s", name).With("path", name)
	case errors.Is(err, fs.ErrPermission), strings.Contains(err.Error(), "escapes"):
		e = newError(PermissionDenied, "%s %s", name, pathlessError(err)).With("path", name)
	}
	e.Cause = err
	return e
}

// judged adds what only other files tell. Warnings of unknown fields are for the strict validation.
func (c *Catalog) judged(ctx context.Context, f *Found, strict bool) Validation {
	out := Validation{Path: f.Path, Definition: f.Definition}
	for _, p := range f.Problems {
		if strict || p.Message != unknownField {
			out.Problems = append(out.Problems, p)
		}
	}
	if strict && f.Definition.Format == "" { // what others refer to is their program's
		if f.Definition.Extends != "" {
			if _, err := c.Merge(ctx, f); err != nil {
				out.Problems = append(out.Problems, f.problemAt("extends", "", err.Error()))
			}
		}
		out.Problems = append(out.Problems, c.unresolved(ctx, f)...)
	}
	out.Problems = out.Problems.sorted()
	return out
}

// unresolved lists references to tools that cannot be found.
func (c *Catalog) unresolved(ctx context.Context, f *Found) Problems {
	key := "tools"
	if f.Definition.Kind == Tool {
		key = "depends_on"
	}
	own := map[string]bool{}
	for _, tool := range itemsOf(f.Definition.tree.get("custom_tools")) {
		own[tool.get("name").string()] = true
	}
	var out Problems
	for i, text := range f.Definition.tree.get(key).strings() {
		ref := ParseReference(text)
		if own[ref.Name] {
			continue
		}
		if _, err := c.resolve(ctx, Tool, ref, ""); err != nil {
			out = append(out, f.problemAt(key, strconv.Itoa(i), err.Error()))
		}
	}
	return out
}

// problemAt returns an error at a field, or at one item of its list.
func (f *Found) problemAt(field, item, message string) Problem {
	p := Problem{File: f.Path, Field: field, Message: message, Severity: SeverityError}
	v := f.Definition.tree.get(field)
	if i, err := strconv.Atoi(item); err == nil && v != nil && i < len(v.items) {
		v, p.Field = v.items[i], join(field, item)
	}
	if v != nil {
		p.Line, p.Column = v.line, v.column
	}
	return p
}

// Info returns a definition with what it extends merged in. VALIDATION_ERROR with its problems for a broken one;
// DEPENDENCY_ERROR for one that cannot be merged.
func (c *Catalog) Info(ctx context.Context, kind Kind, ref Reference, source Source) (*Merged, error) {
	found, err := c.resolve(ctx, kind, ref, source)
	var missing *notFoundError
	var limit *limitError
	switch {
	case errors.As(err, &missing):
		return nil, missing.coded()
	case errors.As(err, &limit):
		return nil, newError(ValidationError, "%s", limit.Error())
	case err != nil:
		return nil, err
	}
	if errs := found.Problems.Errors(); len(errs) > 0 {
		return nil, newError(ValidationError, "the %s %s is broken: %s", kind, ref, errs[0]).With("problems",
			errs).With("path", found.Path).
			Suggest("correct the file; " + toolOf(kind, "validate") + " lists every problem")
	}
	merged, err := c.Merge(ctx, found)
	var chain *inheritanceError
	if errors.As(err, &chain) {
		return nil, newError(DependencyError, "%s", chain.Error()).With("chain", chain.Chain)
	}
	return merged, err
}

func toolOf(kind Kind, action string) string {
	return fmt.Sprintf("fractary_forge_%s_%s", kind, action)
}

// coded returns the error with its code and what to do.
func (e *notFoundError) coded() *Error {
	out := newError(notFoundCode(e.Kind), "%s", e.Error()).With("name", e.Reference.Name)
	if len(e.Versions) > 0 {
		out = out.With("versions", e.Versions).Suggest("ask for one of the versions")
	}
	if len(e.Similar) > 0 {
		out = out.With("similar", e.Similar).Suggest("did you mean " + strings.Join(e.Similar, ", ") + "?")
	}
	for _, reason := range e.Reasons {
		if strings.Contains(reason.Message, "registry") {
			out = out.Suggest(reason.Message)
		}
	}
	return out.Suggest("list what there is with " + toolOf(e.Kind, "list"))
}
