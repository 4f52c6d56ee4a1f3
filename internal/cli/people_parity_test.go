package cli_test

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// attempt is one act of a person, by its name, and how it is done through each interface that offers it.
type attempt struct {
	name   string
	env    map[string]string
	before func(*peopleWorld)
	doors  map[string]func(*peopleWorld) fault.Code
	code   fault.Code
	action string // of its row
}

// reviewAttempt decides about a pull request at the command line, over REST and in the dashboard.
func reviewAttempt(name, verb, repo, number string, code fault.Code, env map[string]string, more ...string) attempt {
	form := url.Values{"action": {verb}}
	args := []string{"review", verb, number, "--repo", repo}
	owner, repoName, _ := strings.Cut(repo, "/")
	body := map[string]any{"repo_owner": owner, "repo_name": repoName, "provider": "local"}
	route, said := verb, "comment"
	if verb != "merge" && verb != "close" {
		route, said, body["event"] = "reviews", "body", verb
	}
	for i := 0; i < len(more); i += 2 {
		form.Set(more[i], more[i+1])
		switch more[i] {
		case "comment":
			body[said] = more[i+1]
		case "force":
			body["force"] = true
		case "acknowledge":
			form.Set("acknowledged", more[i+1])
			body["acknowledged"] = strings.Split(more[i+1], ",")
		default:
			body[more[i]] = more[i+1]
		}
		if more[i] == "force" {
			args = append(args, "--force")
			continue
		}
		args = append(args, "--"+more[i], more[i+1])
	}
	return attempt{name: verb + ", " + name, env: env, code: code, action: "review." + verb,
		doors: map[string]func(*peopleWorld) fault.Code{
			"command line": func(w *peopleWorld) fault.Code { return w.throughCLI(w.seeded(args)...) },
			"dashboard": func(w *peopleWorld) fault.Code {
				sent := maps.Clone(form)
				sent["head"] = w.seeded(form["head"])
				return w.throughPage("/pulls/local/"+repo+"/"+number, "/review", sent)
			},
			"REST": func(w *peopleWorld) fault.Code {
				sent := maps.Clone(body)
				if head, given := body["head"].(string); given {
					sent["head"] = w.seeded([]string{head})[0]
				}
				return w.throughServer("/api/v1/prs/"+number+"/"+route, sent)
			},
		}}
}

// doorsOf are the three interfaces by which something is done: a command, and a request to a path of REST and of the
// dashboard.
func doorsOf(command []string, path string, body any, form url.Values) map[string]func(*peopleWorld) fault.Code {
	return map[string]func(*peopleWorld) fault.Code{
		"command line": func(w *peopleWorld) fault.Code { return w.throughCLI(command...) },
		"REST":         func(w *peopleWorld) fault.Code { return w.throughServer("/api/v1"+path, body) },
		"dashboard":    func(w *peopleWorld) fault.Code { return w.throughServer(path, form) },
	}
}

// settingsOfPeople are the settings under which every act is tried.
func settingsOfPeople() map[string]map[string]string {
	return map[string]map[string]string{
		"a repository off the list": {"CLAUDEOPS_REPOS": "demo/other"},
		"one that the policy lacks": {"CLAUDEOPS_POLICY": "$DIR/narrow.yaml"},
		"a policy that is broken":   {"CLAUDEOPS_POLICY": "$DIR/broken.yaml"},
		"a policy that is missing":  {"CLAUDEOPS_POLICY": "$DIR/none.yaml"},
		"a list that is malformed":  {"CLAUDEOPS_REPOS": "demo-home"},
		"dry run":                   {"CLAUDEOPS_DRY_RUN": "true"},
		"read-only":                 {"CLAUDEOPS_READ_ONLY": "true"},
	}
}

