package fakegithub

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
)

// Shorthands for what the objects of GraphQL are made of.
type (
	fields = map[string]any
	lazy   = gql.Func
	args   = gql.Args
)

// graphql answers a document.
func (g *graphServer) serve(a *exchange) {
	if a.r.Method != http.MethodPost {
		a.notFound()
		return
	}
	raw, err := io.ReadAll(io.LimitReader(a.r.Body, maxBody))
	var req gql.Request
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	switch {
	case err != nil || dec.Decode(&req) != nil:
		a.fail(http.StatusBadRequest, "Problems parsing JSON")
		return
	case strings.TrimSpace(req.Query) == "":
		a.fail(http.StatusBadRequest, "A query attribute must be specified and must be a string.")
		return
	}
	if g.old && strings.Contains(req.Query, "updateRefs(") {
		a.reply(http.StatusOK, object{"errors": []any{object{
			"message":    "Field 'updateRefs' doesn't exist on type 'Mutation'",
			"extensions": object{"code": "undefinedField", "typeName": "Mutation", "fieldName": "updateRefs"},
		}}})
		return
	}
	out := g.schema.Execute(req, gql.Roots{Query: g.queryRoot(), Mutation: g.mutationRoot(),
		Around: func(do func()) { g.s.as(a, func() { g.spent = 0; do() }) }})
	for _, defect := range out.Defects {
		g.s.t.Errorf("the fake GitHub made a wrong value: %s", defect)
	}
	a.reply(http.StatusOK, out)
}

func noNode(id string) error {
	return &gql.Error{Type: "NOT_FOUND", Message: fmt.Sprintf("Could not resolve to a node with the global id of '%s'",
		id)}
}

func (g *graphServer) queryRoot() *gql.Object {
	return &gql.Object{Type: "Query", Fields: fields{
		"repository": lazy(func(in args) (any, error) {
			if p := g.s.repos.find(in.String("owner"), in.String("name"), in.Bool("followRenames")); p != nil {
				if no := p.rights().refused(); no != nil {
					return nil, no.graphQL()
				}
				return p.graph().repo(), nil
			}
			return nil, &gql.Error{Type: "NOT_FOUND", Message: fmt.Sprintf(
				"Could not resolve to a Repository with the name '%s/%s'.", in.String("owner"), in.String("name"))}
		}),
		"nodes": lazy(func(in args) (any, error) {
			out := []any{}
			if ids := in.Strings("ids"); len(ids) > gql.MaxPage {
				return nil, &gql.Error{Type: "ARGUMENT_LIMIT", Message: fmt.Sprintf(
					"You may not provide more than %d node ids; you provided %d.", gql.MaxPage, len(ids))}
			}
			if err := g.spend(len(in.Strings("ids"))); err != nil {
				return nil, err
			}
			for _, id := range in.Strings("ids") {
				if obj := g.node(id); obj != nil {
					out = append(out, obj)
				} else {
					out = append(out, noNode(id))
				}
			}
			return out, nil
		}),
	}}
}

// node finds what an id stands for, or nil.
func (g *graphServer) node(id string) *gql.Object {
	kind, number, name, ok := parseNodeID(id)
	if !ok {
		return nil
	}
	p := g.s.repos.byNumber(number)
	if p == nil {
		return nil
	}
	switch kind {
	case kindRepo:
		return p.graph().repo()
	case kindRef:
		return p.git().ref(strings.TrimPrefix(name, "refs/heads/"))
	case kindCommit, kindTree, kindBlob:
		return p.git().object(name)
	case kindPull:
		if pr := p.rules().pullNamed(name); pr != nil {
			return p.graph().pull(pr)
		}
	}
	return nil
}

func (g *graphServer) user(login string) *gql.Object {
	return &gql.Object{Type: "User", Fields: fields{"login": login}}
}

// account returns an account of the repository: a person or a bot.
func (g *pullGraph) account(login string) *gql.Object {
	if !slices.Contains(g.at.set.People.Bots, login) {
		return g.at.s.graph.user(login)
	}
	return &gql.Object{Type: "Bot", Fields: fields{"login": login}}
}

func (g *pullGraph) team(slug string) *gql.Object {
	for _, have := range g.at.set.People.Teams {
		if have == slug {
			return &gql.Object{Type: "Team", Fields: fields{
				"combinedSlug": g.at.repo.Ref.Owner + "/" + slug,
			}}
		}
	}
	return nil
}

