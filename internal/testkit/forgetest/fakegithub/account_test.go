package fakegithub

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// as makes a request of somebody else's about the repository.
func (b *bed) as(token, method, path string, body any) reply {
	b.t.Helper()
	return b.in(method, path, body, "Authorization", "Bearer "+token)
}

// made is a bed whose repository a client made, with one commit on the branch trunk.
func made(t *testing.T, fields map[string]any) *bed {
	b := newBed(t)
	b.SetInitialBranch("trunk")
	body := map[string]any{"name": "scratch", "auto_init": true}
	for field, value := range fields {
		body[field] = value
	}
	got := b.want(b.send("POST", "/user/repos", body), 201)
	b.same("made", []any{got.at("full_name"), got.at("default_branch"), got.at("permissions", "admin")},
		[]any{"ops-bot/scratch", "trunk", true})
	b.ref = gitprovider.RepoRef{Owner: b.Viewer(), Name: "scratch"}
	return b
}

func TestARepositoryIsMadeAndRemoved(t *testing.T) {
	b := made(t, nil)
	b.same("labels", b.in("GET", "/labels", nil).at(0, "name"), any("bug"))
	b.same("files", b.in("GET", "/git/trees/trunk", nil).at("tree", 0, "path"), any("README.md"))
	again := b.want(b.send("POST", "/user/repos", map[string]any{"name": "Scratch"}), 422)
	b.same("twice", again.at("errors", 0, "message"), any("name already exists on this account"))
	b.want(b.send("POST", "/user/repos", map[string]any{"name": "no name"}), 422)
	b.want(b.in("DELETE", "", nil), 204)
	b.want(b.in("DELETE", "", nil), 404)
	b.want(b.in("GET", "", nil), 404)
	b.problem(b.ask(`{ repository(owner: "ops-bot", name: "scratch") { id } }`, nil), "NOT_FOUND", "'ops-bot/scratch'")
	b.want(b.send("POST", "/user/repos", map[string]any{"name": "scratch"}), 201)
	b.want(b.in("GET", "/git/ref/heads/trunk", nil), 409)
}

func TestARepositoryIsMadeInAnOrganisation(t *testing.T) {
	b := newBed(t)
	got := b.want(b.send("POST", "/orgs/"+b.Organisation()+"/repos", map[string]any{"name": "x", "private": true}), 201)
	b.same("made", []any{got.at("full_name"), got.at("private")}, []any{"octo-org/x", true})
	b.want(b.send("POST", "/orgs/elsewhere/repos", map[string]any{"name": "x"}), 404)
}

func TestOnlyAdministratorsRemoveARepository(t *testing.T) {
	b := newBed(t)
	got := b.want(b.in("DELETE", "", nil), 403)
	b.same("message", got.at("message"), any("Must have admin rights to Repository."))
	b.want(b.in("GET", "", nil), 200)
}

func TestABranchIsRenamed(t *testing.T) {
	b := made(t, nil)
	tip := b.tip("trunk")
	b.push("feature", "a.md", "a\n")
	b.want(b.in("POST", "/pulls", map[string]any{"title": "A", "head": "feature", "base": "trunk"}), 201)
	got := b.want(b.in("POST", "/branches/trunk/rename", map[string]any{"new_name": "main"}), 201)
	b.same("branch", []any{got.at("name"), got.at("commit", "sha")}, []any{"main", tip})
	b.same("default branch", b.in("GET", "", nil).at("default_branch"), any("main"))
	b.same("base", b.in("GET", "/pulls/1", nil).at("base", "ref"), any("main"))
	b.want(b.in("POST", "/branches/trunk/rename", map[string]any{"new_name": "x"}), 404)
	b.want(b.in("POST", "/branches/main/rename", map[string]any{"new_name": "feature"}), 422)
}

