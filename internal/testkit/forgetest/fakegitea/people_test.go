package fakegitea

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// newReplay sets up what was there when the recording began: two repositories, one with two labels, and a reader.
func newReplay(t *testing.T) *replay {
	r := &replay{t: t, s: New(t), like: newPatterns(), pending: map[string]forgetest.Answer{}, ids: &bijection{
		ours: map[string]string{}, theirs: map[string]string{}, standIns: map[string]bool{
			// Files of which the recordings tell the size and no more.
			"508952c784496da0736387574daef4e9ad0b8e8f": true, // checks/dns.md
			"c768fd53cecc0ea2e3cb3ed0785b208c2f5389f1": true, // docker-compose.yaml
			"8afd1772e40aa723dff0f64f568c92122d0f0ca4": true, // prompts/tier1-observe.md
		},
	}}
	r.s.report = func(format string, args ...any) { r.reports = append(r.reports, fmt.Sprintf(format, args...)) }
	ref := r.s.add("home-cluster",
		memhost.File{Path: "CLAUDE-OPS.md", Content: "# Home cluster\n\nServices: web, dns.\n"},
		memhost.File{Path: "checks/dns.md", Content: "# DNS checks\n\n" + strings.Repeat("d", 45) + "\n"},
		memhost.File{Path: "checks/http.md",
			Content: "# HTTP checks\n\n- GET https://home.example.invalid/ returns 200 within 2 s\n"},
		memhost.File{Path: "docker-compose.yaml", Content: strings.Repeat("c", 67) + "\n"},
		memhost.File{Path: "playbooks/restart.md",
			Content: "# Restart a service\n\n1. Read its logs\n2. Restart it once\n3. Check again after 60 s\n"},
		memhost.File{Path: "prompts/tier1-observe.md", Content: strings.Repeat("p", 62) + "\n"},
	)
	r.inRepo(ref, func(repo *memhost.Repo) { repo.Commits[repo.Branches["main"]].Message = "Initial commit" })
	r.s.Configure(ref, func(set *Settings) {
		set.Labels = []Label{
			{Name: "claude-ops", Color: "1d76db", Description: "Opened by the agent"},
			{Name: "automated", Color: "ededed", Description: "Opened by the agent"},
		}
	})
	r.s.add("nolabels", memhost.File{Path: "README.md", Content: "# nolabels\n\n"})
	r.s.TokenOf("reviewer")
	return r
}

// inRepo hands a repository of the host to do.
func (r *replay) inRepo(ref gitprovider.RepoRef, do func(*memhost.Repo)) {
	r.t.Helper()
	r.s.host.Locked(func() { do(r.s.host.Repo(ref)) })
}

// before makes changes that are not requests, but had happened when the exchange was recorded.
func (r *replay) before(at string) {
	home := gitprovider.RepoRef{Owner: Owner, Name: "home-cluster"}
	race := gitprovider.RepoRef{Owner: Owner, Name: "race"}
	set := func(ref gitprovider.RepoRef, change func(*Settings)) { r.s.Configure(ref, change) }
	switch at {
	case "repo-renamed 2":
		set(r.s.add("new-name", memhost.File{Path: "README.md", Content: "# old-name\n\n"}),
			func(s *Settings) { s.RenamedFrom = "old-name" })
	case "git-tree 6": // the git push that was not recorded
		r.inRepo(gitprovider.RepoRef{Owner: Owner, Name: "links"}, pushLinks)
		r.ids.standIns["1111111111111111111111111111111111111111"] = true
	case "contents-post-parallel 1": // the second sender is overtaken by the first
		set(race, func(s *Settings) { s.Delays.BeforeRefUpdate = func() { r.overtake("contents-post-parallel", 2) } })
	case "contents-post-parallel 4":
		set(race, func(s *Settings) { s.Delays.BeforeRefUpdate = func() { r.overtake("contents-post-parallel", 5) } })
	case "pulls-post-parallel 1":
		set(race, func(s *Settings) { s.Delays.LaxParallel = 3 })
	case "pull-get-recheck 1":
		set(home, func(s *Settings) { s.Delays.MergeableReads = MergeableReads{Stale: 1, Checking: 1} })
	case "pull-get-merged 0":
		set(home, func(s *Settings) { s.Delays.MergeableReads = MergeableReads{} })
	case "pull-head-deleted 2":
		set(home, func(s *Settings) { s.Delays.LateClose = 1 })
	case "pull-reviews 10":
		set(home, func(s *Settings) { s.Delays.LateStale = 1 })
	}
}

