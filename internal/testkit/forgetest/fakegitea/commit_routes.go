package fakegitea

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

type datedJSON struct {
	Name  string `json:"name"`
	Email string `json:"email"`
	Date  string `json:"date"`
}

func (s signature) json() datedJSON {
	return datedJSON{Name: s.who.Name, Email: s.who.Email, Date: stampTime(s.when)}
}

// pointerJSON is a reference to a commit or a tree.
type pointerJSON struct {
	URL     string `json:"url"`
	SHA     string `json:"sha"`
	Created string `json:"created"`
}

func (j *rendering) parents(id string) []pointerJSON {
	list := []pointerJSON{}
	for _, parent := range j.at.repo.Commits[id].Parents {
		list = append(list, pointerJSON{URL: j.at.api() + "/git/commits/" + parent, SHA: parent, Created: never})
	}
	return list
}

type gitCommitJSON struct {
	URL          string           `json:"url"`
	Author       datedJSON        `json:"author"`
	Committer    datedJSON        `json:"committer"`
	Message      string           `json:"message"`
	Tree         pointerJSON      `json:"tree"`
	Verification verificationJSON `json:"verification"`
}

type commitFileJSON struct {
	Filename string `json:"filename"`
	Status   string `json:"status"`
}

type commitJSON struct {
	URL       string           `json:"url"`
	SHA       string           `json:"sha"`
	Created   string           `json:"created"`
	HTMLURL   string           `json:"html_url"`
	Commit    gitCommitJSON    `json:"commit"`
	Author    *userJSON        `json:"author"`
	Committer *userJSON        `json:"committer"`
	Parents   []pointerJSON    `json:"parents"`
	Files     []commitFileJSON `json:"files"`
	Stats     map[string]int   `json:"stats"`
}

// commit renders a commit in full. The tree's sha is the commit's own here, as on the real server.
func (j *rendering) commit(id string) *commitJSON {
	made := j.s.stampOf(id)
	address, when := j.at.api()+"/git/commits/"+id, stampTime(made.committer.when)
	out := &commitJSON{
		URL: address, SHA: id, Created: when, HTMLURL: j.at.web() + "/commit/" + id,
		Commit: gitCommitJSON{
			URL: address, Author: made.author.json(), Committer: made.committer.json(),
			Message: message(j.at.repo.Commits[id].Message), Verification: unsigned(),
			Tree: pointerJSON{URL: j.at.api() + "/git/trees/" + id, SHA: id, Created: when},
		},
		Author: j.account(made.author), Committer: j.account(made.committer), Parents: j.parents(id),
		Files: []commitFileJSON{},
	}
	parent := ""
	if len(out.Parents) > 0 {
		parent = out.Parents[0].SHA
	}
	changes := diff(j.at.repo.Tree(parent), j.at.repo.Tree(id))
	before, after := j.at.repo.Tree(parent), j.at.repo.Tree(id)
	for _, d := range changes {
		was, is := before[d.path], after[d.path]
		if !d.added && !d.removed && d.oldPath == "" && was.Kind != is.Kind {
			continue // Gitea's list leaves out what changes its type
		}
		status := "modified"
		switch {
		case d.added, d.oldPath != "":
			status = "added"
		case d.removed:
			status = "removed"
		}
		out.Files = append(out.Files, commitFileJSON{Filename: d.path, Status: status})
	}
	additions, deletions := totals(changes)
	out.Stats = map[string]int{"total": additions + deletions, "additions": additions, "deletions": deletions}
	return out
}

// account returns the user who signed, or null for a name that the server does not know.
func (j *rendering) account(by signature) *userJSON {
	if by.who.Username == "" {
		return nil
	}
	return j.s.stranger(by.who.Username)
}

func getCommit(c *call) (*answer, error) {
	id := resolve(c.at.repo, c.at.st, c.params["sha"])
	if id == "" {
		return nil, &refusal{status: http.StatusNotFound, message: "commit doesn't exist: " + c.params["sha"], detailed: true}
	}
	return ok(c.json.commit(id)), nil
}

// compare lists the commits that the head has and the base does not, newest first.
func compareCommits(c *call) (*answer, error) {
	base, head, three := strings.Cut(c.params["basehead"], "...")
	if !three {
		base, head, _ = strings.Cut(c.params["basehead"], "..")
	}
	from, to := c.at.compared(base), c.at.compared(head)
	if from == "" || to == "" {
		return nil, notFound()
	}
	list := []*commitJSON{}
	for _, id := range c.at.ahead(from, to) {
		list = append(list, c.json.commit(id))
	}
	return ok(map[string]any{"total_commits": len(list), "commits": list}), nil
}

