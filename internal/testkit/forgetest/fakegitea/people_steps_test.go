package fakegitea

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

func (r *replay) createRepo(e exchange) heard {
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

func (r *replay) archive(e exchange) heard {
	r.s.Configure(repoOf(e.Request.Path), func(set *Settings) { set.Archived = true })
	return r.seen(e, e.Request.Path)
}

func (r *replay) invite(e exchange) heard {
	login := e.Request.Path[strings.LastIndexByte(e.Request.Path, '/')+1:]
	r.s.Configure(repoOf(e.Request.Path), func(set *Settings) { set.Collaborators = map[string]string{login: "write"} })
	return heard{Status: http.StatusNoContent}
}

func (r *replay) protect(e exchange) heard {
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

func (r *replay) createBranch(e exchange) heard {
	in := body[struct {
		Name string `json:"new_branch_name"`
		From string `json:"old_ref_name"`
	}](r, e)
	r.inRepo(repoOf(e.Request.Path), func(repo *memhost.Repo) { repo.Branches[in.Name] = repo.Branches[in.From] })
	return r.seen(e, e.Request.Path+"/"+url.PathEscape(in.Name))
}

func (r *replay) postStatus(e exchange) heard {
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

func (r *replay) merge(e exchange) heard {
	var number int
	if _, err := fmt.Sscanf(e.Request.Path, "/api/v1/repos/joe/home-cluster/pulls/%d/merge", &number); err != nil {
		r.t.Fatal(err)
	}
	r.s.host.World(r.t, repoOf(e.Request.Path), nil).Merge(number)
	return heard{Status: http.StatusOK}
}

// numberOf is the number of the pull request in a path of the API.
func numberOf(path string) int {
	var number int
	_, _ = fmt.Sscan(strings.Split(path, "/")[7], &number)
	return number
}

func (r *replay) review(e exchange) heard {
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

func (r *replay) dismiss(e exchange) heard {
	r.inRepo(repoOf(e.Request.Path), func(repo *memhost.Repo) {
		known := r.s.repos[repo.Ref.String()].prs[numberOf(e.Request.Path)]
		known.reviews[len(known.reviews)-1].dismissed = true
	})
	reviews, _, _ := strings.Cut(e.Request.Path, "/3/dismissals")
	return last(r.seen(e, reviews))
}
