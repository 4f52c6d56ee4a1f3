package fakegithub

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub/gql"
)

func (g *pullGraph) repo() *gql.Object {
	ref := g.at.repo.Ref
	var archived, parent any
	if g.at.repo.Archived {
		archived = epoch()
	}
	visibility := "PUBLIC"
	if g.at.set.Private {
		visibility = "PRIVATE"
	}
	out := fields{
		"id": nodeID(kindRepo, g.at.id, ""), "databaseId": g.at.id, "name": ref.Name, "nameWithOwner": ref.String(),
		"owner": g.at.s.graph.user(ref.Owner), "url": g.at.web(), "resourcePath": "/" + ref.String(),
		"sshUrl":     "git@" + strings.TrimPrefix(g.at.s.host.Web(), "https://") + ":" + ref.String() + ".git",
		"isArchived": g.at.repo.Archived, "archivedAt": archived, "isDisabled": false, "isEmpty": len(g.at.branches()) == 0,
		"isFork": g.at.repo.Fork, "parent": parent, "isLocked": false, "isMirror": false, "isPrivate": g.at.set.Private,
		"isTemplate": false, "isInOrganization": false, "visibility": visibility,
		"viewerPermission": g.at.rights().viewerPermission(), "viewerCanAdminister": g.at.set.allows("admin"),
		"createdAt": epoch(), "updatedAt": epoch(), "pushedAt": epoch(), "diskUsage": 1, "description": any(nil),
		"mergeCommitAllowed": true, "squashMergeAllowed": true, "rebaseMergeAllowed": true, "autoMergeAllowed": false,
		"deleteBranchOnMerge": false, "hasIssuesEnabled": true,
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
	out["assignableUsers"] = lazy(func(in args) (any, error) {
		people := slices.DeleteFunc(g.at.set.people(), func(login string) bool {
			return !strings.Contains(lower(login), lower(in.String("query")))
		})
		return g.at.s.graph.people("assignableUsers", people, in)
	})
	out["branchProtectionRules"] = lazy(func(in args) (any, error) {
		rules := g.at.set.Protection.Protected
		if !g.at.set.allows("admin") {
			rules = nil // only administrators see them
		}
		return gql.Connection("BranchProtectionRule", "branchProtectionRules", gql.Items{
			Len: len(rules), Key: func(i int) string { return rules[i] },
			Node: func(i int) *gql.Object { return g.protection(rules[i]) },
		}, in, nil)
	})
	out["rulesets"] = lazy(func(in args) (any, error) {
		rules := g.at.set.Protection.Protected
		return gql.Connection("RepositoryRuleset", "rulesets", gql.Items{
			Len: len(rules), Key: func(i int) string { return rules[i] },
			Node: func(i int) *gql.Object {
				return &gql.Object{Type: "RepositoryRuleset", Fields: fields{
					"id": nodeID(kindRuleset, g.at.id, rules[i]), "databaseId": i + 1, "name": rules[i], "enforcement": "ACTIVE",
					"target": "BRANCH", "createdAt": epoch(), "updatedAt": epoch(),
				}}
			},
		}, in, nil)
	})
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
	}, in, nil)
}

// ref is a branch, or nil.
func (g *gitGraph) ref(branch string) *gql.Object {
	tip := g.at.tip(branch)
	if tip == "" {
		return nil
	}
	return &gql.Object{Type: "Ref", Fields: fields{
		"id": nodeID(kindRef, g.at.id, "refs/heads/"+branch), "name": branch, "prefix": "refs/heads/",
		"target":     g.at.rights().guarded(func(args) (any, error) { return g.commit(tip), nil }, "contents"),
		"repository": lazy(func(args) (any, error) { return g.at.graph().repo(), nil }),
		"branchProtectionRule": lazy(func(args) (any, error) {
			if pattern := g.at.set.protection(branch); pattern != "" && g.at.set.allows("write") {
				return g.protection(pattern), nil
			}
			return nil, nil
		}),
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

func (g *gitGraph) protection(pattern string) *gql.Object {
	return &gql.Object{Type: "BranchProtectionRule", Fields: fields{
		"id": nodeID(kindProtection, g.at.id, pattern), "databaseId": 1, "pattern": pattern, "allowsDeletions": false,
		"allowsForcePushes": false, "blocksCreations": true, "isAdminEnforced": true, "lockBranch": false,
		"restrictsPushes": true, "requiresApprovingReviews": g.at.set.Protection.RequireReview,
		"requiredApprovingReviewCount": g.at.approvals(), "requiresStatusChecks": false,
		"requiredStatusCheckContexts": []any{}, "requiresCommitSignatures": false, "requiresLinearHistory": false,
		"repository": lazy(func(args) (any, error) { return g.at.graph().repo(), nil }),
	}}
}

// updateRule tells what the token's owner may do to a branch; nil if nothing restricts them.
func (g *gitGraph) updateRule(branch string) *gql.Object {
	pattern := g.at.set.protection(branch)
	if pattern == "" {
		return nil
	}
	return &gql.Object{Type: "RefUpdateRule", Fields: fields{
		"pattern": pattern, "allowsDeletions": false, "allowsForcePushes": false, "blocksCreations": true,
		"requiredApprovingReviewCount": g.at.approvals(), "requiredStatusCheckContexts": []any{},
		"requiresCodeOwnerReviews": false, "requiresConversationResolution": false, "requiresLinearHistory": false,
		"requiresSignatures": false, "viewerAllowedToDismissReviews": g.at.set.allows("admin"), "viewerCanPush": false,
	}}
}

// expression resolves what git's rev-parse would: a commit, or the entry at a path of one ("main:checks/disk.md").
func (g *gitGraph) expression(in args) *gql.Object {
	if oid := in.String("oid"); oid != "" {
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
		return g.tree(g.at.read().root(commit), "")
	}
	e, found := g.at.read().entry(g.at.read().root(commit), strings.TrimSuffix(file, "/"))
	if !found {
		return nil
	}
	return g.entryObject(e, path.Clean(file))
}
