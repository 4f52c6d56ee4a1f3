package github_test

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

// livePull is what is looked at of a pull request.
type livePull struct {
	Number         int
	State          string
	Merged         bool
	Mergeable      *bool
	MergeCommitSHA string `json:"merge_commit_sha"` // while it is open: of the last trial merge that went well
	Head, Base     struct{ Ref, SHA string }
}

func (pr livePull) closed() bool { return pr.State == "closed" }

func decoded(answer string, into any) bool { return json.Unmarshal([]byte(answer), into) == nil }

func (w *liveWorld) pull(number int) (pr livePull) {
	w.t.Helper()
	w.must(http.MethodGet, fmt.Sprintf("pulls/%d", number), nil, &pr)
	return pr
}

// openPulls lists the open pull requests that fit; tests that push to what has some have few of them.
func (w *liveWorld) openPulls(fits func(livePull) bool) (out []livePull) {
	w.t.Helper()
	var open []livePull
	w.must(http.MethodGet, "pulls?state=open&per_page=100", nil, &open)
	for _, pr := range open {
		if fits(pr) {
			out = append(out, pr)
		}
	}
	return out
}

// until waits for a pull request to be as it has to become.
func (w *liveWorld) until(number int, what string, fits func(livePull) bool) {
	w.t.Helper()
	if !w.live.eventually(w.t, func() bool { return fits(w.pull(number)) }) {
		w.t.Fatalf("GitHub does not show after %d looks that the pull request #%d is %s", liveLooks, number, what)
	}
}

// untilNoticed waits until the pull requests from and into a branch show what was pushed to it.
func (w *liveWorld) untilNoticed(branch, tip string) {
	w.t.Helper()
	for _, pr := range w.openPulls(func(pr livePull) bool { return pr.Head.Ref == branch || pr.Base.Ref == branch }) {
		if pr.Head.Ref == branch {
			w.until(pr.Number, "at "+tip, func(now livePull) bool { return now.Head.SHA == tip })
			continue
		}
		w.untilRetried(pr.Number, tip)
	}
}

// untilRetried waits until GitHub has tried the merge into the new tip of the base: it does that some time after the
// push, and shows the old result until then. A conflict cannot be told from an older one: it is taken for the new
// result. If nothing shows, the test goes on, and tells on its own what is wrong.
func (w *liveWorld) untilRetried(number int, base string) {
	w.t.Helper()
	w.live.eventually(w.t, func() bool {
		pr := w.pull(number)
		switch {
		case pr.closed():
			return true
		case pr.Mergeable == nil:
			return false
		case !*pr.Mergeable:
			return true
		case pr.MergeCommitSHA == "":
			return false
		}
		parents := w.Parents(pr.MergeCommitSHA)
		return len(parents) > 0 && parents[0] == base
	})
}

// DeleteBranch waits until GitHub has closed the pull requests that lose their head.
func (w *liveWorld) DeleteBranch(branch string) {
	w.t.Helper()
	losing := w.openPulls(func(pr livePull) bool { return pr.Head.Ref == branch })
	w.must(http.MethodDelete, "git/refs/heads/"+branch, nil, nil)
	for _, pr := range losing {
		w.until(pr.Number, "closed with its branch", livePull.closed)
	}
}

// begin replaces the commit that GitHub made by one with the files, on the branch that the suite expects: new
// repositories have the one that their owner's settings name.
func (w *liveWorld) begin(files []providertest.File) {
	w.t.Helper()
	var repo struct {
		DefaultBranch string `json:"default_branch"`
	}
	shown := func() bool {
		status, _ := w.call(http.MethodGet, "", nil, &repo)
		return status == http.StatusOK && w.tip(repo.DefaultBranch) != ""
	}
	if !w.live.eventually(w.t, shown) {
		w.t.Fatalf("GitHub does not show the first commit of %s", w.Ref())
	}
	if old := repo.DefaultBranch; old != providertest.MainBranch {
		w.must(http.MethodPost, "branches/"+old+"/rename", map[string]any{"new_name": providertest.MainBranch}, nil)
		if !w.live.eventually(w.t, func() bool { return shown() && repo.DefaultBranch == providertest.MainBranch }) {
			w.t.Fatalf("GitHub does not rename the branch %s of %s", old, w.Ref())
		}
	}
	w.must(http.MethodPatch, "git/refs/heads/"+providertest.MainBranch,
		map[string]any{"sha": w.write("", files), "force": true}, nil)
}
