package fakegithub

import (
	"encoding/base64"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
)

// maxText is the most bytes that Blob.text gives; of a larger blob the beginning, and it is marked as truncated.
const maxText = 512_000

// gitObject gives the fields that every git object has.
func (g *gitGraph) gitObject(kind, id string) fields {
	return fields{
		"id": nodeID(kind, g.at.id, id), "oid": id, "abbreviatedOid": id[:7], "commitUrl": g.at.web("commit", id),
		"repository": lazy(func(args) (any, error) { return g.at.graph().repo(), nil }),
	}
}

// object is the commit, tree or blob of an id, or nil.
func (g *gitGraph) object(id string) *gql.Object {
	if g.at.repo.Commits[id] != nil {
		return g.commit(id)
	}
	if _, known := g.at.read().tree(id); known {
		return g.tree(id, "")
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
	headline, body, _ := strings.Cut(strings.TrimRight(c.Message, "\n"), "\n")
	d := g.at.detailsOf(id)
	out := g.gitObject(kindCommit, id)
	for field, value := range (fields{
		"url": g.at.web("commit", id), "treeUrl": g.at.web("tree", id), "message": c.Message, "messageHeadline": headline,
		"messageBody": strings.TrimLeft(body, "\n"), "committedDate": d.committer.at, "authoredDate": d.author.at,
		"author": gqlActor(d.author), "committer": gqlActor(d.committer),
		"signature": g.signature(d),
		"tree":      lazy(func(args) (any, error) { return g.tree(g.at.read().root(id), ""), nil }),
		"file": lazy(func(in args) (any, error) {
			file := in.String("path")
			if e, found := g.at.read().entry(g.at.read().root(id), file); found {
				return g.entry(e, file), nil
			}
			return nil, nil
		}),
		"parents": lazy(func(in args) (any, error) {
			return gql.Connection("Commit", "parents", gql.Items{
				Len: len(c.Parents), Key: func(i int) string { return c.Parents[i] },
				Node: func(i int) *gql.Object { return g.commit(c.Parents[i]) },
			}, in, nil)
		}),
		"statusCheckRollup": g.at.rights().guarded(func(args) (any, error) { return g.gqlRollup(id), nil }, "checks",
			"statuses"),
		"status": lazy(func(args) (any, error) { return g.gqlStatus(id), nil }),
		"associatedPullRequests": lazy(func(in args) (any, error) {
			in["headRefOid"] = id
			return g.at.graph().pulls("associatedPullRequests", in)
		}),
	}) {
		out[field] = value
	}
	return &gql.Object{Type: "Commit", Fields: out}
}

func gqlActor(who signature) *gql.Object {
	return &gql.Object{Type: "GitActor", Fields: fields{"name": who.name, "email": who.email, "date": who.at,
		"user": any(nil)}}
}

// signature is the signature of a commit that GitHub made itself; others have none.
func (g *gitGraph) signature(d commitDetails) *gql.Object {
	if d.committer.name != signer {
		return nil
	}
	return &gql.Object{Type: "GpgSignature", Fields: fields{
		"email": d.committer.email, "isValid": true, "state": "VALID", "wasSignedByGitHub": true, "keyId": "B5690EEEBB952194",
	}}
}

// signer is the committer of the commits that GitHub makes and signs.
const signer = "GitHub"

// tree is a tree; dir is its path, for the paths of its entries.
func (g *gitGraph) tree(id, dir string) *gql.Object {
	out := g.gitObject(kindTree, id)
	out["entries"] = lazy(func(args) (any, error) {
		entries := []any{}
		for _, e := range g.at.objects.trees[id] {
			entries = append(entries, g.entry(e, path.Join(dir, e.name)))
		}
		return entries, nil
	})
	return &gql.Object{Type: "Tree", Fields: out}
}

// entry is an entry with its path from the root.
func (g *gitGraph) entry(e treeEntry, full string) *gql.Object {
	mode, err := strconv.ParseInt(e.mode, 8, 32)
	if err != nil {
		panic(err) // modes are constants
	}
	size := 0
	var lineCount, extension any
	if e.kind() == "blob" {
		size = len(e.file.Content)
		lineCount = len(lines(e.file.Content))
	}
	if e.mode != modeDir {
		extension = path.Ext(e.name)
	}
	return &gql.Object{Type: "TreeEntry", Fields: fields{
		"name": e.name, "path": full, "mode": int(mode), "type": e.kind(), "oid": e.id, "size": size, "isGenerated": false,
		"nameRaw": encode(e.name), "pathRaw": encode(full), "extension": extension, "lineCount": lineCount,
		"object":     lazy(func(args) (any, error) { return g.entryObject(e, full), nil }),
		"repository": lazy(func(args) (any, error) { return g.at.graph().repo(), nil }),
		"submodule": lazy(func(args) (any, error) {
			if e.mode != modeSubmodule {
				return nil, nil
			}
			return &gql.Object{Type: "Submodule", Fields: fields{
				"name": full, "path": full, "gitUrl": g.at.web() + "-sub.git", "branch": any(nil), "subprojectCommitOid": e.id,
			}}, nil
		}),
	}}
}

func encode(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// entryObject is what an entry holds; nothing for a submodule, whose commit is in another repository.
func (g *gitGraph) entryObject(e treeEntry, full string) *gql.Object {
	switch e.kind() {
	case "tree":
		return g.tree(e.id, full)
	case "blob":
		return g.blob(e.id, e.file.Content)
	default:
		return nil
	}
}

func (g *gitGraph) blob(id, content string) *gql.Object {
	out := g.gitObject(kindBlob, id)
	out["byteSize"], out["isTruncated"] = len(content), len(content) > maxText
	out["isBinary"], out["text"] = false, content[:min(len(content), maxText)]
	if !utf8.ValidString(content) || strings.Contains(content, "\x00") {
		out["isBinary"], out["text"], out["isTruncated"] = true, any(nil), false
	}
	return &gql.Object{Type: "Blob", Fields: out}
}