// people returns a connection of users.
func (g *graphServer) people(field string, logins []string, in args) (any, error) {
	return gql.Connection("User", field, gql.Items{
		Len: len(logins), Key: func(i int) string { return logins[i] },
		Node: func(i int) *gql.Object { return g.user(logins[i]) },
	}, in)
}

func (g *pullGraph) repo() *gql.Object {
	ref := g.at.repo.Ref
	out := fields{
		"id": nodeID(kindRepo, g.at.id, ""), "databaseId": g.at.id, "name": ref.Name, "owner": g.at.s.graph.user(ref.Owner),
		"url": g.at.web(), "isArchived": g.at.repo.Archived, "isDisabled": false, "isFork": g.at.repo.Fork, "isLocked": false,
		"isPrivate": g.at.set.Private, "viewerPermission": g.at.rights().viewerPermission(),
	}
	g.at.git().addRefFields(out)
	g.addPullFields(out)
	return &gql.Object{Type: "Repository", Fields: out}
}

func (g *gitGraph) addRefFields(out fields) {
	out["defaultBranchRef"] = lazy(func(args) (any, error) { return g.ref(g.at.repo.Default), nil })
	out["ref"] = lazy(func(in args) (any, error) {
		name := in.String("qualifiedName")
		for _, prefix := range []string{"refs/heads/", "heads/"} {
			branch, ok := strings.CutPrefix(name, prefix)
			switch {
			case !ok || g.at.tip(branch) == "":
			case g.at.hides(doorGraph, branchName(branch)):
				return nil, nil
			default:
				return g.ref(branch), nil
			}
		}
		return g.ref(name), nil
	})
	out["refs"] = lazy(g.refs)
	out["object"] = lazy(func(in args) (any, error) { return g.expression(in), nil })
}

func (g *gitGraph) refs(in args) (any, error) {
	prefix := in.String("refPrefix")
	rest, heads := strings.CutPrefix(prefix, "refs/heads/")
	if !strings.HasPrefix(prefix, "refs/") || !strings.HasSuffix(prefix, "/") {
		return nil, &gql.Error{Type: "UNPROCESSABLE", Message: fmt.Sprintf(
			"The refPrefix must start with `refs/` and end with `/`; it is `%s`.", prefix)}
	}
	var names []string
	for _, branch := range g.at.branches() {
		if heads && strings.HasPrefix(branch, rest) &&
			strings.Contains(lower(branch[len(rest):]), lower(in.String("query"))) {
			names = append(names, branch)
		}
	}
	if in.String("direction") == "DESC" || in.Object("orderBy").String("direction") == "DESC" {
		slices.Reverse(names)
	}
	return gql.Connection("Ref", "refs", gql.Items{
		Len: len(names), Key: func(i int) string { return names[i] },
		Node: func(i int) *gql.Object { return g.ref(names[i]) },
	}, in)
}

// ref returns a branch, or nil.
func (g *gitGraph) ref(branch string) *gql.Object {
	tip := g.at.tip(branch)
	if tip == "" {
		return nil
	}
	return &gql.Object{Type: "Ref", Fields: fields{
		"id": nodeID(kindRef, g.at.id, "refs/heads/"+branch), "name": branch, "prefix": "refs/heads/",
		"target":        g.at.rights().guarded(func(args) (any, error) { return g.commit(tip), nil }, "contents"),
		"repository":    lazy(func(args) (any, error) { return g.at.graph().repo(), nil }),
		"refUpdateRule": lazy(func(args) (any, error) { return g.updateRule(branch), nil }),
		"associatedPullRequests": lazy(func(in args) (any, error) {
			in["headRefName"] = branch
			return g.at.graph().pulls("associatedPullRequests", in)
		}),
	}}
}

func (p *place) approvals() int {
	if p.set.Protection.RequireReview {
		return 1
	}
	return 0
}

// updateRule tells what the token's owner may do to a branch; nil if nothing restricts them.
func (g *gitGraph) updateRule(branch string) *gql.Object {
	pattern := g.at.set.protection(branch)
	if pattern == "" {
		return nil
	}
	return &gql.Object{Type: "RefUpdateRule", Fields: fields{
		"requiredApprovingReviewCount": g.at.approvals(), "requiresSignatures": false, "viewerCanPush": false,
	}}
}