func TestAnInvitationIsAcceptedByTheInvited(t *testing.T) {
	b := made(t, map[string]any{"private": true})
	b.push("feature", "a.md", "a\n")
	b.want(b.in("POST", "/pulls", map[string]any{"title": "A", "head": "feature", "base": "trunk"}), 201)
	ada, eve := b.TokenOf("ada"), b.TokenOf("eve")
	b.same("who asks", b.send("GET", "/user", nil, "Authorization", "Bearer "+ada).at("login"), any("ada"))
	approval := map[string]any{"event": "APPROVE"}
	b.want(b.as(ada, "POST", "/pulls/1/reviews", approval), 404)
	invited := b.want(b.in("PUT", "/collaborators/ADA", map[string]any{"permission": "push"}), 201)
	b.same("invitation", []any{invited.at("invitee", "login"), invited.at("permissions")}, []any{"ada", "write"})
	b.same("invited again", b.want(b.in("PUT", "/collaborators/ada", nil), 201).at("id"), invited.at("id"))
	accept := fmt.Sprintf("/user/repository_invitations/%v", invited.at("id"))
	b.want(b.send("PATCH", accept, nil, "Authorization", "Bearer "+eve), 404)
	b.want(b.send("PATCH", accept, nil, "Authorization", "Bearer "+ada), 204)
	b.want(b.send("PATCH", accept, nil, "Authorization", "Bearer "+ada), 404)
	b.want(b.in("PUT", "/collaborators/ada", nil), 204)
	b.want(b.as(ada, "POST", "/pulls/1/reviews", approval), 200)
	b.want(b.as(eve, "POST", "/pulls/1/reviews", approval), 404)
	b.want(b.in("PUT", "/collaborators/nobody", nil), 404)
	b.want(b.in("PUT", "/collaborators/ops-bot", nil), 422)
}

func TestReviewsAreOfOtherPeople(t *testing.T) {
	b := scene(t)
	ada := b.TokenOf("ada")
	review := func(event, body string) map[string]any { return map[string]any{"event": event, "body": body} }
	for name, row := range map[string]struct {
		token  string
		body   map[string]any
		status int
		want   string
	}{
		"approving one's own": {b.Token(), review("APPROVE", ""), 422, "Can not approve your own pull request"},
		"requesting changes of oneself": {b.Token(), review("REQUEST_CHANGES", "No"), 422,
			"Can not request changes on your own"},
		"a comment on one's own":         {b.Token(), review("COMMENT", "Mind this"), 200, `"COMMENTED"`},
		"an approval":                    {ada, review("APPROVE", ""), 200, `"APPROVED"`},
		"a request for changes":          {ada, review("REQUEST_CHANGES", "No"), 200, `"CHANGES_REQUESTED"`},
		"a request without a reason":     {ada, review("REQUEST_CHANGES", " "), 422, "blank"},
		"a comment that says nothing":    {ada, review("COMMENT", ""), 422, "blank"},
		"a review that is not submitted": {ada, map[string]any{"body": "Later"}, 200, `"PENDING"`},
	} {
		got := b.want(b.as(row.token, "POST", "/pulls/1/reviews", row.body), row.status)
		if !strings.Contains(string(got.raw), row.want) {
			t.Errorf("%s: got %s, want %q", name, got.raw, row.want)
		}
	}
	again := b.want(b.as(ada, "POST", "/pulls/1/reviews", map[string]any{"body": "Later"}), 422)
	b.same("a second one", again.at("errors", 0), any("User can only have one pending review per pull request"))
	b.same("what others see", len(b.in("GET", "/pulls/1/reviews", nil).json.([]any)), 4)
}

func TestAPullRequestIsMergedByACommitWithTwoParents(t *testing.T) {
	b := scene(t)
	base, head := b.tip("main"), b.tip("claude-ops/check/x")
	b.in("GET", "/pulls/1", nil)
	b.same("mergeable", b.in("GET", "/pulls/1", nil).at("mergeable"), any(true))
	b.want(b.in("PUT", "/pulls/1/merge", map[string]any{"sha": base}), 409)
	merged := b.want(b.in("PUT", "/pulls/1/merge", map[string]any{"merge_method": "merge"}), 200).at("sha")
	b.same("tip", any(b.tip("main")), merged)
	w := b.host.World(t, b.ref, nil)
	b.same("parents", w.Parents(b.tip("main")), []string{base, head})
	b.same("message", w.Message(b.tip("main")), "Merge pull request #1 from octo/claude-ops/check/x\n\nWatch x")
	for range 20 { // a trial was made first, and is not taken for the merge by chance either
		pr := b.in("GET", "/pulls/1", nil)
		b.same("pull request", []any{pr.at("merged"), pr.at("merge_commit_sha")}, []any{true, merged})
	}
	again := b.want(b.in("PUT", "/pulls/1/merge", nil), 405)
	b.same("again", again.at("message"), any("Pull Request is not mergeable"))
}

