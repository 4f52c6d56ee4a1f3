package resilience

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/gitea"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// propose makes a request for the files to a service of its own, and says how many requests to the forge it took.
func (w *world) propose(files ...any) (prflow.CreateResult, int, error) {
	w.t.Helper()
	raw := w.arguments(map[string]any{"title": "Check more", "body": "Why not.", "files": files})
	before := len(w.forge.Faults().Requests())
	result, err := w.service().Create(w.t.Context(), agent(), raw)
	return result, len(w.forge.Faults().Requests()) - before, err
}

// Edits cost nothing more at GitHub, and at Gitea at most one request for each file.
func TestEditsAreMadeAtTheCostOfOneRequestAFileAtMost(t *testing.T) {
	for _, k := range kinds() {
		for n := 1; n <= 3; n++ {
			t.Run(fmt.Sprintf("%s, %d files", k.title(), n), func(t *testing.T) {
				plain := newWorld(t, k)
				_, usual, err := plain.propose(fileOf("create", "checks/new.md", "# New\n"))
				if err != nil {
					t.Fatal(err)
				}
				w := newWorld(t, k)
				var files []any
				for i := range n {
					path := fmt.Sprintf("checks/n%d.md", i)
					w.forge.Host().World(t, w.repo, nil).Push("main", memhost.File{Path: path, Content: "# Some\n\nOne.\n"})
					files = append(files, editOf(path, "", "One.", "Two."))
				}
				result, made, err := w.propose(files...)
				if err != nil || len(result.Lines) != n || result.Lines[0].Added != 1 || result.Lines[0].Removed != 1 {
					t.Fatalf("%+v, %v", result, err)
				}
				more := map[string]int{"github": 0, "gitea": n}[k.name]
				if made > usual+more {
					t.Errorf("it took %d requests, and a new file takes %d", made, usual)
				}
				w.forge.Host().Locked(func() {
					repo := w.forge.Host().Repo(w.repo)
					if got := repo.Commits[repo.Branches[result.Branch]].Files["checks/n0.md"].Content; got != "# Some\n\nTwo.\n" {
						t.Errorf("the file holds %q", got)
					}
				})
			})
		}
	}
}

func TestWhatDoesNotFitTheBaseIsShownAndNothingIsWritten(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.title(), func(t *testing.T) {
			w := newWorld(t, k)
			for _, file := range []map[string]any{
				editOf("checks/disk.md", "", "# Disc", "# Disk"), editOf("checks/disk.md", "0123456", "# Disc", "# Disks"),
			} {
				_, _, err := w.propose(file)
				e := fault.From(err)
				if fault.CodeOf(err) != fault.Conflict || e.Violations[0].Present == nil ||
					e.Violations[0].Present.Text != "# Disk\n" {
					t.Fatalf("%+v, %v", e, err)
				}
				for _, r := range w.forge.Faults().Requests() {
					if r.Method != "GET" && !strings.HasSuffix(r.Path, "/graphql") {
						t.Errorf("a write: %s %s", r.Method, r.Path)
					}
				}
				if branches, open := w.state(); len(branches)+len(open) > 0 {
					t.Errorf("branches %v, open %v", branches, open)
				}
				mended := editOf("checks/disk.md", e.Violations[0].Present.BaseSHA, "# Disk", "# Disks")
				if file["base_sha"] == "" {
					continue
				}
				if result, _, err := w.propose(mended); err != nil || result.Number == 0 { // the answer is all that it takes
					t.Errorf("%+v, %v", result, err)
				}
			}
			w.assertRecords()
		})
	}
}

// What files hold is read at no cost at GitHub, by one request at Gitea.
func TestAChangedManifestIsToldAtTheCostOfOneRequest(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.title(), func(t *testing.T) {
			usual := len(sequenceOfProposal(t, k))
			w := newWorld(t, k)
			w.forge.Host().World(t, w.repo, nil).Push("main",
				memhost.File{Path: "CLAUDE-OPS.md", Content: "## Git Provider\n\n- provider: " + k.name + "\n"})
			result, made, err := w.propose(editOf("CLAUDE-OPS.md", "", k.name, "evil"),
				fileOf("update", "checks/disk.md", "# Disk\n\ndf -h\n"))
			if err != nil {
				t.Fatal(err)
			}
			want := "provider `evil` (was `" + k.name + "`)"
			if len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], want) {
				t.Errorf("warnings %q, want %q", result.Warnings, want)
			}
			var body string
			w.forge.Host().Locked(func() { body = w.forge.Host().Repo(w.repo).PRs[0].Body })
			if !strings.Contains(prflow.RedirectNote(body), want) {
				t.Errorf("the body says %q", body)
			}
			more := map[string]int{"github": 0, "gitea": 1}[k.name]
			if made > usual+more {
				t.Errorf("it took %d requests, and another change takes %d", made, usual)
			}
		})
	}
}

// withMemory makes the adapter of Gitea with the records' memory of files, as the program does.
func withMemory(w *world) {
	w.kind.adapter = func(t testing.TB, f forge, client *transport.Transport, now func() time.Time) gitprovider.Provider {
		return gitea.New(gitea.Options{Base: base(t, f), Client: client, Now: now, Sleep: noSleep,
			Paths: w.store.PullPaths("gitea")})
	}
}