// overtake sends a later exchange's request now, and keeps the answer for its turn.
func (r *replay) overtake(file string, i int) {
	e := forgetest.Recorded(r.t, file)[i]
	r.pending[fmt.Sprintf("%s %d", file, i)] = r.send(e.Request.Method, e.Request.Path, e.Request.Body, r.s.Token())
}

func pushLinks(repo *memhost.Repo) {
	repo.Write("main", "Links", []memhost.File{
		{Path: ".gitmodules",
			Content: "[submodule \"vendor/lib\"]\n\tpath = vendor/lib\n\turl = https://gitea.example/joe/lib.git\n"},
		{Path: "checks/http.md", Content: "# HTTP checks\n"},
		{Path: "checks/link.md", Kind: gitprovider.KindSymlink, Content: "http.md"},
		{Path: "checks/run.sh", Content: "#!/bin/sh\nexit 0\n", Executable: true},
		{Path: "linkdir", Kind: gitprovider.KindSymlink, Content: "checks"},
		{Path: "vendor/lib", Kind: gitprovider.KindSubmodule},
	})
}

// peoplesStep finds what people did through a route that the fake does not have, nil for everything else. The answer is
// that of a read of what was made, with the recorded status: it shows the same thing.
func (r *replay) peoplesStep(e forgetest.Exchange) func(forgetest.Exchange) forgetest.Answer {
	method, path := e.Request.Method, e.Request.Path
	switch {
	case method == http.MethodPost && path == "/api/v1/user/repos":
		return r.createRepo
	case method == http.MethodPatch && strings.Count(path, "/") == 5:
		return r.archive
	case method == http.MethodPut && strings.Contains(path, "/collaborators/"):
		return r.invite
	case method == http.MethodPost && strings.HasSuffix(path, "/branch_protections"):
		return r.protect
	case method == http.MethodPost && strings.HasSuffix(path, "/branches"):
		return r.createBranch
	case method == http.MethodPost && strings.Contains(path, "/statuses/"):
		return r.postStatus
	case method == http.MethodPost && strings.HasSuffix(path, "/merge"):
		return r.merge
	case method == http.MethodPost && strings.HasSuffix(path, "/reviews"):
		return r.review
	case method == http.MethodPost && strings.HasSuffix(path, "/dismissals"):
		return r.dismiss
	}
	return nil
}

// repoOf is the repository in a path of the API.
func repoOf(path string) gitprovider.RepoRef {
	parts := strings.Split(path, "/")
	return gitprovider.RepoRef{Owner: parts[4], Name: parts[5]}
}

// seen reads a path and gives the answer the status that the recorded write had.
func (r *replay) seen(e forgetest.Exchange, path string) forgetest.Answer {
	got := r.send(http.MethodGet, path, nil, senderOf(r.s, e.Name))
	if got.Status == http.StatusOK {
		got.Status = e.Response.Status
	}
	delete(got.Headers, "X-Total-Count")
	return got
}

// last picks the last entry of an answer that is a list.
func last(got forgetest.Answer) forgetest.Answer {
	if list, is := got.Body.([]any); is && len(list) > 0 {
		got.Body = list[len(list)-1]
	}
	return got
}

func body[T any](r *replay, e forgetest.Exchange) (in T) {
	r.t.Helper()
	if err := json.Unmarshal(e.Request.Body, &in); err != nil {
		r.t.Fatalf("%s: %v", e.Name, err)
	}
	return in
}

func (r *replay) createRepo(e forgetest.Exchange) forgetest.Answer {
	in := body[struct {
		Name     string `json:"name"`
		AutoInit bool   `json:"auto_init"`
		Private  bool   `json:"private"`
	}](r, e)
	var files []memhost.File
	if in.AutoInit {
		files = []memhost.File{{Path: "README.md", Content: "# " + in.Name + "\n\n"}}
	}
	ref := r.s.add(in.Name, files...)
	r.inRepo(ref, func(repo *memhost.Repo) {
		if in.AutoInit {
			repo.Commits[repo.Branches["main"]].Message = "Initial commit"
		}
	})
	r.s.Configure(ref, func(set *Settings) { set.Private = in.Private })
	return r.seen(e, "/api/v1/repos/joe/"+in.Name)
}

