package fakegithub

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// What a request asks of a place is made by parts of it, each with the place as all that it knows.

// gitGraph makes the objects of GraphQL for commits, trees, branches and checks.
type gitGraph struct{ at *place }

// pullGraph makes those for the repository, pull requests and what belongs to them.
type pullGraph struct{ at *place }

// restView makes the objects of REST.
type restView struct{ at *place }

// objectReader reads git's objects.
type objectReader struct{ at *place }

// pullRules are GitHub's rules about pull requests.
type pullRules struct{ at *place }

// rights say who may do what.
type rights struct{ at *place }

func (p *place) git() *gitGraph      { return &gitGraph{p} }
func (p *place) graph() *pullGraph   { return &pullGraph{p} }
func (p *place) rest() *restView     { return &restView{p} }
func (p *place) read() *objectReader { return &objectReader{p} }
func (p *place) rules() *pullRules   { return &pullRules{p} }
func (p *place) rights() *rights     { return &rights{p} }

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

// Lag makes every object that is made through a door from now on unknown at first: to the next request of REST that
// names it, and to the next of GraphQL. Such a request is answered as if there were none. Lists and what people do
// behind the doors do not lag.
func (s *Server) Lag() { s.host.Locked(func() { s.lagging = true }) }

// Settle ends the lag of all objects that were made so far, as time does.
func (s *Server) Settle() {
	s.host.Locked(func() {
		for _, st := range s.repos.states {
			st.unknown = map[string][]door{}
		}
	})
}

// door is one of GitHub's two languages, which see new objects apart.
type door int

const (
	doorREST door = iota
	doorGraph
)

// made notes that an object was made: a full name of a branch, the id of a git object, or the name of a pull request.
func (p *place) made(object string) {
	if p.s.lagging {
		p.unknown[object] = []door{doorREST, doorGraph}
	}
}

// hides reports whether a door does not know an object yet. It knows it the next time.
func (p *place) hides(d door, object string) bool {
	waiting := p.unknown[object]
	for i, have := range waiting {
		if have == d {
			p.unknown[object] = append(append([]door{}, waiting[:i]...), waiting[i+1:]...)
			return true
		}
	}
	return false
}

func pullName(number int) string { return fmt.Sprintf("#%d", number) }

func branchName(branch string) string { return "refs/heads/" + branch }

// commitsOf names the commits of a branch, which a pull request may lack when it knows the branch already.
func commitsOf(branch string) string { return "commits of " + branch }

// labelLook holds the properties of a label besides its name. Description is nil for none.
type labelLook struct {
	color       string
	description any
	isDefault   bool
}

// plainColor is the colour of labels made in passing, without one.
const plainColor = "ededed"

// stockLabels returns the labels that GitHub defines in a new repository.
func stockLabels() map[string]labelLook {
	return map[string]labelLook{
		"bug":              {"d73a4a", "Something isn't working", true},
		"documentation":    {"0075ca", "Improvements or additions to documentation", true},
		"duplicate":        {"cfd3d7", "This issue or pull request already exists", true},
		"enhancement":      {"a2eeef", "New feature or request", true},
		"good first issue": {"7057ff", "Good for newcomers", true},
		"help wanted":      {"008672", "Extra attention is needed", true},
		"invalid":          {"e4e669", "This doesn't seem right", true},
		"question":         {"d876e3", "Further information is requested", true},
		"wontfix":          {"ffffff", "This will not be worked on", true},
	}
}

// look returns the appearance of a label of the repository.
func (p *place) look(name string) labelLook {
	if look, given := p.looks[lower(name)]; given {
		return look
	}
	if look, stock := stockLabels()[name]; stock {
		return look
	}
	return labelLook{color: plainColor}
}

// isColor reports whether GitHub takes a text for a colour.
func isColor(text string) bool { return regexp.MustCompile(`^[0-9a-fA-F]{6}$`).MatchString(text) }

// The prefixes of node ids, by what they stand for. Clients must not look into ids; the fake does.
const (
	kindRepo       = "R"
	kindRef        = "REF"
	kindCommit     = "C"
	kindTree       = "T"
	kindBlob       = "B"
	kindPull       = "PR"
	kindPullCommit = "PURC"
	kindReview     = "PRR"
	kindComment    = "IC"
	kindThread     = "PRRT"
	kindLine       = "PRRC"
	kindRequest    = "RR"
	kindLabel      = "LA"
	kindUser       = "U"
	kindBot        = "BOT"
	kindTeam       = "TE"
	kindRollup     = "SCR"
	kindStatus     = "S"
	kindContext    = "SC"
	kindCheckRun   = "CR"
	kindSuite      = "CS"
	kindApp        = "A"
	kindRun        = "WFR"
	kindWorkflow   = "W"
	kindProtection = "BPR"
	kindRuleset    = "RRS"
	kindInvitation = "RI"
)

// nodeID makes the id of a thing in a repository; name tells it from others of its kind.
func nodeID(kind string, repo int, name string) string {
	return kind + "_kwDO" + base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(repo)+"|"+name))
}

// parseNodeID is the inverse of nodeID.
func parseNodeID(id string) (kind string, repo int, name string, ok bool) {
	kind, code, ok := strings.Cut(id, "_kwDO")
	raw, err := base64.RawURLEncoding.DecodeString(code)
	number, name, split := strings.Cut(string(raw), "|")
	repo, numberErr := strconv.Atoi(number)
	return kind, repo, name, ok && split && err == nil && numberErr == nil
}
