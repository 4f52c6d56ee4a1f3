package gitea_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

const (
	contentsRoute = "POST " + repoPath + "/contents"
	baseRefs      = "GET " + repoPath + "/git/refs/heads/main"
	ourRefs       = "GET " + repoPath + "/git/refs/heads/claude-ops"
	branchRefs    = "GET " + repoPath + "/git/refs/heads/" + ourBranch
	deleteRoute   = "DELETE " + repoPath + "/branches/" + ourBranch
)

func refsAt(refs ...string) []object {
	out := []object{}
	for i := 0; i < len(refs); i += 2 {
		out = append(out, object{"ref": "refs/heads/" + refs[i], "object": object{"type": "commit", "sha": refs[i+1]}})
	}
	return out
}

// diskRequest updates one file.
func diskRequest(t *testing.T) gitprovider.CommitRequest {
	return gitprovider.CommitRequest{
		Snapshot: &gitprovider.Snapshot{
			Repo: ref(), DefaultBranch: "main", Base: "main", BaseCommit: baseCommit, Tree: gitprovider.Tree{
				"checks":         {Kind: gitprovider.KindDir, ID: otherID},
				"checks/disk.md": {Kind: gitprovider.KindFile, ID: gitprovider.BlobID([]byte("old\n"), baseCommit)},
			},
		},
		Branch: ourBranch, Changes: providertest.ChangeSet(t, providertest.Update("checks/disk.md", "new\n")),
		Message: "Update\n", Time: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC),
	}
}

// made is the answer to diskRequest, with changes.
func made(change object) reply {
	out := object{
		"files":  []object{{"path": "checks/disk.md", "sha": gitprovider.BlobID([]byte("new\n"), baseCommit)}},
		"commit": object{"sha": madeCommit, "parents": []object{{"sha": baseCommit}}, "tree": object{"sha": otherID}},
	}
	for name, value := range change {
		out[name] = value
	}
	return reply{status: http.StatusCreated, body: out}
}

func TestCommitSendsWhatGuardsItAndDatesIt(t *testing.T) {
	t.Parallel()
	s := serve(t, routes{contentsRoute: made(nil)})
	_, err := s.provider(t).Commit(t.Context(), diskRequest(t))
	wantCode(t, err, "")
	var sent map[string]any
	if err := json.Unmarshal(s.faults.Requests()[0].Body, &sent); err != nil {
		t.Fatal(err)
	}
	dates, _ := sent["dates"].(map[string]any)
	file, _ := sent["files"].([]any)[0].(map[string]any)
	if dates["author"] != "2026-03-04T05:06:07Z" || dates["committer"] != dates["author"] {
		t.Errorf("dates %v", dates)
	}
	if file["sha"] != gitprovider.BlobID([]byte("old\n"), baseCommit) || file["content"] != "bmV3Cg==" ||
		file["operation"] != "update" || sent["branch"] != "main" || sent["new_branch"] != ourBranch {
		t.Errorf("sent %v", sent)
	}
}

