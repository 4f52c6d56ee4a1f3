package fakegithub

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/forgetest/fakegithub/gql"
)

func (p *place) gqlRepo() *gql.Object {
	ref := p.repo.Ref
	var archived, parent any
	if p.repo.Archived {
		archived = epoch()
	}
	visibility := "PUBLIC"
	if p.set.Private {
		visibility = "PRIVATE"
	}
	out := fields{
		"id": nodeID(kindRepo, p.id, ""), "databaseId": p.id, "name": ref.Name, "nameWithOwner": ref.String(),
		"owner": p.s.gqlUser(ref.Owner), "url": p.web(), "resourcePath": "/" + ref.String(),
		"sshUrl":     "git@" + strings.TrimPrefix(p.s.host.Web(), "https://") + ":" + ref.String() + ".git",
		"isArchived": p.repo.Archived, "archivedAt": archived, "isDisabled": false, "isEmpty": len(p.branches()) == 0,
		"isFork": p.repo.Fork, "parent": parent, "isLocked": false, "isMirror": false, "isPrivate": p.set.Private,
		"isTemplate": false, "isInOrganization": false, "visibility": visibility,
		"viewerPermission": p.viewerPermission(), "viewerCanAdminister": p.set.allows("admin"),
		"createdAt": epoch(), "updatedAt": epoch(), "pushedAt": epoch(), "diskUsage": 1, "description": any(nil),
		"mergeCommitAllowed": true, "squashMergeAllowed": true, "rebaseMergeAllowed": true, "autoMergeAllowed": false,
		"deleteBranchOnMerge": false, "hasIssuesEnabled": true,
	}
	p.addRefFields(out)
	p.addPullFields(out)
	return &gql.Object{Type: "Repository", Fields: out}
}

func (p *place) addRefFields(out fields) {
	out["defaultBranchRef"] = lazy(func(args) (any, error) { return p.gqlRef(p.repo.Default), nil })
	out["ref"] = lazy(func(in args) (any, error) {
		name := in.String("qualifiedName")
		for _, prefix := range []string{"refs/heads/", "heads/"} {
			if branch, ok := strings.CutPrefix(name, prefix); ok && p.tip(branch) != "" {
				return p.gqlRef(branch), nil
			}
		}
		return p.gqlRef(name), nil
	})
	out["refs"] = lazy(p.gqlRefs)
	out["object"] = lazy(func(in args) (any, error) { return p.gqlExpression(in), nil })
	out["assignableUsers"] = lazy(func(in args) (any, error) {
		people := slices.DeleteFunc(p.set.people(), func(login string) bool {
			return !strings.Contains(lower(login), lower(in.String("query")))
		})
		return p.s.people("assignableUsers", people, in)
	})
	out["branchProtectionRules"] = lazy(func(in args) (any, error) {
		rules := p.set.Protected
		if !p.set.allows("admin") {
			rules = nil // only administrators see them
		}
		return gql.Connection("BranchProtectionRule", "branchProtectionRules", gql.Items{
			Len: len(rules), Key: func(i int) string { return rules[i] },
			Node: func(i int) *gql.Object { return p.gqlProtection(rules[i]) },
		}, in, nil)
	})
	out["rulesets"] = lazy(func(in args) (any, error) {
		rules := p.set.Protected
		return gql.Connection("RepositoryRuleset", "rulesets", gql.Items{
			Len: len(rules), Key: func(i int) string { return rules[i] },
			Node: func(i int) *gql.Object {
				return &gql.Object{Type: "RepositoryRuleset", Fields: fields{
					"id": nodeID(kindRuleset, p.id, rules[i]), "databaseId": i + 1, "name": rules[i], "enforcement": "ACTIVE",
					"target": "BRANCH", "createdAt": epoch(), "updatedAt": epoch(),
				}}
			},
		}, in, nil)
	})
}

