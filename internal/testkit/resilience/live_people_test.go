//go:build live

package resilience

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// This file has what people do to a real server, beside the proxy.

// person makes a user, if there is none of the name. Another test may make it at the same moment.
func (g *liveGitea) person(name string) {
	g.t.Helper()
	exists := func() bool {
		status, _ := g.call("", http.MethodGet, "users/"+name, nil)
		return status == http.StatusOK
	}
	if exists() {
		return
	}
	status, answer := g.call("", http.MethodPost, "admin/users", map[string]any{
		"username": name, "email": name + "@example.test", "password": rand.Text(), "must_change_password": false,
	})
	if status >= 300 && !exists() {
		g.t.Fatalf("the user %s: %d %.300s", name, status, answer)
	}
}

// removeInTheEnd removes the repository when the test ends, whatever it is called by then.
func (g *liveGitea) removeInTheEnd(repo gitprovider.RepoRef) {
	g.t.Helper()
	var made struct {
		ID int64 `json:"id"`
	}
	g.must(http.MethodGet, "repos/"+repo.String(), nil, &made)
	g.t.Cleanup(func() {
		var now struct {
			FullName string `json:"full_name"`
		}
		g.must(http.MethodGet, fmt.Sprintf("repositories/%d", made.ID), nil, &now)
		g.must(http.MethodDelete, "repos/"+now.FullName, nil, nil)
		if g.organisation != "" {
			g.must(http.MethodDelete, "orgs/"+g.organisation, nil, nil)
		}
	})
}

func pullPath(repo gitprovider.RepoRef, number int, rest ...string) string {
	return strings.Join(append([]string{fmt.Sprintf("repos/%s/pulls/%d", repo, number)}, rest...), "/")
}

// AskForChanges implements outside.
func (g *liveGitea) AskForChanges(repo gitprovider.RepoRef, number int) {
	g.t.Helper()
	g.review("ann", repo, number, "REQUEST_CHANGES", "Say how.")
}

// AskAboutLines implements outside.
func (g *liveGitea) AskAboutLines(repo gitprovider.RepoRef, number int, lines ...gitprovider.LineComment) {
	g.t.Helper()
	g.review("ann", repo, number, "REQUEST_CHANGES", "See the lines.", lines...)
}

// Posted implements outside.
func (g *liveGitea) Posted(repo gitprovider.RepoRef, number int) []string {
	g.t.Helper()
	bodies := g.comments(repo, number)
	var reviews []struct {
		ID int64 `json:"id"`
	}
	g.must(http.MethodGet, pullPath(repo, number, "reviews"), nil, &reviews)
	for _, r := range reviews {
		var lines []struct {
			Body string `json:"body"`
		}
		g.must(http.MethodGet, pullPath(repo, number, "reviews", fmt.Sprint(r.ID), "comments"), nil, &lines)
		for _, c := range lines {
			bodies = append(bodies, c.Body)
		}
	}
	return bodies
}

// review is somebody's review, with comments on the first lines of the files.
func (g *liveGitea) review(who string, repo gitprovider.RepoRef, number int, event, body string,
	lines ...gitprovider.LineComment) {
	g.t.Helper()
	comments := []map[string]any{}
	for _, c := range lines {
		comments = append(comments, map[string]any{"path": c.Path, "body": c.Body, "new_position": c.Line})
	}
	g.mustAs(who, http.MethodPost, pullPath(repo, number, "reviews"),
		map[string]any{"event": event, "body": body, "comments": comments}, nil)
}

func (g *liveGitea) comment(who string, repo gitprovider.RepoRef, number int, body string) {
	g.t.Helper()
	g.mustAs(who, http.MethodPost, fmt.Sprintf("repos/%s/issues/%d/comments", repo, number), map[string]any{"body": body},
		nil)
}

