package fakegithub

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// play plays an exchange. What people do is done at the host, and asked is false: there is no answer to compare. A list
// of issues is one of labels, since there are no issues.
func (r *replay) play(e recorded) (got heard, asked bool) {
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
	return heard{}, false
}

// commit writes the file that a recorded request writes.
func (r *replay) commit(e recorded) {
	var in struct{ Message, Content string }
	var out struct{ Commit struct{ SHA string } }
	_ = json.Unmarshal(e.Request.Body, &in)
	raw, _ := json.Marshal(e.Response.Body)
	_ = json.Unmarshal(raw, &out)
	content, err := base64.StdEncoding.DecodeString(in.Content + strings.Repeat("=", (4-len(in.Content)%4)%4))
	if err != nil || out.Commit.SHA == "" {
		r.t.Fatalf("the recorded file: %v", err)
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
func (r *replay) sameBlob(e recorded, content string) {
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
func (r *replay) say(e recorded) {
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
func (r *replay) listLabels(e recorded) heard {
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
func (r *replay) rename(e recorded) {
	former := r.repo
	r.repo.Name += "-newname"
	r.s.host.Add(r.repo.Owner, r.repo.Name, memhost.File{Path: "README.md", Content: "x"})
	r.s.Configure(r.repo,
		func(set *Settings) { set.RenamedFrom, set.Token.Permission = []string{former.String()}, "admin" })
	r.pairRepo(e)
}

// redirected is the answer to a write under the former name. A client of ours asks for a label here: only what follows
// the repository's address differs.
func (r *replay) redirected(e recorded) heard {
	got := r.request(http.MethodPost, r.toOurs(e.Request.Path)+"/labels", `{"name":"x"}`, r.s.Token())
	got.Headers["Location"] = strings.TrimSuffix(got.Headers["Location"], "/labels")
	if body, is := got.Body.(map[string]any); is {
		body["url"] = strings.TrimSuffix(body["url"].(string), "/labels")
	}
	return got
}

// pairInvitation notes the fake's id of an invitation.
func (r *replay) pairInvitation(e recorded, got heard) {
	if want, is := e.Response.Body.(map[string]any); is && want["invitee"] != nil {
		have, _ := got.Body.(map[string]any)
		r.ours[fmt.Sprintf("%.0f", want["id"])] = fmt.Sprintf("%.0f", have["id"])
	}
}

// pairRepo notes the fake's id of the repository that a recorded answer shows.
func (r *replay) pairRepo(e recorded) {
	shown, _ := e.Response.Body.(map[string]any)
	r.s.host.Locked(func() {
		r.ours[fmt.Sprintf("%.0f", shown["id"])] = strconv.Itoa(r.s.repos.place(r.s.host.Repo(r.repo)).id)
	})
}
