// Package definitions reads and checks definitions of agents and tools, and the plugins and registries that they come
// from, in the formats of Fractary Forge: YAML files, and Markdown files with a header of YAML
// (docs/guides/definitions.md).
//
// A file becomes a tree of values that know their line and column (parse), which is held against the schema of its kind
// (check) and read into a Definition. A Catalog finds the files of a project, of the user and of registries, resolves a
// name and a range of versions to one of them, and merges what it extends. Nothing is read through a symbolic link that
// leaves its root.
package definitions
