package fakegithub

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// recordings lists the files, each about a repository of its own.
func recordings() []string {
	return strings.Fields(`add-and-remove-repository-collaborator add-labels-to-issue branch-protection create-file create-status
		errors get-content get-repository git-refs labels paginate-issues release-assets-conflict rename-repository`)
}

// outOfScope gives the reason why a recorded exchange is not held against the fake.
func outOfScope() map[string]string {
	const route = "no client of ours asks for this route"
	return map[string]string{
		"add-and-remove-repository-collaborator 2": route, "add-and-remove-repository-collaborator 4": route,
		"add-and-remove-repository-collaborator 5": route, "add-and-remove-repository-collaborator 6": route,
		"branch-protection 2": route, "create-status 4": route, "get-content 0": route, "get-content 1": route,
		"git-refs 3": route, "git-refs 6": route, "labels 4": route, "labels 5": route,
		"release-assets-conflict 0": route, "rename-repository 5": route,
	}
}

// replay is a server that a file's exchanges are played against.
type replay struct {
	t     *testing.T
	s     *Server
	file  string
	repo  gitprovider.RepoRef
	ours  map[string]string // ids of the fake by recorded ids
	names *strings.Replacer // recorded names to the fake's
	wrong []string
}

func TestTheFakeAnswersAsGitHubWasRecorded(t *testing.T) {
	skipped, played := outOfScope(), 0
	for _, file := range recordings() {
		t.Run(file, func(t *testing.T) {
			r := newReplay(t, file)
			for i, e := range forgetest.Recorded(t, file) {
				at := fmt.Sprintf("%s %d", file, i)
				if _, out := skipped[at]; out {
					delete(skipped, at)
					continue
				}
				if got, asked := r.play(e); asked {
					r.wrong = append(r.wrong, r.comparison().Problems(e.Response, got)...)
				}
				if len(r.wrong) > 0 {
					t.Errorf("%s: %s %s\n  %s", at, e.Request.Method, e.Request.Path, strings.Join(r.wrong, "\n  "))
				}
				r.wrong = nil
				played++
			}
		})
	}
	if len(skipped) > 0 {
		t.Errorf("these exchanges do not exist: %v", skipped)
	}
	if files, _ := filepath.Glob("testdata/recorded/*.json"); len(files) != len(recordings()) || played < 40 {
		t.Errorf("%d files of %d and %d exchanges were played", len(recordings()), len(files), played)
	}
}

func newReplay(t *testing.T, file string) *replay {
	r := &replay{t: t, s: New(t), file: file, ours: map[string]string{}}
	name := "tmp-" + file
	if file == "get-repository" {
		name = "hello-world"
	}
	r.repo = gitprovider.RepoRef{Owner: organisation, Name: name}
	r.names = strings.NewReplacer("octokit-fixture-org", organisation, "octokit-fixture-user-b", "ann",
		"octokit-fixture-user-a", viewer)
	r.s.TokenOf("ann")
	if file == "get-repository" {
		r.s.host.Add(organisation, name, memhost.File{Path: "README.md", Content: "# hello-world"})
		r.s.Configure(r.repo, func(set *Settings) { set.Token.Permission = "admin" })
		r.s.host.Locked(func() { r.s.repos.place(r.s.host.Repo(r.repo)).rename(memhost.MainBranch, "master") })
	}
	if file == "paginate-issues" {
		r.s.host.Add(organisation, name, memhost.File{Path: "README.md", Content: "x"})
	}
	return r
}

var objectID = regexp.MustCompile(`\b[0-9a-f]{40}\b`)

// toOurs replaces recorded names and ids by the fake's.
func (r *replay) toOurs(text string) string {
	text = r.names.Replace(text)
	text = objectID.ReplaceAllStringFunc(text, func(id string) string {
		if ours, known := r.ours[id]; known {
			return ours
		}
		return id
	})
	for theirs, ours := range r.ours {
		if len(theirs) < 40 {
			text = strings.ReplaceAll(text, theirs, ours)
		}
	}
	return text
}

// send sends a recorded request with a token.
func (r *replay) send(e forgetest.Exchange, token string) forgetest.Answer {
	r.t.Helper()
	return r.request(e.Request.Method, r.toOurs(e.Request.Path), r.toOurs(string(e.Request.Body)), token)
}

func (r *replay) request(method, path, body, token string) forgetest.Answer {
	r.t.Helper()
	return forgetest.Ask(r.t, method, r.s.URL()+path, body, "Bearer "+token)
}