// reviewAttempts does every verb, refuses it once, and tries merge under every setting and with what else a review can
// be refused for: verbs have their needs in common (review.NeedsOf).
func reviewAttempts() (out []attempt) {
	refusals := map[string]fault.Code{
		"a repository off the list": fault.RepoNotAllowed, "one that the policy lacks": fault.RepoNotAllowed,
		"a policy that is broken": fault.ReadOnly, "a policy that is missing": fault.ReadOnly,
		"a list that is malformed": fault.ReadOnly,
		"dry run":                  fault.ReadOnly, "read-only": "",
	}
	for _, verb := range []string{"approve", "request-changes", "comment", "merge", "close"} {
		said := []string{"comment", "Say more."}
		out = append(out, reviewAttempt("done", verb, "demo/home", "1", "", nil, said...))
		for name, env := range settingsOfPeople() {
			if verb == "merge" || name == "a repository off the list" {
				out = append(out, reviewAttempt(name, verb, "demo/home", "1", refusals[name], env, said...))
			}
		}
		if verb != "comment" {
			out = append(out, reviewAttempt("another head", verb, "demo/home", "1", fault.Conflict, nil, "comment", "x", "head",
				strings.Repeat("0", 40)))
		}
	}
	refuse := func(name string, code fault.Code, env map[string]string) {
		out = append(out, reviewAttempt(name, "merge", "demo/home", "1", code, env))
	}
	refuse("on the list of another provider", fault.RepoNotAllowed,
		map[string]string{"CLAUDEOPS_REPOS": "gitea:demo/home"})
	refuse("no local repositories", fault.ProviderDisabled, map[string]string{"CLAUDEOPS_LOCAL_ROOT": ""})
	refuse("a root that is missing", fault.ProviderDisabled, map[string]string{"CLAUDEOPS_LOCAL_ROOT": "$DIR/none"})
	out = append(out,
		reviewAttempt("on the list", "merge", "demo/other", "1", "", map[string]string{"CLAUDEOPS_REPOS": "local:demo/o*"}),
		reviewAttempt("no such number", "merge", "demo/home", "99", fault.NotFound, nil),
		reviewAttempt("no such repository", "merge", "demo/none", "1", fault.NotFound, nil),
		reviewAttempt("a text that is too long", "close", "demo/home", "1", fault.InvalidArgument, nil, "comment",
			strings.Repeat("x", 64<<10+1)),
	)
	asked := map[string]string{"CLAUDEOPS_POLICY": "$DIR/confirmed.yaml"}
	for _, verb := range []string{"approve", "merge"} {
		out = append(out, reviewAttempt("facts not confirmed", verb, "demo/home", "1", fault.InvalidArgument, asked),
			reviewAttempt("other facts confirmed", verb, "demo/home", "1", fault.InvalidArgument, asked,
				"acknowledge", "outbound"),
			reviewAttempt("facts confirmed", verb, "demo/home", "1", "", asked, "acknowledge", "destroy,outbound",
				"head", "$HEAD"))
	}
	out = append(out, movedAttempts(asked)...)
	out = append(out, reviewAttempt("facts confirmed in vain", "approve", "demo/home", "1", "", nil,
		"acknowledge", "outbound"))
	objected := reviewAttempt("against an objection", "merge", "demo/home", "1", fault.Conflict, nil)
	forced := reviewAttempt("against an objection, forced", "merge", "demo/home", "1", "", nil, "force", "yes")
	again := reviewAttempt("twice", "merge", "demo/home", "1", fault.Conflict, nil)
	late := reviewAttempt("after the merge", "comment", "demo/home", "1", "", nil, "comment", "Thanks.")
	object := func(w *peopleWorld) {
		w.command(w.plain(), "review", "request-changes", "1", "--repo", "demo/home", "--comment", "No.")
	}
	objected.before, forced.before = object, object
	merge := func(w *peopleWorld) { w.command(w.plain(), "review", "merge", "1", "--repo", "demo/home") }
	again.before, late.before = merge, merge
	for _, verb := range []string{"request-changes", "comment"} {
		out = append(out, reviewAttempt("without a word", verb, "demo/home", "1", fault.InvalidArgument, nil))
	}
	return append(out, objected, forced, again, late)
}

// movedAttempts confirm facts without saying of which commit, by other words, and of a commit to whose branch another
// one came between the look and the act. The rules themselves are in the tests of internal/proposals/review.
func movedAttempts(asked map[string]string) []attempt {
	confirm := func(name string, code fault.Code, more ...string) attempt {
		return reviewAttempt("facts confirmed, "+name, "merge", "demo/home", "1", code, asked,
			append(more, "acknowledge", "destroy,outbound", "force", "yes")...)
	}
	moved := confirm("then the branch moved, forced", fault.Conflict, "head", "$HEAD")
	moved.before = (*peopleWorld).moveBranch
	return []attempt{confirm("of no commit, forced", fault.InvalidArgument), moved,
		reviewAttempt("words of classes instead of their names", "approve", "demo/home", "1", fault.InvalidArgument,
			asked, "acknowledge", "deletes,DESTROY,all", "head", "$HEAD")}
}