func (w *world) list(after int) (prflow.ListResult, error) {
	w.t.Helper()
	query := map[string]any{"limit": 100}
	if after > 0 {
		query["after"] = after
	}
	return w.service().List(w.t.Context(), agent(), w.arguments(query))
}

// openMany opens pull requests that look like those of this program, as another state folder with the same key has made
// them.
func (w *world) openMany(many int) {
	w.t.Helper()
	for i := range many {
		title := fmt.Sprintf("Watch number %d", i)
		raw := w.arguments(map[string]any{
			"title": title, "body": "Because.",
			"files": []any{fileOf("create", fmt.Sprintf("checks/n%03d.md", i), "# "+title+"\n")},
		})
		w.policy.Limits.Caps.OpenPRs, w.policy.Limits.Caps.CreationsPerHour = many, many
		if _, err := w.service().Create(w.t.Context(), agent(), raw); err != nil {
			w.t.Fatal(err)
		}
	}
}

// list_prs beside 120 pull requests of ours costs at most 10 requests where the records know their files, in whatever
// process, and at most 45 where they do not. A page ends where more files than 40 pull requests' would have to be asked
// for.
func TestAListOfManyCostsFewRequests(t *testing.T) {
	w := newWorld(t, giteaForge())
	withMemory(w)
	w.listsCheaply()
}

func (w *world) listsCheaply() {
	const many, most, mostKnown = 120, 45, 10
	t := w.t
	t.Helper()
	w.openMany(many)
	pages := func(when string, limit int) (costs []int) {
		t.Helper()
		seen, after := 0, 0
		for {
			w.forge.Faults().Forget()
			list, err := w.list(after)
			if err != nil || list.Total != many {
				t.Fatalf("%s: %+v, %v", when, list, err)
			}
			for _, pr := range list.PRs {
				if len(pr.Files) != 1 || pr.Files[0] != fmt.Sprintf("checks/n%03d.md", seen) || !pr.Ours || pr.State != "none" {
					t.Errorf("%s: #%d is %+v", when, pr.Number, pr)
				}
				seen++
			}
			n := len(w.forge.Faults().Requests())
			if costs = append(costs, n); n > limit {
				t.Errorf("%s: %d requests, at most %d", when, n, limit)
			}
			if after = list.Next; after == 0 {
				break
			}
		}
		if seen != many {
			t.Errorf("%s: %d pull requests", when, seen)
		}
		return costs
	}
	t.Logf("known: %v requests for the pages", pages("where the records know them", mostKnown))
	key := w.key
	w.loseState()
	w.key = key
	t.Logf("not known: %v", pages("where they do not", most))
	t.Logf("the next time: %v", pages("the next time", mostKnown))
	w.askForChanges(3)
	w.forge.Faults().Forget()
	list, err := w.list(0)
	if err != nil || list.PRs[2].State != "changes_requested" || list.PRs[3].State != "none" ||
		len(w.forge.Faults().Requests()) > mostKnown {
		t.Errorf("with a review: %d requests, %v", len(w.forge.Faults().Requests()), err)
	}
}

// A pull request that this program opened is known to every process on the same records, and so are the files of its
// revisions.
func TestARevisionCostsTwelveRequestsAtMostWhereTheRecordsKnowTheFiles(t *testing.T) {
	k := giteaForge()
	w := newWorld(t, k)
	withMemory(w)
	r := openedAndReviewed(t, w)
	if s, is := w.forge.(*fakegitea.Server); is {
		s.Configure(w.repo, func(set *fakegitea.Settings) { set.Delays.LateHead = 0 }) // the list is read a second later
	}
	if result, err := r.revise(t.Context()); err != nil || !result.Revised {
		t.Fatalf("%+v, %v", result, err)
	}
	if n := len(r.forge.Faults().Requests()); n > 12 {
		t.Errorf("%d requests", n)
	}
	r.forge.Faults().Forget()
	if list, err := r.list(0); err != nil || len(list.PRs) != 1 || len(list.PRs[0].Files) != 3 {
		t.Errorf("%+v, %v", list, err)
	}
	for _, q := range r.forge.Faults().Requests() { // the list, and how its reviews stand: no files
		if strings.Contains(q.Path, "/files") || strings.Contains(q.Path, "/git/trees") {
			t.Errorf("%s %s", q.Method, q.Path)
		}
	}
}

// A repository that is archived takes no revision, and status says so.
func TestAnArchivedRepositoryIsNotRevisable(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.title(), func(t *testing.T) {
			r := newRevised(t, k)
			r.forge.Host().Locked(func() { r.forge.Host().Repo(r.repo).Archived = true })
			if got := r.status(1).Revise; !strings.HasPrefix(got, "no: #1 is in a repository that is archived") {
				t.Errorf("status says %q", got)
			}
			if _, err := r.revise(t.Context()); fault.CodeOf(err) == "" || fault.CodeOf(err).Ambiguous() {
				t.Errorf("%v", err)
			}
		})
	}
}