// play plays an exchange. What people do is done at the host, and asked is false: there is no answer to compare. A list
// of issues is one of labels, since there are no issues.
func (r *replay) play(e forgetest.Exchange) (got forgetest.Answer, asked bool) {
	method, path := e.Request.Method, e.Request.Path
	switch {
	case strings.Contains(path, "/contents/") && method == http.MethodPut:
		r.commit(e)
	case strings.HasSuffix(path, "/issues") && method == http.MethodPost:
		r.openPull()
	case strings.Contains(path, "/statuses/"):
		r.say(e)
	case strings.HasSuffix(path, "/protection") && method != http.MethodGet:
	case strings.Contains(path, "/issues?"):
		return r.listLabels(e), true
	case method == http.MethodPatch && strings.HasPrefix(path, "/user/"):
		return r.send(e, r.s.TokenOf("ann")), true
	case r.file == "rename-repository" && method == http.MethodPost:
		r.rename(e)
	case r.file == "rename-repository" && method == http.MethodPatch:
		if e.Response.Status == http.StatusTemporaryRedirect {
			return r.redirected(e), true
		}
	default:
		got := r.send(e, r.s.Token())
		r.pairInvitation(e, got)
		return got, true
	}
	return forgetest.Answer{}, false
}

// commit writes the file that a recorded request writes.
func (r *replay) commit(e forgetest.Exchange) {
	var in struct{ Message, Content string }
	var out struct{ Commit struct{ SHA string } }
	_ = json.Unmarshal(e.Request.Body, &in)
	raw, _ := json.Marshal(e.Response.Body)
	_ = json.Unmarshal(raw, &out)
	content, err := base64.StdEncoding.DecodeString(in.Content + strings.Repeat("=", (4-len(in.Content)%4)%4))
	if err != nil || out.Commit.SHA == "" {
		r.t.Fatalf("the forgetest.Exchange file: %v", err)
	}
	_, name, _ := strings.Cut(e.Request.Path, "/contents/")
	err = r.s.host.Act(r.repo, func(repo *memhost.Repo) error {
		r.ours[out.Commit.SHA] = repo.Write(repo.Default, in.Message, []memhost.File{{Path: name, Content: string(content)}})
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.sameBlob(e, string(content))
}

// sameBlob demands that GitHub calls the content what git does.
func (r *replay) sameBlob(e forgetest.Exchange, content string) {
	var out struct{ Content struct{ SHA string } }
	raw, _ := json.Marshal(e.Response.Body)
	_ = json.Unmarshal(raw, &out)
	if got := gitprovider.BlobID([]byte(content), out.Content.SHA); got != out.Content.SHA {
		r.wrong = append(r.wrong, "the blob is "+got+", recorded was "+out.Content.SHA)
	}
}

func (r *replay) openPull() {
	err := r.s.host.Act(r.repo, func(repo *memhost.Repo) error {
		repo.Write(repo.Default, "first", []memhost.File{{Path: "README.md", Content: "x"}})
		repo.Write("topic", "second", []memhost.File{{Path: "more.md", Content: "x"}})
		r.s.host.Open(repo, gitprovider.PullRequestSpec{Repo: r.repo, Base: repo.Default, Head: "topic", Title: "A title"})
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// say lets a service report the status of a recorded request.
func (r *replay) say(e forgetest.Exchange) {
	var in struct {
		State, Description, Context string
		Target                      string `json:"target_url"`
	}
	_ = json.Unmarshal(e.Request.Body, &in)
	commit := r.ours[objectID.FindString(e.Request.Path)]
	r.s.Configure(r.repo, func(set *Settings) {
		if set.CI.Statuses == nil {
			set.CI.Statuses = map[string][]Status{}
		}
		set.CI.Statuses[commit] = append(set.CI.Statuses[commit], Status{in.Context, in.State, in.Description, in.Target})
	})
}

// listLabels asks for a page of thirteen labels, and calls them issues again.
func (r *replay) listLabels(e forgetest.Exchange) forgetest.Answer {
	r.s.Configure(r.repo, func(set *Settings) { set.Labels = strings.Split("abcdefghijklm", "") })
	id := strings.TrimPrefix(strings.Split(e.Response.Headers["Link"], "/issues")[0],
		"<https://api.github.com/repositories/")
	number := 0
	r.s.host.Locked(func() { number = r.s.repos.place(r.s.host.Repo(r.repo)).id })
	r.ours[id] = strconv.Itoa(number)
	got := r.request(http.MethodGet, strings.ReplaceAll(r.toOurs(e.Request.Path), "/issues?", "/labels?"), "", r.s.Token())
	got.Headers["Link"] = strings.ReplaceAll(got.Headers["Link"], "/labels?", "/issues?")
	got.Body = nil
	return got
}

// rename makes the repository with its last name and a former one: the host cannot rename.
func (r *replay) rename(e forgetest.Exchange) {
	former := r.repo
	r.repo.Name += "-newname"
	r.s.host.Add(r.repo.Owner, r.repo.Name, memhost.File{Path: "README.md", Content: "x"})
	r.s.Configure(r.repo,
		func(set *Settings) { set.RenamedFrom, set.Token.Permission = []string{former.String()}, "admin" })
	r.pairRepo(e)
}

// redirected is the answer to a write under the former name. A client of ours asks for a label here: only what follows
// the repository's address differs.
func (r *replay) redirected(e forgetest.Exchange) forgetest.Answer {
	got := r.request(http.MethodPost, r.toOurs(e.Request.Path)+"/labels", `{"name":"x"}`, r.s.Token())
	got.Headers["Location"] = strings.TrimSuffix(got.Headers["Location"], "/labels")
	if body, is := got.Body.(map[string]any); is {
		body["url"] = strings.TrimSuffix(body["url"].(string), "/labels")
	}
	return got
}

// pairInvitation notes the fake's id of an invitation.
func (r *replay) pairInvitation(e forgetest.Exchange, got forgetest.Answer) {
	if want, is := e.Response.Body.(map[string]any); is && want["invitee"] != nil {
		have, _ := got.Body.(map[string]any)
		r.ours[fmt.Sprintf("%.0f", want["id"])] = fmt.Sprintf("%.0f", have["id"])
	}
}

// pairRepo notes the fake's id of the repository that a recorded answer shows.
func (r *replay) pairRepo(e forgetest.Exchange) {
	shown, _ := e.Response.Body.(map[string]any)
	r.s.host.Locked(func() {
		r.ours[fmt.Sprintf("%.0f", shown["id"])] = strconv.Itoa(r.s.repos.place(r.s.host.Repo(r.repo)).id)
	})
}

// free are members whose value is the server's to choose: ids, faces, times, counts, addresses of documentation. That
// they are there, and of which type, is compared all the same.
func free(member string) bool {
	return slices.Contains([]string{
		"id", "node_id", "avatar_url", "gravatar_id", "documentation_url", "size", "login", "type", "temp_clone_token",
		"subscribers_count", "open_issues_count", "open_issues", "stargazers_count", "watchers_count", "watchers",
		"target_url",
		"description", "site_admin", "network_count", "language", "topics",
	}, member) || strings.HasSuffix(member, "_at")
}

// since are members that GitHub has added after the recordings were made, in 2022.
func since() []string {
	return []string{"status", "user_view_type", "has_discussions", "expired"}
}

// absent are members that the recordings have and the fake leaves out: settings of organisations and of merging, which
// no client of ours reads.
func absent() []string {
	return []string{
		"organization", "allow_squash_merge", "allow_merge_commit", "allow_rebase_merge", "allow_auto_merge",
		"allow_update_branch", "delete_branch_on_merge", "use_squash_pr_title_as_default", "squash_merge_commit_message",
		"squash_merge_commit_title", "merge_commit_message", "merge_commit_title", "temp_clone_token",
	}
}

// comparison compares answers with the forgetest.Exchange ones.
func (r *replay) comparison() forgetest.Comparison {
	return forgetest.Comparison{
		Headers: []string{"Content-Type", "Link", "Location", "X-GitHub-Media-Type", "Cache-Control"},
		Text:    r.text,
		IsFree:  func(_ map[string]any, member string) bool { return free(member) },
		Absent:  absent(), Since: since(),
	}
}

// text compares strings in which names, ids and addresses may differ.
func (r *replay) text(want, got string) (differs string) {
	want = r.toOurs(want)
	got = strings.ReplaceAll(got, r.s.URL(), "https://api.github.com")
	got = strings.ReplaceAll(got, "github.example", "github.com")
	if want != got {
		return fmt.Sprintf("%q, recorded was %q", got, want)
	}
	return ""
}
