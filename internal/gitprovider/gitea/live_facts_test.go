//go:build live

package gitea_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

// TestLiveFacts holds what the fake server is made after against a real one, beyond the contract: ids that outlast a
// name, archives, and reviews that were begun long before they were submitted.
func TestLiveFacts(t *testing.T) {
	base, err := url.Parse(os.Getenv("GITEA_URL"))
	if err != nil || base.Host == "" {
		t.Fatal("GITEA_URL is not an address")
	}
	h := &live{base: base, token: os.Getenv("GITEA_TOKEN")}
	var me struct {
		Login string `json:"login"`
	}
	h.must(t, "", http.MethodGet, "user", nil, &me)
	h.owner = me.Login
	h.person(t, "ann")
	h.person(t, "bob")
	w, is := h.NewRepo(t, providertest.File{Path: "README.md", Content: "# Home\n"},
		providertest.File{Path: "checks/disk.md", Content: "old\n"}).(*liveWorld)
	if !is {
		t.Fatal("no world of a real server")
	}
	s := providertest.NewScene(t, w)
	pr := s.Propose(ourBranch, providertest.Update("checks/disk.md", "new\n"))
	reader := h.provider(t)
	change := func(fields map[string]any) {
		t.Helper()
		h.must(t, "", http.MethodPatch, "repos/"+w.Ref().String(), fields, nil)
	}

	// Begun, and not submitted: no notification is sent.
	var begun struct {
		ID int64 `json:"id"`
	}
	w.api("ann", http.MethodPost, fmt.Sprintf("pulls/%d/reviews", pr.Number), map[string]any{
		"event": "PENDING", "body": "Not yet.",
		"comments": []map[string]any{{"path": "checks/disk.md", "new_position": 1, "body": "Which disk?"}},
	}, &begun)
	remarks, err := reader.Remarks(t.Context(), w.Ref(), pr.Number)
	s.Must(err)
	s.Same("remarks before it is submitted", len(remarks), 0)
	s.Must(reader.Comment(t.Context(), w.Ref(), pr.Number, "Said in between."))
	w.api("ann", http.MethodPost, fmt.Sprintf("pulls/%d/reviews/%d", pr.Number, begun.ID),
		map[string]any{"event": "COMMENT", "body": "See the line."}, nil)
	remarks, err = reader.Remarks(t.Context(), w.Ref(), pr.Number)
	s.Must(err)
	if len(remarks) != 2 || remarks[0].ID == remarks[1].ID {
		t.Fatalf("the remarks are %+v", remarks)
	}
	for _, r := range remarks {
		if r.Author == "ann" && (len(r.Lines) != 1 || !r.Lines[0].At.IsZero() || r.Lines[0].Line != 1) {
			t.Errorf("ann's review is %+v", r)
		}
	}

	// A name passes, the id stays; the former name leads to the repository.
	before, err := reader.Snapshot(t.Context(), gitprovider.SnapshotQuery{Repo: w.Ref()})
	s.Must(err)
	former, name := w.Ref(), w.name+"-renamed"
	change(map[string]any{"name": name})
	w.name = name
	for _, ref := range []gitprovider.RepoRef{former, w.Ref()} {
		after, err := reader.Snapshot(t.Context(), gitprovider.SnapshotQuery{Repo: ref})
		s.Must(err)
		s.Same("name", after.Repo.String(), w.Ref().String())
		s.Same("ids", []string{after.RepoID, after.Open[0].RepoID}, []string{before.RepoID, before.RepoID})
	}

	change(map[string]any{"archived": true})
	status, err := reader.Status(t.Context(), w.Ref(), pr.Number)
	s.Must(err)
	s.Same("archived", status.Archived, true)
	change(map[string]any{"archived": false})
}