func (r *replay) archive(e forgetest.Exchange) forgetest.Answer {
	r.s.Configure(repoOf(e.Request.Path), func(set *Settings) { set.Archived = true })
	return r.seen(e, e.Request.Path)
}

func (r *replay) invite(e forgetest.Exchange) forgetest.Answer {
	login := e.Request.Path[strings.LastIndexByte(e.Request.Path, '/')+1:]
	r.s.Configure(repoOf(e.Request.Path), func(set *Settings) { set.Collaborators = map[string]string{login: "write"} })
	return forgetest.Answer{Status: http.StatusNoContent}
}

func (r *replay) protect(e forgetest.Exchange) forgetest.Answer {
	in := body[struct {
		Rule      string `json:"rule_name"`
		Approvals int    `json:"required_approvals"`
	}](r, e)
	r.s.Configure(repoOf(e.Request.Path), func(set *Settings) {
		set.Protection.ProtectedPatterns = append(set.Protection.ProtectedPatterns, in.Rule)
		if set.Protection.RequiredApprovals == nil {
			set.Protection.RequiredApprovals = map[string]int{}
		}
		set.Protection.RequiredApprovals[in.Rule] = in.Approvals
	})
	return r.seen(e, e.Request.Path+"/"+url.PathEscape(in.Rule))
}

func (r *replay) createBranch(e forgetest.Exchange) forgetest.Answer {
	in := body[struct {
		Name string `json:"new_branch_name"`
		From string `json:"old_ref_name"`
	}](r, e)
	r.inRepo(repoOf(e.Request.Path), func(repo *memhost.Repo) { repo.Branches[in.Name] = repo.Branches[in.From] })
	return r.seen(e, e.Request.Path+"/"+url.PathEscape(in.Name))
}

func (r *replay) postStatus(e forgetest.Exchange) forgetest.Answer {
	in := body[struct {
		State       string `json:"state"`
		Context     string `json:"context"`
		Description string `json:"description"`
		Target      string `json:"target_url"`
	}](r, e)
	path, recorded, _ := strings.Cut(e.Request.Path, "/statuses/")
	commit := r.toOurs(recorded)
	r.s.Configure(repoOf(path), func(set *Settings) {
		if set.Statuses == nil {
			set.Statuses = map[string][]Status{}
		}
		set.Statuses[commit] = append(set.Statuses[commit], Status{in.State, in.Context, in.Description, in.Target})
	})
	return last(r.seen(e, path+"/commits/"+recorded+"/statuses"))
}

func (r *replay) merge(e forgetest.Exchange) forgetest.Answer {
	var number int
	if _, err := fmt.Sscanf(e.Request.Path, "/api/v1/repos/joe/home-cluster/pulls/%d/merge", &number); err != nil {
		r.t.Fatal(err)
	}
	r.s.host.World(r.t, repoOf(e.Request.Path), nil).Merge(number)
	return forgetest.Answer{Status: http.StatusOK}
}

// numberOf is the number of the pull request in a path of the API.
func numberOf(path string) int {
	var number int
	_, _ = fmt.Sscan(strings.Split(path, "/")[7], &number)
	return number
}

func (r *replay) review(e forgetest.Exchange) forgetest.Answer {
	in := body[struct {
		Event string `json:"event"`
		Body  string `json:"body"`
	}](r, e)
	state := map[string]gitprovider.ReviewState{
		"COMMENT": gitprovider.ReviewCommented, "REQUEST_CHANGES": gitprovider.ReviewChangesRequested,
		"APPROVED": gitprovider.ReviewApproved, "PENDING": gitprovider.ReviewPending,
	}[in.Event]
	r.s.host.World(r.t, repoOf(e.Request.Path), nil).Review(numberOf(e.Request.Path), "reviewer", state, in.Body)
	return last(r.seen(e, e.Request.Path))
}

func (r *replay) dismiss(e forgetest.Exchange) forgetest.Answer {
	r.inRepo(repoOf(e.Request.Path), func(repo *memhost.Repo) {
		known := r.s.repos[repo.Ref.String()].prs[numberOf(e.Request.Path)]
		known.reviews[len(known.reviews)-1].dismissed = true
	})
	reviews, _, _ := strings.Cut(e.Request.Path, "/3/dismissals")
	return last(r.seen(e, reviews))
}
