//go:build live

package gitea_test

import (
	"fmt"
	"net/http"

	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

var _ providertest.Public = (*liveWorld)(nil)

// Comment implements providertest.Commenter.
func (w *liveWorld) Comment(number int, author, body string) {
	w.t.Helper()
	w.api(author, http.MethodPost, fmt.Sprintf("issues/%d/comments", number), map[string]any{"body": body}, nil)
}

// OpenFromFork implements providertest.Public.
func (w *liveWorld) OpenFromFork(branch, title string, labels []string, files ...providertest.File) int {
	w.t.Helper()
	const who = "eve"
	w.api(who, http.MethodPost, "forks", map[string]any{}, nil)
	fork := "repos/" + who + "/" + w.name
	w.t.Cleanup(func() { w.live.must(w.t, "", http.MethodDelete, fork, nil, nil) })
	var changes []map[string]any
	for _, f := range files {
		change := map[string]any{"operation": "create", "path": f.Path, "content": []byte(f.Content)}
		var old struct {
			SHA string `json:"sha"`
		}
		if status, _ := w.live.call(w.t, "", http.MethodGet, fork+"/contents/"+f.Path, nil, &old); status == http.StatusOK {
			change["operation"], change["sha"] = "update", old.SHA
		}
		changes = append(changes, change)
	}
	w.live.must(w.t, who, http.MethodPost, fork+"/contents", map[string]any{
		"branch": providertest.MainBranch, "new_branch": branch, "message": title, "files": changes,
	}, nil)
	var made struct {
		Number int `json:"number"`
	}
	w.api(who, http.MethodPost, "pulls", map[string]any{
		"head": who + ":" + branch, "base": providertest.MainBranch, "title": title,
	}, &made)
	if len(labels) > 0 {
		w.api("", http.MethodPost, fmt.Sprintf("issues/%d/labels", made.Number), map[string]any{"labels": labels}, nil)
	}
	return made.Number
}
