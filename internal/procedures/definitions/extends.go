package definitions

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

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
	if self.Format == ClaudeCode { // whose agents extend nothing
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
		i := slices.IndexFunc(out.entries, func(known entry) bool { return known.key == e.key })
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
			if i := slices.IndexFunc(out.entries, func(known entry) bool { return known.key == e.key }); i >= 0 {
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
