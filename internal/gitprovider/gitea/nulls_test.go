package gitea_test

import (
	"fmt"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func TestNullsInListsArePassedOver(t *testing.T) {
	t.Parallel()
	null := []any{nil}
	script := looking(routes{
		"GET " + repoPath + "/git/trees/HEAD":                    object{"sha": baseCommit, "tree": null},
		"GET " + repoPath + "/pulls":                             []any{nil, pull(1, object{"labels": null})},
		"GET " + repoPath + "/pulls/1":                           pull(1, object{"labels": null}),
		"GET " + repoPath + "/pulls/1/files":                     null,
		"GET " + repoPath + "/pulls/1/reviews":                   null,
		"GET " + repoPath + "/commits/" + madeCommit + "/status": object{"statuses": null},
	})
	for route, body := range script {
		if body, isPage := body.([]any); isPage {
			script[route] = reply{header: map[string]string{"X-Total-Count": fmt.Sprint(len(body))}, body: body}
		}
	}
	p := serve(t, script).provider(t)
	if _, err := p.Status(t.Context(), ref(), 1); err != nil {
		t.Error(err)
	}
	// The nulls make the list shorter than its total: it is read again, and then the call fails rather than lose one.
	_, err := p.Snapshot(t.Context(), gitprovider.SnapshotQuery{Repo: ref()})
	wantCode(t, err, fault.UpstreamError)
	for _, answer := range []any{object{}, nil} {
		_, err := serve(t, looking(routes{"GET " + repoPath: answer,
			"GET " + repoPath + "/git/trees/HEAD": object{"sha": baseCommit}})).snapshot(t, gitprovider.SnapshotQuery{})
		wantCode(t, err, fault.UpstreamError)
	}
}