func TestCommitRefusals(t *testing.T) {
	t.Parallel()
	free := routes{baseRefs: refsAt("main", baseCommit), ourRefs: asRefusal(404, "not found")}
	for name, tc := range map[string]struct {
		answer reply
		there  routes
		want   fault.Code
		says   string
	}{
		"a branch that exists is a conflict": {asRefusal(422, "branch already exists [name: x]"), nil, fault.Conflict,
			ourBranch},
		"losing a race is a conflict though the status says forbidden": {
			asRefusal(403, "cannot lock ref 'refs/heads/x': reference already exists"), free, fault.Conflict, "same moment"},
		"losing a race is a conflict however it is worded": {asRefusal(403, "verboten"),
			routes{baseRefs: refsAt("main", baseCommit), ourRefs: refsAt(ourBranch, otherID)}, fault.Conflict, "exists"},
		"a branch above is a conflict": {asRefusal(403, "verboten"),
			routes{baseRefs: refsAt("main", baseCommit), ourRefs: refsAt("claude-ops/check", otherID)}, fault.Conflict,
			"claude-ops/check "},
		"a branch below is a conflict": {asRefusal(403, "verboten"),
			routes{baseRefs: refsAt("main", baseCommit), ourRefs: refsAt(ourBranch+"/more", otherID)}, fault.Conflict, "/more"},
		"a base that moved is a conflict": {asRefusal(403, "verboten"),
			routes{baseRefs: refsAt("main", otherID), ourRefs: asRefusal(404, "not found")}, fault.Conflict, "moved"},
		"a protected name is not allowed": {asRefusal(403, "Not allowed to push to protected branch claude-ops/check/disk"),
			free,
			fault.RepoNotAllowed, "protected branch"},
		"a signature that is demanded is the server's to make": {
			asRefusal(403, "branch claude-ops/check/disk is protected from unverified commit "+otherID), free,
			fault.RepoNotAllowed, "SIGNING_KEY"},
		"the reason stands behind what a hook logs": {
			asRefusal(403, strings.Repeat("2026/03/01 09:00:00 modules/setting/x.go:1:load() [E] Deprecated setting "+
				"`[x] Y` is present\n", 4)+"branch claude-ops/check/disk is protected from unverified commit "+otherID), free,
			fault.RepoNotAllowed, "SIGNING_KEY"},
		"a user who may not write is a matter of configuration": {asRefusal(403, "user should have a permission to write"),
			free,
			fault.ProviderDisabled, "write access"},
		"a token without the scope is a matter of configuration": {
			asRefusal(403, "token does not have at least one of required scope(s), required=[write:repository]"), free,
			fault.ProviderDisabled, "GITEA_TOKEN"},
		"an archived repository is not allowed": {asRefusal(423, "joe/home-cluster is not allowed to edit"), nil,
			fault.RepoNotAllowed, "archived"},
		"a missing base branch is not found": {asRefusal(404, "branch does not exist"), nil, fault.NotFound,
			"base branch main"},
		"a renamed repository is not found": {
			reply{status: 301, header: map[string]string{"Location": "/api/v1/repos/joe/new/contents"}}, nil, fault.NotFound,
			"another name"},
		"a redirect to a sign-in page is not a rename": {
			reply{status: 302, header: map[string]string{"Location": "/user/login?redirect_to=%2f"}}, nil,
			fault.ProviderDisabled,
			"sign-in"},
		"a proxy that redirects elsewhere is a matter of configuration": {
			reply{status: 301, header: map[string]string{"Location": "https://other.example/api/v1/x"}}, nil,
			fault.ProviderDisabled, "other.example"},
		"a refused token is a matter of configuration": {asRefusal(401, "invalid username, password or token"), nil,
			fault.ProviderDisabled, "GITEA_TOKEN"},
		"a server without the route is a matter of configuration": {reply{status: 404, body: "404 page not found\n"}, nil,
			fault.ProviderDisabled, "GITEA_URL"},
		"a gateway's limit of size is the content's fault": {reply{status: 413, body: "<html>"}, nil, fault.ContentDenied,
			"large"},
		"a failing server may have acted": {reply{status: 500, body: object{"message": "/var/lib/x"}}, nil,
			fault.UpstreamError, "500"},
		"an answer that is a page may hide success": {reply{body: "<html>"}, nil, fault.UpstreamError, "GITEA_URL"},
		"an answer without a commit may hide success": {reply{status: 201, body: object{}}, nil, fault.UpstreamError,
			"which commit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := routes{contentsRoute: tc.answer}
			for route, answer := range tc.there {
				script[route] = answer
			}
			s := serve(t, script)
			_, err := s.provider(t).Commit(t.Context(), diskRequest(t))
			wantCode(t, err, tc.want)
			if !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "/var/lib") {
				t.Errorf("the message is %q; want %q in it", err, tc.says)
			}
			if n := s.count(contentsRoute); n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

func TestCommitThatMayHaveHappenedIsAmbiguousAndNotRepeated(t *testing.T) {
	t.Parallel()
	kinds := []httpfault.Kind{httpfault.ResetBefore, httpfault.ResetAfter, httpfault.BadGatewayAfter, httpfault.Truncated}
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := serve(t, routes{contentsRoute: made(nil)})
			s.faults.PlanNth(1, httpfault.Fault{Kind: kind})
			_, err := s.provider(t).Commit(t.Context(), diskRequest(t))
			wantCode(t, err, fault.UpstreamError)
			if n := len(s.faults.Requests()); n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

func TestCommitOfSomethingElseIsUndone(t *testing.T) {
	t.Parallel()
	otherParent := object{"commit": object{"sha": madeCommit, "parents": []object{{"sha": otherID}}}}
	otherFile := object{"files": []object{{"path": "checks/disk.md", "sha": otherID}}}
	otherPath := object{"files": []object{{"path": "disk.md", "sha": gitprovider.BlobID([]byte("new\n"), baseCommit)}}}
	tree := "GET " + repoPath + "/git/trees/" + madeCommit
	filtered := object{"sha": madeCommit, "tree": []object{
		{"path": "checks", "mode": "040000", "sha": otherID}, {"path": "checks/disk.md", "mode": "100644", "sha": otherID},
	}}
	for name, tc := range map[string]struct {
		made    object
		deleted reply
		want    fault.Code
	}{
		"on a base that had moved":                    {otherParent, reply{status: 204}, fault.Conflict},
		"with bytes that the server changed":          {otherFile, reply{status: 204}, fault.ContentDenied},
		"with a path that the server changed":         {otherPath, reply{status: 204}, fault.ContentDenied},
		"and says so if the branch cannot be removed": {otherParent, asRefusal(403, "branch protected"), fault.UpstreamError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, routes{contentsRoute: made(tc.made), branchRefs: refsAt(ourBranch, madeCommit), tree: filtered,
				deleteRoute: tc.deleted})
			_, err := s.provider(t).Commit(t.Context(), diskRequest(t))
			wantCode(t, err, tc.want)
			if s.count(deleteRoute) != 1 {
				t.Error("the branch was not removed")
			}
		})
	}
}

func TestCommitOfSomethingElseLeavesABranchThatSomebodyTook(t *testing.T) {
	t.Parallel()
	s := serve(t, routes{contentsRoute: made(object{"commit": object{"sha": madeCommit}}),
		branchRefs: refsAt(ourBranch, otherID)})
	_, err := s.provider(t).Commit(t.Context(), diskRequest(t))
	wantCode(t, err, fault.UpstreamError)
	if s.count(deleteRoute) != 0 {
		t.Error("somebody's branch was removed")
	}
}

func TestCommitWhoseFilesAreNotAllListedIsProvenByItsTree(t *testing.T) {
	t.Parallel()
	tree := "GET " + repoPath + "/git/trees/" + madeCommit
	s := serve(t, routes{contentsRoute: made(object{"files": []object{}}),
		tree: object{"sha": madeCommit, "tree": []object{
			{"path": "checks", "mode": "040000", "sha": otherID},
			{"path": "checks/disk.md", "mode": "100644", "sha": gitprovider.BlobID([]byte("new\n"), baseCommit)},
		}}})
	_, err := s.provider(t).Commit(t.Context(), diskRequest(t))
	wantCode(t, err, "")
	if s.count(tree) != 1 {
		t.Error("the tree was not looked at")
	}
}

func TestCommitChecksTheSnapshotBeforeItSendsAnything(t *testing.T) {
	t.Parallel()
	s := serve(t, routes{})
	req := diskRequest(t)
	req.Changes = providertest.ChangeSet(t, providertest.Create("checks/disk.md", "x"))
	_, err := s.provider(t).Commit(t.Context(), req)
	wantCode(t, err, fault.Conflict)
	if n := len(s.faults.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestDeleteBranchDoesNotMindThatSomebodyWasFaster(t *testing.T) {
	t.Parallel()
	s := serve(t, routes{
		branchRefs:  []reply{{body: refsAt(ourBranch, madeCommit)}, asRefusal(404, "not found")},
		deleteRoute: asRefusal(403, "branch is gone"), "GET " + repoPath: repository(),
	})
	wantCode(t, s.provider(t).DeleteBranch(t.Context(), ref(), ourBranch, madeCommit), "")
	if !slices.ContainsFunc(s.faults.Requests(), func(r httpfault.Seen) bool { return r.Method == http.MethodDelete }) {
		t.Error("nothing was deleted")
	}
}

// Where LFS is in force the server stores a pointer, without a word. That is a definite refusal, and nothing stays.
func TestAFileThatIsStoredByLFSIsRefusedForGood(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.Push(providertest.MainBranch, providertest.File{Path: ".gitattributes",
		Content: "checks/disk.md filter=lfs -text\n"})
	_, err := sc.commit(sc.p, ourBranch, providertest.Update("checks/disk.md", "new"))
	wantCode(t, err, fault.ContentDenied)
	if fault.CodeOf(err).Ambiguous() || !strings.Contains(err.Error(), "LFS") || sc.Branches()[ourBranch] != "" {
		t.Errorf("%v, branches %v", err, sc.Branches())
	}
}

// Where a branch has the name of the folder of our branches, no other title helps.
func TestABranchAtTheNameOfOurFolderIsNamed(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.Push("claude-ops", providertest.File{Path: "README.md", Content: "x"})
	_, err := sc.commit(sc.p, ourBranch, providertest.Update("checks/disk.md", "new"))
	wantCode(t, err, fault.RepoNotAllowed)
	if !strings.Contains(err.Error(), "rename or remove") || strings.Contains(err.Error(), "another title") {
		t.Error(err)
	}
}
