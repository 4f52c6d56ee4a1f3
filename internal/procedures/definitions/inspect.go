package definitions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

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
		f := file{place: p, kind: kind, rel: filepath.ToSlash(rel)}
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
	e := newError(ValidationError, "%s %s", name, reason(err)).With("path", name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e = newError(notFoundCode(kind), "there is no file %s", name).With("path", name)
	case errors.Is(err, fs.ErrPermission), strings.Contains(err.Error(), "escapes"):
		e = newError(PermissionDenied, "%s %s", name, reason(err)).With("path", name)
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
	if strict && f.Definition.Format != ClaudeCode { // what that refers to is Claude Code's
		if f.Definition.Extends != "" {
			if _, err := c.Merge(ctx, f); err != nil {
				out.Problems = append(out.Problems, f.at("extends", "", err.Error()))
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
			out = append(out, f.at(key, strconv.Itoa(i), err.Error()))
		}
	}
	return out
}

// at returns an error at a field, or at one item of its list.
func (f *Found) at(field, item, message string) Problem {
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