// expression resolves what git's rev-parse would: a commit, or the entry at a path of one ("main:checks/disk.md").
func (g *gitGraph) expression(in args) *gql.Object {
	if oid := in.String("oid"); oid != "" {
		if g.at.hides(doorGraph, oid) {
			return nil
		}
		return g.object(oid)
	}
	rev, file, hasPath := strings.Cut(in.String("expression"), ":")
	commit := g.at.read().commitOf(rev)
	switch {
	case commit == "" && !hasPath:
		return g.object(rev)
	case commit == "":
		return nil
	case !hasPath:
		return g.commit(commit)
	case file == "":
		return g.tree(g.at.read().root(commit))
	}
	e, found := g.at.read().entry(g.at.read().root(commit), strings.TrimSuffix(file, "/"))
	if !found {
		return nil
	}
	return g.entryObject(e)
}

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

// gqlRollup returns CI's result for a commit, or nil if there is none.
func (g *gitGraph) gqlRollup(commit string) *gql.Object {
	state := g.at.rollup(commit)
	if state == "" {
		return nil
	}
	return &gql.Object{Type: "StatusCheckRollup", Fields: fields{
		"state":    state,
		"contexts": lazy(func(in args) (any, error) { return g.gqlContexts(commit, in) }),
	}}
}

func (g *gitGraph) gqlContexts(commit string, in args) (any, error) {
	runs, statuses := g.at.runs(commit), g.at.statuses(commit)
	node := func(i int) *gql.Object {
		if i < len(runs) {
			return g.gqlRun(commit, i)
		}
		return g.gqlContext(statuses[i-len(runs)])
	}
	return gql.Connection("StatusCheckRollupContext", "contexts", gql.Items{
		Len: len(runs) + len(statuses), Key: strconv.Itoa, Node: node,
	}, in)
}

// gqlRun returns a check run of a commit, by its place among them.
func (g *gitGraph) gqlRun(commit string, i int) *gql.Object {
	run := g.at.runs(commit)[i]
	var conclusion any
	if run.Status == "completed" {
		conclusion = strings.ToUpper(run.Conclusion)
	}
	page := g.at.web("runs", commit, run.Name)
	return &gql.Object{Type: "CheckRun", Fields: fields{
		"name": run.Name, "status": strings.ToUpper(run.Status), "conclusion": conclusion, "startedAt": run.Started,
		"title": orNull(run.Title), "summary": orNull(run.Summary), "text": orNull(run.Text), "detailsUrl": escaped(page),
		"checkSuite": lazy(func(args) (any, error) { return g.gqlSuite(commit, run), nil }),
	}}
}

// escaped makes an address of one that has names in it as people write them.
func escaped(address string) string { return strings.ReplaceAll(address, " ", "%20") }

// gqlSuite returns the suite that a check run belongs to: each workflow has one for each time that it was triggered,
// and each other app has one.
func (g *gitGraph) gqlSuite(commit string, run CheckRun) *gql.Object {
	app := cmp.Or(run.App, "github-actions")
	id := nodeID(kindSuite, g.at.id, fmt.Sprintf("%s/%s/%s/%s/%d", commit, app, run.Workflow, run.Event, run.Attempt))
	return &gql.Object{Type: "CheckSuite", Fields: fields{
		"id": id, "app": &gql.Object{Type: "App", Fields: fields{"slug": app}},
		"workflowRun": g.at.rights().guarded(func(args) (any, error) {
			if run.App != "" {
				return nil, nil
			}
			return &gql.Object{Type: "WorkflowRun", Fields: fields{
				"event": cmp.Or(run.Event, "pull_request"), "workflow": &gql.Object{
					Type: "Workflow", Fields: fields{"name": cmp.Or(run.Workflow, "CI")},
				},
			}}, nil
		}, "actions"),
	}}
}

func (g *gitGraph) gqlContext(st Status) *gql.Object {
	return &gql.Object{Type: "StatusContext", Fields: fields{
		"context": st.Context, "state": strings.ToUpper(st.State),
		"description": st.Description, "targetUrl": any(nil),
	}}
}

// orNull returns a text, or nothing.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
