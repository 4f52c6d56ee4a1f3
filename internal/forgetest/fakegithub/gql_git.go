package fakegithub

import (
	"encoding/base64"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/forgetest/fakegithub/gql"
)

// maxText is the most bytes that Blob.text gives; of a larger blob the beginning, and it is marked as truncated.
const maxText = 512_000

// gitObject gives the fields that every git object has.
func (p *place) gitObject(kind, id string) fields {
	return fields{
		"id": nodeID(kind, p.id, id), "oid": id, "abbreviatedOid": id[:7], "commitUrl": p.web("commit", id),
		"repository": lazy(func(args) (any, error) { return p.gqlRepo(), nil }),
	}
}

// gqlObject is the commit, tree or blob of an id, or nil.
func (p *place) gqlObject(id string) *gql.Object {
	if p.repo.Commits[id] != nil {
		return p.gqlCommit(id)
	}
	if _, known := p.tree(id); known {
		return p.gqlTree(id, "")
	}
	if content, known := p.blob(id); known {
		return p.gqlBlob(id, content)
	}
	return nil
}

func (p *place) gqlCommit(id string) *gql.Object {
	c := p.repo.Commits[id]
	if c == nil {
		return nil
	}
	headline, body, _ := strings.Cut(strings.TrimRight(c.Message, "\n"), "\n")
	d := p.detailsOf(id)
	out := p.gitObject(kindCommit, id)
	for field, value := range (fields{
		"url": p.web("commit", id), "treeUrl": p.web("tree", id), "message": c.Message, "messageHeadline": headline,
		"messageBody": strings.TrimLeft(body, "\n"), "committedDate": d.committer.at, "authoredDate": d.author.at,
		"author": gqlActor(d.author), "committer": gqlActor(d.committer),
		"signature": p.gqlSignature(d),
		"tree":      lazy(func(args) (any, error) { return p.gqlTree(p.root(id), ""), nil }),
		"file": lazy(func(in args) (any, error) {
			file := in.String("path")
			if e, found := p.entry(p.root(id), file); found {
				return p.gqlEntry(e, file), nil
			}
			return nil, nil
		}),
		"parents": lazy(func(in args) (any, error) {
			return gql.Connection("Commit", "parents", gql.Items{
				Len: len(c.Parents), Key: func(i int) string { return c.Parents[i] },
				Node: func(i int) *gql.Object { return p.gqlCommit(c.Parents[i]) },
			}, in, nil)
		}),
		"statusCheckRollup": p.guarded(func(args) (any, error) { return p.gqlRollup(id), nil }, "checks", "statuses"),
		"status":            lazy(func(args) (any, error) { return p.gqlStatus(id), nil }),
		"checkSuites":       lazy(func(in args) (any, error) { return p.gqlSuites(id, in) }),
		"associatedPullRequests": lazy(func(in args) (any, error) {
			in["headRefOid"] = id
			return p.gqlPulls("associatedPullRequests", in)
		}),
	}) {
		out[field] = value
	}
	return &gql.Object{Type: "Commit", Fields: out}
}

func gqlActor(who signature) *gql.Object {
	return &gql.Object{Type: "GitActor", Fields: fields{"name": who.name, "email": who.email, "date": who.at, "user": any(nil)}}
}

// gqlSignature is the signature of a commit that GitHub made itself; others have none.
func (p *place) gqlSignature(d commitDetails) *gql.Object {
	if d.committer.name != signer {
		return nil
	}
	return &gql.Object{Type: "GpgSignature", Fields: fields{
		"email": d.committer.email, "isValid": true, "state": "VALID", "wasSignedByGitHub": true, "keyId": "B5690EEEBB952194",
	}}
}

// signer is the committer of the commits that GitHub makes and signs.
const signer = "GitHub"

// gqlTree is a tree; dir is its path, for the paths of its entries.
func (p *place) gqlTree(id, dir string) *gql.Object {
	out := p.gitObject(kindTree, id)
	out["entries"] = lazy(func(args) (any, error) {
		entries := []any{}
		for _, e := range p.objects.trees[id] {
			entries = append(entries, p.gqlEntry(e, path.Join(dir, e.name)))
		}
		return entries, nil
	})
	return &gql.Object{Type: "Tree", Fields: out}
}

// gqlEntry is an entry with its path from the root.
func (p *place) gqlEntry(e treeEntry, full string) *gql.Object {
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
		"object":     lazy(func(args) (any, error) { return p.gqlEntryObject(e, full), nil }),
		"repository": lazy(func(args) (any, error) { return p.gqlRepo(), nil }),
		"submodule": lazy(func(args) (any, error) {
			if e.mode != modeSubmodule {
				return nil, nil
			}
			return &gql.Object{Type: "Submodule", Fields: fields{
				"name": full, "path": full, "gitUrl": p.web() + "-sub.git", "branch": any(nil), "subprojectCommitOid": e.id,
			}}, nil
		}),
	}}
}

func encode(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// gqlEntryObject is what an entry holds; nothing for a submodule, whose commit is in another repository.
func (p *place) gqlEntryObject(e treeEntry, full string) *gql.Object {
	switch e.kind() {
	case "tree":
		return p.gqlTree(e.id, full)
	case "blob":
		return p.gqlBlob(e.id, e.file.Content)
	default:
		return nil
	}
}

func (p *place) gqlBlob(id, content string) *gql.Object {
	out := p.gitObject(kindBlob, id)
	out["byteSize"], out["isTruncated"] = len(content), len(content) > maxText
	out["isBinary"], out["text"] = false, content[:min(len(content), maxText)]
	if !utf8.ValidString(content) || strings.Contains(content, "\x00") {
		out["isBinary"], out["text"], out["isTruncated"] = true, any(nil), false
	}
	return &gql.Object{Type: "Blob", Fields: out}
}