// promoteAttempts open a dry run over REST and in the dashboard. The gates are those of prflow's tests.
func promoteAttempts() (out []attempt) {
	add := func(name, id string, env map[string]string, code fault.Code, confirmed ...string) {
		which := func() string {
			if seed, err := seedOfPeople(); id == "" && err == nil {
				return seed.dryRun
			}
			return id
		}
		path := func() string { return "/proposals/" + which() + "/promote" }
		form, flags := url.Values{}, []string{}
		if confirmed != nil {
			classes := strings.Join(confirmed, ",")
			form.Set("acknowledged", classes)
			flags = []string{"--acknowledge", classes}
		}
		out = append(out, attempt{name: "promote, " + name, env: env, code: code, action: "create_pr.promote",
			doors: map[string]func(*peopleWorld) fault.Code{
				"REST":      func(w *peopleWorld) fault.Code { return w.throughServer("/api/v1"+path()+"?"+form.Encode(), nil) },
				"dashboard": func(w *peopleWorld) fault.Code { return w.throughServer(path(), form) },
				"command line": func(w *peopleWorld) fault.Code {
					return w.throughCLI(append([]string{"pr", "promote", which()}, flags...)...)
				},
			}})
	}
	add("done", "", nil, "")
	add("unknown", "01ARZ3NDEKTSV4RRFFQ69G5FAV", nil, fault.NotFound)
	add("tier 1", "", map[string]string{"CLAUDEOPS_TIER": "1"}, fault.TierDenied)
	add("read-only", "", settingsOfPeople()["read-only"], fault.ReadOnly)
	asked := map[string]string{"CLAUDEOPS_POLICY": "$DIR/confirmed.yaml"}
	add("facts not confirmed", "", asked, fault.InvalidArgument)
	add("other facts confirmed", "", asked, fault.InvalidArgument, "outbound")
	add("facts confirmed", "", asked, "", "destroy")
	return out
}

// sessionAttempts start and stop sessions.
func sessionAttempts() (out []attempt) {
	start := func(name string, tier int, env map[string]string, code fault.Code) {
		out = append(out, attempt{name: "start, " + name, env: env, code: code, action: "session.start",
			doors: doorsOf([]string{"run", "--tier", fmt.Sprint(tier)}, "/sessions", map[string]any{"tier": tier},
				url.Values{"tier": {fmt.Sprint(tier)}})})
	}
	start("done", 1, nil, "")
	start("above the highest tier", 2, map[string]string{"CLAUDEOPS_MAX_TIER": "1"}, fault.TierDenied)
	start("with settings that are malformed", 1, map[string]string{"CLAUDEOPS_MAX_TURNS": "many"}, fault.Misconfigured)
	start("without the boundary that the policy requires", 1, map[string]string{"CLAUDEOPS_POLICY": "$DIR/bounded.yaml"},
		fault.Misconfigured)
	start("a policy that may require a boundary", 1, settingsOfPeople()["a policy that is broken"], fault.Misconfigured)
	for _, name := range []string{"dry run", "read-only"} {
		start(name, 1, settingsOfPeople()[name], "")
	}
	out = append(out, attempt{name: "stop, unknown", code: fault.NotFound, action: "session.stop",
		doors: doorsOf([]string{"session", "stop", "none"}, "/sessions/none/stop", nil, url.Values{})})
	return out
}

// connectionAttempts cut agents off.
func connectionAttempts() (out []attempt) {
	add := func(name, id string, code fault.Code, env map[string]string, before func(*peopleWorld)) {
		out = append(out, attempt{name: "cut off, " + name, env: env, code: code, action: "connection.cut", before: before,
			doors: doorsOf([]string{"connections", "cut", id}, "/connections/"+id+"/cut", nil, url.Values{})})
	}
	add("unknown", "none", fault.NotFound, nil, nil)
	for name, env := range map[string]map[string]string{
		"done": nil, "done, a policy that is broken": {"CLAUDEOPS_POLICY": "$DIR/broken.yaml"},
	} {
		add(name, "conn-1", "", env, func(w *peopleWorld) { w.connect("conn-1") })
	}
	return out
}