func (p *place) gqlRefs(in args) (any, error) {
	prefix := in.String("refPrefix")
	rest, heads := strings.CutPrefix(prefix, "refs/heads/")
	if !strings.HasPrefix(prefix, "refs/") || !strings.HasSuffix(prefix, "/") {
		return nil, &gql.Error{Type: "UNPROCESSABLE", Message: fmt.Sprintf(
			"The refPrefix must start with `refs/` and end with `/`; it is `%s`.", prefix)}
	}
	var names []string
	for _, branch := range p.branches() {
		if heads && strings.HasPrefix(branch, rest) && strings.Contains(lower(branch[len(rest):]), lower(in.String("query"))) {
			names = append(names, branch)
		}
	}
	if in.String("direction") == "DESC" || in.Object("orderBy").String("direction") == "DESC" {
		slices.Reverse(names)
	}
	return gql.Connection("Ref", "refs", gql.Items{
		Len: len(names), Key: func(i int) string { return names[i] },
		Node: func(i int) *gql.Object { return p.gqlRef(names[i]) },
	}, in, nil)
}

// gqlRef is a branch, or nil.
func (p *place) gqlRef(branch string) *gql.Object {
	tip := p.tip(branch)
	if tip == "" {
		return nil
	}
	return &gql.Object{Type: "Ref", Fields: fields{
		"id": nodeID(kindRef, p.id, "refs/heads/"+branch), "name": branch, "prefix": "refs/heads/",
		"target":     p.guarded(func(args) (any, error) { return p.gqlCommit(tip), nil }, "contents"),
		"repository": lazy(func(args) (any, error) { return p.gqlRepo(), nil }),
		"branchProtectionRule": lazy(func(args) (any, error) {
			if pattern := p.set.protection(branch); pattern != "" && p.set.allows("write") {
				return p.gqlProtection(pattern), nil
			}
			return nil, nil
		}),
		"refUpdateRule": lazy(func(args) (any, error) { return p.gqlUpdateRule(branch), nil }),
		"associatedPullRequests": lazy(func(in args) (any, error) {
			in["headRefName"] = branch
			return p.gqlPulls("associatedPullRequests", in)
		}),
	}}
}

func (p *place) approvals() int {
	if p.set.RequireReview {
		return 1
	}
	return 0
}

func (p *place) gqlProtection(pattern string) *gql.Object {
	return &gql.Object{Type: "BranchProtectionRule", Fields: fields{
		"id": nodeID(kindProtection, p.id, pattern), "databaseId": 1, "pattern": pattern, "allowsDeletions": false,
		"allowsForcePushes": false, "blocksCreations": true, "isAdminEnforced": true, "lockBranch": false,
		"restrictsPushes": true, "requiresApprovingReviews": p.set.RequireReview,
		"requiredApprovingReviewCount": p.approvals(), "requiresStatusChecks": false,
		"requiredStatusCheckContexts": []any{}, "requiresCommitSignatures": false, "requiresLinearHistory": false,
		"repository": lazy(func(args) (any, error) { return p.gqlRepo(), nil }),
	}}
}

// gqlUpdateRule tells what the token's owner may do to a branch; nil if nothing restricts them.
func (p *place) gqlUpdateRule(branch string) *gql.Object {
	pattern := p.set.protection(branch)
	if pattern == "" {
		return nil
	}
	return &gql.Object{Type: "RefUpdateRule", Fields: fields{
		"pattern": pattern, "allowsDeletions": false, "allowsForcePushes": false, "blocksCreations": true,
		"requiredApprovingReviewCount": p.approvals(), "requiredStatusCheckContexts": []any{},
		"requiresCodeOwnerReviews": false, "requiresConversationResolution": false, "requiresLinearHistory": false,
		"requiresSignatures": false, "viewerAllowedToDismissReviews": p.set.allows("admin"), "viewerCanPush": false,
	}}
}

// gqlExpression resolves what git's rev-parse would: a commit, or the entry at a path of one ("main:checks/disk.md").
func (p *place) gqlExpression(in args) *gql.Object {
	if oid := in.String("oid"); oid != "" {
		return p.gqlObject(oid)
	}
	rev, file, hasPath := strings.Cut(in.String("expression"), ":")
	commit := p.commitOf(rev)
	switch {
	case commit == "" && !hasPath:
		return p.gqlObject(rev)
	case commit == "":
		return nil
	case !hasPath:
		return p.gqlCommit(commit)
	case file == "":
		return p.gqlTree(p.root(commit), "")
	}
	e, found := p.entry(p.root(commit), strings.TrimSuffix(file, "/"))
	if !found {
		return nil
	}
	return p.gqlEntryObject(e, path.Clean(file))
}
