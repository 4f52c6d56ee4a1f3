package fakegithub

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
)

// maxText is the most bytes that Blob.text gives; of a larger blob the beginning, and it is marked as truncated.
const maxText = 512_000

// object returns the commit, tree or blob of an id, or nil.
func (g *gitGraph) object(id string) *gql.Object {
	if g.at.repo.Commits[id] != nil {
		return g.commit(id)
	}
	if _, known := g.at.read().tree(id); known {
		return g.tree(id)
	}
	if content, known := g.at.read().blob(id); known {
		return g.blob(id, content)
	}
	return nil
}

func (g *gitGraph) commit(id string) *gql.Object {
	c := g.at.repo.Commits[id]
	if c == nil {
		return nil
	}
	d := g.at.detailsOf(id)
	return &gql.Object{Type: "Commit", Fields: fields{
		"oid": id, "message": c.Message, "committedDate": d.committer.at, "author": gqlActor(d.author),
		"tree": lazy(func(args) (any, error) { return g.tree(g.at.read().root(id)), nil }),
		"file": lazy(func(in args) (any, error) {
			file := in.String("path")
			if e, found := g.at.read().entry(g.at.read().root(id), file); found {
				return g.entry(e), nil
			}
			return nil, nil
		}),
		"parents": lazy(func(in args) (any, error) {
			return gql.Connection("Commit", "parents", gql.Items{
				Len: len(c.Parents), Key: func(i int) string { return c.Parents[i] },
				Node: func(i int) *gql.Object { return g.commit(c.Parents[i]) },
			}, in)
		}),
		"statusCheckRollup": g.at.rights().guarded(func(args) (any, error) { return g.gqlRollup(id), nil }, "checks",
			"statuses"),
	}}
}

func gqlActor(who signature) *gql.Object {
	return &gql.Object{Type: "GitActor", Fields: fields{"name": who.name, "user": any(nil)}}
}

// signer is the committer of the commits that GitHub makes and signs.
const signer = "GitHub"

func (g *gitGraph) tree(id string) *gql.Object {
	return &gql.Object{Type: "Tree", Fields: fields{"oid": id, "entries": lazy(func(args) (any, error) {
		entries := []any{}
		for _, e := range g.at.objects.trees[id] {
			entries = append(entries, g.entry(e))
		}
		return entries, nil
	})}}
}

func (g *gitGraph) entry(e treeEntry) *gql.Object {
	mode, err := strconv.ParseInt(e.mode, 8, 32)
	if err != nil {
		panic(err) // modes are constants
	}
	return &gql.Object{Type: "TreeEntry", Fields: fields{
		"name": e.name, "mode": int(mode), "oid": e.id,
		"object": lazy(func(args) (any, error) { return g.entryObject(e), nil }),
	}}
}

// entryObject returns the object of an entry; nil for a submodule, whose commit is in another repository.
func (g *gitGraph) entryObject(e treeEntry) *gql.Object {
	switch e.kind() {
	case "tree":
		return g.tree(e.id)
	case "blob":
		return g.blob(e.id, e.file.Content)
	default:
		return nil
	}
}

func (g *gitGraph) blob(id, content string) *gql.Object {
	out := fields{"oid": id, "byteSize": len(content), "text": content[:min(len(content), maxText)]}
	if !utf8.ValidString(content) || strings.Contains(content, "\x00") {
		out["text"] = any(nil)
	}
	return &gql.Object{Type: "Blob", Fields: out}
}