// merge tries for a while: the server refuses as long as it finds out whether it can.
func (g *liveGitea) merge(repo gitprovider.RepoRef, number int) {
	g.t.Helper()
	status, answer := 0, []byte(nil)
	for end := time.Now().Add(20 * time.Second); ; <-time.After(100 * time.Millisecond) {
		status, answer = g.call("", http.MethodPost, pullPath(repo, number, "merge"), map[string]any{"Do": "merge"})
		if status < 300 {
			return
		}
		if time.Now().After(end) {
			g.t.Fatalf("merge of #%d: %d %.300s", number, status, answer)
		}
	}
}

// untilOpen waits for the pull request that a killed process has asked for.
func (g *liveGitea) untilOpen(repo gitprovider.RepoRef) {
	g.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; <-time.After(50 * time.Millisecond) {
		if _, open := g.Look(repo); len(open) > 0 {
			return
		}
		if time.Now().After(end) {
			g.t.Fatal("no pull request arrives")
		}
	}
}

func (g *liveGitea) close(repo gitprovider.RepoRef, number int) {
	g.t.Helper()
	g.must(http.MethodPatch, pullPath(repo, number), map[string]any{"state": "closed"}, nil)
}

func (g *liveGitea) change(repo gitprovider.RepoRef, fields map[string]any) {
	g.t.Helper()
	g.must(http.MethodPatch, "repos/"+repo.String(), fields, nil)
}

// Rename gives the repository another name, or another owner, which is an organisation that is made for it.
func (g *liveGitea) Rename(repo gitprovider.RepoRef, owner, name string) gitprovider.RepoRef {
	g.t.Helper()
	if owner != repo.Owner {
		g.must(http.MethodPost, "orgs", map[string]any{"username": owner}, nil)
		g.organisation = owner // removed after its repository
		g.must(http.MethodPost, "repos/"+repo.String()+"/transfer", map[string]any{"new_owner": owner}, nil)
		repo.Owner = owner
	}
	if name != repo.Name {
		g.change(repo, map[string]any{"name": name})
		repo.Name = name
	}
	return repo
}

// Seen implements outside.
func (g *liveGitea) Seen(repo gitprovider.RepoRef, number int, branch string) seen {
	g.t.Helper()
	var refs []struct {
		Ref    string `json:"ref"`
		Object struct {
			SHA string `json:"sha"`
		} `json:"object"`
	}
	g.must(http.MethodGet, "repos/"+repo.String()+"/git/refs/heads/"+branch, nil, &refs)
	out := seen{}
	for _, r := range refs {
		if r.Ref == "refs/heads/"+branch {
			out.tip = r.Object.SHA
		}
	}
	var commit struct {
		Parents []struct {
			SHA string `json:"sha"`
		} `json:"parents"`
	}
	g.must(http.MethodGet, "repos/"+repo.String()+"/git/commits/"+out.tip, nil, &commit)
	for _, p := range commit.Parents {
		out.parents = append(out.parents, p.SHA)
	}
	var file struct {
		Content []byte `json:"content"`
	}
	g.must(http.MethodGet, "repos/"+repo.String()+"/contents/checks/inodes.md?ref="+url.QueryEscape(out.tip), nil, &file)
	out.inodes = string(file.Content)
	var pr struct {
		Title string `json:"title"`
		Body  string `json:"body"`
	}
	g.must(http.MethodGet, pullPath(repo, number), nil, &pr)
	out.title, out.body = pr.Title, pr.Body
	for _, body := range g.comments(repo, number) {
		if strings.HasPrefix(body, gitprovider.AnswerOpening) {
			out.answers++
		}
	}
	return out
}

func (g *liveGitea) comments(repo gitprovider.RepoRef, number int) (bodies []string) {
	g.t.Helper()
	var all []struct {
		Body string `json:"body"`
	}
	g.must(http.MethodGet, fmt.Sprintf("repos/%s/issues/%d/comments", repo, number), nil, &all)
	for _, c := range all {
		bodies = append(bodies, c.Body)
	}
	return bodies
}