// compared resolves a side of a comparison, which may be a branch's full name.
func (r *repository) compared(name string) string {
	if branch, full := strings.CutPrefix(name, "refs/heads/"); full {
		return r.repo.Branches[branch]
	}
	return resolve(r.repo, r.st, name)
}

func (r *repository) ahead(from, to string) []string {
	var out []string
	for todo := []string{to}; len(todo) > 0; {
		id := todo[0]
		todo = todo[1:]
		if r.repo.Contains(from, id) || slices.Contains(out, id) {
			continue
		}
		out = append(out, id)
		todo = append(todo, r.repo.Commits[id].Parents...)
	}
	return out
}

// The states that a combined status is made of, the worst first. What is none of them does not count.
func severity() []string { return []string{"error", "failure", "pending", "success"} }

type statusJSON struct {
	ID          int64     `json:"id"`
	Status      string    `json:"status"`
	TargetURL   string    `json:"target_url"`
	Description string    `json:"description"`
	URL         string    `json:"url"`
	Context     string    `json:"context"`
	Creator     *userJSON `json:"creator"`
	CreatedAt   string    `json:"created_at"`
	UpdatedAt   string    `json:"updated_at"`
}

func (j *rendering) statuses(commit string) []statusJSON {
	list := []statusJSON{}
	when := stampTime(j.s.stampOf(commit).committer.when)
	for i, said := range j.at.st.Statuses[commit] {
		list = append(list, statusJSON{
			ID: int64(i + 1), Status: said.State, TargetURL: said.Target, Description: said.Description,
			URL: j.at.api() + "/statuses/" + commit, Context: said.Context, Creator: j.s.stranger(Owner),
			CreatedAt: when, UpdatedAt: when,
		})
	}
	return list
}

// commitOfRef prefers a branch to a tag of the same name.
func (c *call) commitOfRef() (string, error) {
	id := resolve(c.at.repo, c.at.st, c.params["ref"])
	if id == "" {
		return "", notFound(noObject(c.params["ref"], ""))
	}
	return id, nil
}

func listStatuses(c *call) (*answer, error) {
	id, err := c.commitOfRef()
	if err != nil {
		return nil, err
	}
	all, p := c.json.statuses(id), pageOf(c.query)
	return ok(cut(all, p)).counted(len(all)).with("Link", c.link(p, len(all))), nil
}

// combinedStatus combines the newest status of each context, but only of those on the page: state and total_count are
// the page's. Pages go from the newest to the oldest, each in the order in which they were posted.
func combinedStatus(c *call) (*answer, error) {
	id, err := c.commitOfRef()
	if err != nil {
		return nil, err
	}
	newest := []statusJSON{}
	for _, said := range slices.Backward(c.json.statuses(id)) {
		if !slices.ContainsFunc(newest, func(have statusJSON) bool { return have.Context == said.Context }) {
			newest = append(newest, said)
		}
	}
	shown := cut(newest, pageOf(c.query))
	slices.Reverse(shown)
	if len(shown) == 0 {
		shown = nil
	}
	return ok(map[string]any{
		"state": combine(shown), "sha": id, "total_count": len(shown), "statuses": shown, "repository": c.json.repo(),
		"commit_url": c.at.api() + "/commits/" + id, "url": c.at.api() + "/commits/" + id + "/status",
	}).counted(len(newest)), nil
}

// combine gives the worst state; an error is a failure, a warning is nothing beside a success.
func combine(list []statusJSON) string {
	worst := ""
	for _, state := range severity() {
		if worst == "" && slices.ContainsFunc(list, func(s statusJSON) bool { return s.Status == state }) {
			worst = state
		}
	}
	if worst == "error" {
		return "failure"
	}
	if worst == "" && len(list) > 0 {
		return list[0].Status
	}
	return worst
}

// getBlob takes full ids only, and has an answer of its own for what is none.
func getBlob(c *call) (*answer, error) {
	id := c.params["sha"]
	if len(id) != 40 {
		return nil, refuse(http.StatusBadRequest, "length "+strconv.Itoa(len(id))+" has no matched object format: "+id)
	}
	blob := c.at.st.objects.object(c.at.repo, id)
	if blob == nil || blob.children != nil {
		return nil, refuse(http.StatusBadRequest, noObject(id, ""))
	}
	out := map[string]any{"content": nil, "encoding": nil, "url": c.at.api() + "/git/blobs/" + id, "sha": id,
		"size": blob.size()}
	if blob.size() <= maxBlob {
		out["content"], out["encoding"] = encode(blob.content), "base64"
	}
	return ok(out), nil
}
