package fakegithub

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// state is GitHub's state of a repository beyond memhost's. The host's lock guards it.
type state struct {
	id      int
	deleted bool
	set     *Settings
	pulls   map[int]*pullState
	objects *objects
	details map[string]commitDetails // by commit
	trials  map[string]bool          // commits that are trial merges
	looks   map[string]labelLook     // of labels that were made with one, by name in lower case
	unknown map[string][]door        // the doors at which new objects are not known yet
}

// pullState is GitHub's state of a pull request beyond memhost's.
type pullState struct {
	draft      bool
	reviewers  []string
	teams      []string
	assignees  []string
	updated    time.Time
	seen       string // what updated is about
	mergeOf    string // what unknown is about
	unknown    int    // reads until the mergeability is known
	trial      string // the last trial merge, or ""
	trialOf    string // what trial is about
	maintained bool   // maintainers may push to the head
}

// commitDetails are a commit's people and times.
type commitDetails struct {
	author, committer signature
}

type signature struct {
	name, email string
	at          time.Time
}

// place is a repository as one request sees it. The host's lock is held as long as it is used.
type place struct {
	*state
	s    *Server
	repo *memhost.Repo
}

// epoch returns the default time for everything without a date.
func epoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func lower(s string) string { return strings.ToLower(s) }

// place opens a repository, and takes note of what has happened to it since.
func (r *repositories) place(repo *memhost.Repo) *place {
	st := r.states[repo]
	if st == nil {
		st = &state{
			id: 1_000_000 + len(r.states), pulls: map[int]*pullState{}, objects: newObjects(),
			details: map[string]commitDetails{}, trials: map[string]bool{},
			looks: map[string]labelLook{}, unknown: map[string][]door{},
			set: &Settings{Labels: []string{gitprovider.LabelOurs, "automated"}, Token: Token{Permission: "write"},
				Delays: Delays{MergeableReads: 1}},
		}
		r.states[repo] = st
		r.byID[st.id] = repo
	}
	p := &place{state: st, s: r.s, repo: repo}
	p.takeNote()
	return p
}

// find opens a repository by its name, or by a former one if follow is set; nil if there is none that the token sees.
func (r *repositories) find(owner, name string, follow bool) *place {
	repo := r.s.host.Repo(gitprovider.RepoRef{Owner: owner, Name: name})
	if repo == nil && follow {
		if now, renamed := r.renamed[lower(owner+"/"+name)]; renamed {
			repo = r.s.host.Repo(now)
		}
	}
	if repo == nil {
		return nil
	}
	return r.place(repo).ifVisible()
}

// byNumber opens a repository by its database id, or gives nil.
func (r *repositories) byNumber(id int) *place {
	if repo := r.byID[id]; repo != nil {
		return r.place(repo).ifVisible()
	}
	return nil
}

// ifVisible returns the place, or nil if the repository was deleted or the owner of the token may not see it.
func (p *place) ifVisible() *place {
	if p.deleted || p.rights().foreign() || p.set.Private && (p.set.Token.MissingScopes || !p.set.allows("read")) {
		return nil
	}
	return p
}

// pull gives the state of a pull request.
func (p *place) pull(pr *memhost.PR) *pullState {
	if p.pulls[pr.Number] == nil {
		p.pulls[pr.Number] = &pullState{updated: pr.CreatedAt, maintained: true}
	}
	return p.pulls[pr.Number]
}

// takeNote dates the changes that were made to pull requests behind the doors.
func (p *place) takeNote() {
	for _, pr := range p.repo.PRs {
		st := p.pull(pr)
		now := fmt.Sprintf("%q %q %s %s %q %d %v", pr.Title, pr.Body, pr.State, pr.HeadCommit, pr.Labels, len(pr.Reviews),
			[]any{st.draft, st.reviewers, st.teams, st.assignees})
		switch {
		case st.seen == now:
			continue
		case !pr.ClosedAt.IsZero() && pr.ClosedAt.After(st.updated):
			st.updated = pr.ClosedAt
		case st.seen != "":
			st.updated = p.s.host.Now()
		}
		st.seen = now
	}
}

// changed is called after the repository was changed through one of the doors.
func (p *place) changed() {
	p.repo.Notice(p.s.host.Now())
	p.takeNote()
}

// headOf splits the head of a pull request into the owner of its repository and the branch.
func (p *place) headOf(pr *memhost.PR) (owner, branch string) { return p.repo.HeadOf(pr) }

// tip returns the commit of a branch of the repository itself, or "".
func (p *place) tip(branch string) string {
	if strings.Contains(branch, ":") {
		return ""
	}
	return p.repo.Branches[branch]
}

// branches returns the names of the repository's own branches, sorted.
func (p *place) branches() []string {
	var out []string
	for name := range p.repo.Branches {
		if !strings.Contains(name, ":") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// inTheWay reports whether a branch blocks the creation of another one: one name would be a folder of the other.
func (p *place) inTheWay(branch string) bool {
	return slices.ContainsFunc(p.branches(), func(have string) bool {
		return strings.HasPrefix(have, branch+"/") || strings.HasPrefix(branch, have+"/")
	})
}

// badRefName reports whether git would not take a name for a branch.
func badRefName(name string) bool {
	if name == "" || name == "@" || strings.ContainsAny(name, " ~^:?*[\\\x7f") || strings.Contains(name, "..") ||
		strings.Contains(name, "@{") || strings.Contains(name, "//") || strings.HasSuffix(name, ".") {
		return true
	}
	for _, part := range strings.Split(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return true
		}
	}
	return strings.ContainsFunc(name, func(r rune) bool { return r < ' ' })
}

// detailsOf returns the details of a commit; commits without details all have the same.
func (p *place) detailsOf(id string) commitDetails {
	if d, given := p.details[id]; given {
		return d
	}
	somebody := signature{"Somebody", "somebody@example.org", epoch()}
	return commitDetails{author: somebody, committer: somebody}
}

// web returns the address of a page of the repository.
func (p *place) web(parts ...string) string {
	return strings.Join(append([]string{p.s.host.Web(), p.repo.Ref.String()}, parts...), "/")
}

// api returns the address of something of the repository in REST.
func (p *place) api(parts ...string) string {
	return strings.Join(append([]string{p.s.URL(), "repos", p.repo.Ref.String()}, parts...), "/")
}