// connect records an agent that is connected to a process, and serves it as that process does: it ends when it is cut
// off.
func (w *peopleWorld) connect(id string) {
	w.Helper()
	s := store.New(filepath.Join(w.dir, "state"), store.Options{})
	c := record.Connection{ID: id, Credential: "laptop", Tier: 2, Way: "unix", Peer: "pid 4711, uid 1000",
		Since: time.Now()}
	must.Do(w, s.Connections().OpenConnection(w.Context(), c))
	over := make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer close(over)
		for ctx.Err() == nil {
			if cut, err := s.Connections().HeedConnections(ctx, map[string]int{id: 0}); cut[id] && err == nil {
				_ = s.Connections().CloseConnection(context.Background(), id)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	w.Cleanup(func() { stop(); <-over; _ = s.Close() })
}

// commandAttempts returns the acts that people can do only at the command line.
func commandAttempts() (out []attempt) {
	add := func(name string, action string, code fault.Code, env map[string]string, args ...string) {
		out = append(out, attempt{name: name, env: env, code: code, action: action,
			doors: map[string]func(*peopleWorld) fault.Code{
				"command line": func(w *peopleWorld) fault.Code {
					for i := range args {
						args[i] = strings.ReplaceAll(args[i], "$DIR", w.dir)
					}
					return w.throughCLI(args...)
				},
			}})
	}
	add("token create", "token.create", "", nil, "token", "create", "--name", "bob")
	add("token create, a name that is taken", "token.create", fault.Conflict, nil, "token", "create", "--name", "ann")
	add("token revoke", "token.revoke", "", nil, "token", "revoke", "ann")
	add("token revoke, unknown", "token.revoke", fault.NotFound, nil, "token", "revoke", "bob")
	add("resume, dry run", "create_pr.resume", fault.ReadOnly, map[string]string{"CLAUDEOPS_DRY_RUN": "true"}, "pr",
		"resume")
	add("resume, read-only", "create_pr.resume", fault.ReadOnly, map[string]string{"CLAUDEOPS_READ_ONLY": "true"}, "pr",
		"resume")
	add("resume, a broken policy", "create_pr.resume", fault.ReadOnly,
		map[string]string{"CLAUDEOPS_POLICY": "$DIR/broken.yaml"}, "pr", "resume")
	return out
}

// pauseAttempts pause and resume.
func pauseAttempts() (out []attempt) {
	add := func(name, act string, in map[string]string, code fault.Code, env map[string]string) {
		args, form, body := []string{act}, url.Values{}, map[string]any{}
		for field, value := range in {
			args = append(args, "--"+field, value)
			form.Set(field, value)
			body[field] = value
		}
		out = append(out, attempt{name: act + ", " + name, env: env, code: code, action: act,
			doors: doorsOf(args, "/"+act, body, form)})
	}
	add("done", "pause", map[string]string{"why": "moving", "repo": "demo/home"}, "", nil)
	for _, name := range []string{"a policy that is broken", "dry run", "read-only"} { // it can always be done
		add(name, "pause", map[string]string{"why": "moving"}, "", settingsOfPeople()[name])
	}
	add("nothing is paused", "resume", nil, fault.NotFound, nil)
	return out
}

// TestWhatPeopleDoHasTheSameEffectThroughEveryInterface does every act of a person through every interface that offers
// it, and compares code, rows of the audit, pull requests and branches. What is done has a world of its own for each
// interface. What is refused has one for all: it may change nothing there.
func TestWhatPeopleDoHasTheSameEffectThroughEveryInterface(t *testing.T) {
	for _, a := range slices.Concat(reviewAttempts(), promoteAttempts(), sessionAttempts(), connectionAttempts(),
		pauseAttempts(), commandAttempts()) {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			if a.code != "" {
				compareEffects(t, a.refusedIn(newWorldOf(t, a)))
				return
			}
			got := map[string]effect{}
			for door, do := range a.doors {
				w := newWorldOf(t, a)
				got[door] = w.effect(do(w))
				a.checkRow(t, door, got[door])
			}
			compareEffects(t, got)
		})
	}
}

// newWorldOf makes a world in which the attempt can be made.
func newWorldOf(t *testing.T, a attempt) *peopleWorld {
	t.Helper()
	w := newPeopleWorld(t, a.env)
	must.Do(t, os.WriteFile(filepath.Join(w.dir, "narrow.yaml"), []byte("version: 1\nrepositories: [demo/other]\n"),
		0o600))
	if a.before != nil {
		a.before(w)
	}
	return w
}