func TestMergesThatAreRefused(t *testing.T) {
	for name, row := range map[string]struct {
		prepare func(b *bed)
		status  int
		want    string
	}{
		"a conflict": {func(b *bed) { b.push("main", "checks/x.md", "other\n") }, 405, "Pull Request is not mergeable"},
		"without a review": {func(b *bed) {
			b.host.World(b.t, b.ref, nil).Review(1, "ann", "dismissed", "")
			b.Configure(b.ref, func(s *Settings) { s.Protection.RequireReview = true })
		}, 405, "At least 1 approving review is required"},
		"by a reader": {func(b *bed) { b.Configure(b.ref, func(s *Settings) { s.Token.Permission = "read" }) }, 403,
			"Resource not accessible"},
	} {
		t.Run(name, func(t *testing.T) {
			b := scene(t)
			row.prepare(b)
			got := b.want(b.in("PUT", "/pulls/1/merge", nil), row.status)
			if !strings.Contains(string(got.raw), row.want) {
				t.Errorf("got %s, want %q", got.raw, row.want)
			}
		})
	}
}

func TestATrialMergeIsKeptUntilTheNext(t *testing.T) {
	b := scene(t)
	trial := func() any {
		b.in("GET", "/pulls/1", nil) // the first read makes it known
		return b.in("GET", "/pulls/1", nil).at("merge_commit_sha")
	}
	first := trial()
	parents := b.want(b.in("GET", "/git/commits/"+first.(string), nil), 200)
	b.same("parents", []any{parents.at("parents", 0, "sha"), parents.at("parents", 1, "sha")},
		[]any{b.tip("main"), b.tip("claude-ops/check/x")})
	b.push("main", "README.md", "new\n")
	b.same("after a push", b.in("GET", "/pulls/1", nil).at("merge_commit_sha"), first)
	if second := trial(); second == first {
		t.Error("there was no other trial")
	}
	if b.in("GET", "/pulls/1", nil).at("merged") != false {
		t.Error("a trial counts as the merge")
	}
}

func TestATreeTakesLinksAndSubmodules(t *testing.T) {
	b := newBed(t)
	tree := b.want(b.in("POST", "/git/trees", map[string]any{"tree": []any{
		map[string]any{"path": "link", "mode": "120000", "type": "blob", "content": "README.md"},
		map[string]any{"path": "sub", "mode": "160000", "type": "commit", "sha": strings.Repeat("ab", 20)},
	}}), 201)
	b.same("modes", []any{tree.at("tree", 0, "mode"), tree.at("tree", 1, "mode")}, []any{"120000", "160000"})
	commit := b.want(b.in("POST", "/git/commits",
		map[string]any{"message": "x", "tree": tree.at("sha"), "parents": []any{}}), 201)
	b.want(b.in("PATCH", "/git/refs/heads/main", map[string]any{"sha": commit.at("sha"), "force": true}), 200)
	b.same("files", b.host.World(t, b.ref, nil).Files(b.tip("main")), []memhost.File{
		{Path: "link", Kind: gitprovider.KindSymlink, Content: "README.md"}, {Path: "sub", Kind: gitprovider.KindSubmodule},
	})
}

func TestOthersMayAskForLittle(t *testing.T) {
	b := newBed(t)
	r := &recorder{TB: t}
	b.Server.t = r
	ada := b.TokenOf("ada")
	b.as(ada, "GET", "/labels", nil)
	b.want(b.send("POST", "/graphql", map[string]any{"query": "{ viewer { login } }"}, "Authorization", "Bearer "+ada),
		404)
	if len(r.failures) != 2 {
		t.Errorf("failures %q", r.failures)
	}
}
