package fakegithub

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
)

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