// refusedIn makes an attempt through every interface in turn, and checks that each refuses it and changes nothing. The
// command line comes first, before there is a server.
func (a attempt) refusedIn(w *peopleWorld) map[string]effect {
	w.Helper()
	before, got := effectOfNothing(w.T), map[string]effect{}
	if a.before != nil {
		before = w.effect("")
	}
	try := func(door string) {
		got[door] = w.effect(a.doors[door](w))
		a.checkRow(w.T, door, got[door])
		if !cmp.Equal(got[door].Heads, before.Heads) {
			w.Errorf("%s: a refusal has moved a branch: %s", door, cmp.Diff(before.Heads, got[door].Heads))
		}
		if !cmp.Equal(got[door].Pulls, before.Pulls) {
			w.Errorf("%s: a refusal has changed a pull request: %s", door, cmp.Diff(before.Pulls, got[door].Pulls))
		}
	}
	const first = "command line"
	if a.doors[first] != nil {
		if try(first); len(a.doors) == 1 {
			return got
		}
	}
	w.serving(func(address string) {
		w.address = address
		for door := range a.doors {
			if door != first {
				try(door)
			}
		}
		w.address = ""
	})
	return got
}

// checkRow checks the code of an attempt, and that it is in the audit.
func (a attempt) checkRow(t *testing.T, door string, got effect) {
	t.Helper()
	if got.Code != a.code {
		t.Errorf("%s: code %q, want %q", door, got.Code, a.code)
	}
	if !slices.ContainsFunc(got.Rows, func(row string) bool {
		return strings.HasPrefix(row, a.action+" ") && strings.HasSuffix(row, " "+string(a.code))
	}) {
		t.Errorf("%s: there is no row of %s, %q: %q", door, a.action, a.code, got.Rows)
	}
}

// compareEffects checks that the interfaces have had the same effect.
func compareEffects(t *testing.T, effects map[string]effect) {
	t.Helper()
	doors := slices.Sorted(maps.Keys(effects))
	for _, door := range doors[1:] {
		if diff := cmp.Diff(effects[doors[0]], effects[door]); diff != "" {
			t.Errorf("-%s +%s:\n%s", doors[0], door, diff)
		}
	}
}

var seedEffect struct {
	sync.Once
	effect effect
}

// effectOfNothing returns the state of the seed. It is the same in every copy.
func effectOfNothing(t *testing.T) effect {
	t.Helper()
	seedEffect.Do(func() { seedEffect.effect = newPeopleWorld(t, nil).effect("") })
	return seedEffect.effect
}

// TestListsShowAReviewAtOnce checks the record behind the overview, which no other process has updated.
func TestListsShowAReviewAtOnce(t *testing.T) {
	t.Parallel()
	w := newPeopleWorld(t, nil)
	s := store.New(filepath.Join(w.dir, "state"),
		store.Options{LocalRoot: func() string { return local.RootIdentity(filepath.Join(w.dir, "root")) }})
	t.Cleanup(func() { _ = s.Close() })
	for _, step := range []struct {
		verb, said         string
		approvals, changes int
	}{{"request-changes", "No.", 0, 1}, {"comment", "Say more.", 0, 1}, {"approve", "Good.", 1, 0}} {
		if out, code := w.command(w.plain(), "review", step.verb, "1", "--repo", "demo/home", "--comment",
			step.said); code != 0 || strings.Contains(out, "lists show") {
			t.Fatalf("%s: %d %s", step.verb, code, out)
		}
		got, found, err := s.Pulls.FindPull(t.Context(), record.PullKey{Provider: "local", Owner: "demo", Repo: "home",
			Number: 1})
		if err != nil || !found || got.Approvals != step.approvals || got.ChangesRequested != step.changes ||
			got.SeenBy != record.DoorCLI || got.Head == "" {
			t.Errorf("%s: %+v, %t, %v", step.verb, got, found, err)
		}
	}
}

func TestTheTerminalListsWhatAChangeWouldDo(t *testing.T) {
	t.Parallel()
	w := newPeopleWorld(t, map[string]string{"CLAUDEOPS_POLICY": "$DIR/confirmed.yaml"})
	for args, want := range map[string]string{
		"pr status 1":          "checks/new.md:4  deletes: Deletes files: rm -rf /srv/old\n",
		"review show 1":        "to approve or merge, confirm that it deletes: --acknowledge destroy --head ",
		"pr list":              "New check  deletes",
		"review list":          "New check  deletes",
		"pr diff 1 --json":     `"class": "destroy"`,
		"review show 1 --json": `"class": "destroy"`,
	} {
		if out, code := w.command(w.asAnn(w.env), append(strings.Fields(args), "--repo", "demo/home")...); code != 0 ||
			!strings.Contains(out, want) {
			t.Errorf("%s: %d, no %q in %s", args, code, want, out)
		}
	}
}
