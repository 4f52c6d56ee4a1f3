package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/cli"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// peopleWorld is a state folder and two local repositories, demo/home and demo/other, with a pull request each, a dry
// run for demo/home, and a token of ann's with every scope.
type peopleWorld struct {
	*testing.T
	dir     string
	env     map[string]string
	address string // of the server that a request goes to; "" starts one for each request
	rows    int    // of the audit that effect has returned, or that the seed has
}

// peopleSeed is a world that others are copies of, the secret of ann's token, the id of the dry run, and the head
// commit of the pull request in demo/home.
type peopleSeed struct{ dir, token, dryRun, head string }

var seedOfPeople = sync.OnceValues(makePeopleSeed)

func makePeopleSeed() (seed peopleSeed, err error) {
	if seed.dir, err = os.MkdirTemp(os.Getenv(scratch), "people-"); err != nil {
		return seed, err
	}
	run := func(into any, args ...string) error {
		out, errs, code := runWith(context.Background(), "", lookupIn(peopleEnv(seed.dir)), append(args, "--json"))
		if code != 0 {
			return fmt.Errorf("%v: exit code %d: %s%s", args, code, out, errs)
		}
		return json.Unmarshal([]byte(out), into)
	}
	work := filepath.Join(seed.dir, "work")
	for _, file := range []struct{ name, text string }{
		{"work/checks/disk.md", "# Disk\n"}, {"new.md", "# New\n\n```sh\nrm -rf /srv/old\n```\n"},
		{"short.md", "# New\n"}, // too short to be the text of another proposal
		{"dry.md", "# Dry\n\n```sh\nrm -rf /srv/older\n```\n"}, {"confirmed.yaml", "version: 1\nfacts: {destroy: acknowledge}\n"}, {"broken.yaml", "version: 1\nnonsense: true\n"},
		{"bounded.yaml", "version: 1\nsessions: {require_boundary: true}\n"},
		{"claude", fakeClaudeScript},
	} {
		path := filepath.Join(seed.dir, file.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return seed, err
		}
		if err := os.WriteFile(path, []byte(file.text), 0o755); err != nil {
			return seed, err
		}
	}
	// Without git's examples of hooks: there are more of them than other files, and each world copies them.
	for _, args := range [][]string{
		{"init", "--quiet", "--template=", "--initial-branch=main", work}, {"-C", work, "add", "--all"},
		{"-C", work, "-c", "user.name=ann", "-c", "user.email=ann@example.org", "commit", "--quiet", "-m", "first"},
		{"clone", "--quiet", "--template=", "--bare", work, filepath.Join(seed.dir, "root/demo/home.git")},
		{"clone", "--quiet", "--template=", "--bare", work, filepath.Join(seed.dir, "root/demo/other.git")},
	} {
		cmd := exec.Command("git", args...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			return seed, fmt.Errorf("git %v: %w: %s", args, err, out)
		}
	}
	for _, repo := range []string{"demo/home", "demo/other"} {
		var opened struct{ Commit string }
		create := []string{"pr", "create", "--repo", repo, "--title", "New check", "--body", "Why: x"}
		if err := run(&opened, append(create, "--create",
			"checks/new.md="+filepath.Join(seed.dir, "new.md"))...); err != nil {
			return seed, err
		}
		if repo == "demo/home" {
			seed.head = opened.Commit
		}
	}
	var dry struct{}
	if err := run(&dry, "pr", "create", "--repo", "demo/home", "--title", "Dry", "--body", "Why: x", "--dry-run",
		"--create",
		"checks/dry.md="+filepath.Join(seed.dir, "dry.md")); err != nil {
		return seed, err
	}
	var rows struct {
		Items []struct {
			RequestID string `json:"request_id"`
		}
	}
	if err := run(&rows, "audit", "list", "--limit", "1"); err != nil {
		return seed, err
	}
	var made struct{ Token string }
	err = run(&made, "token", "create", "--name", "ann", "--max-tier", "3", "--scopes", "propose,review,read,operate")
	seed.token, seed.dryRun = made.Token, rows.Items[0].RequestID
	return seed, err
}

// fakeClaudeScript is a Claude CLI whose agent is done at once.
const fakeClaudeScript = `#!/bin/sh
[ "$1" = --version ] && { echo "2.1.329 (Claude Code)"; exit 0; }
cat > /dev/null
echo '{"type":"system","subtype":"init","mcp_servers":[{"name":"claudeops","status":"connected"}]}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","num_turns":1,"total_cost_usd":0.5}'
`

func peopleEnv(dir string) map[string]string {
	return map[string]string{
		"CLAUDEOPS_LOCAL_ROOT": filepath.Join(dir, "root"), "CLAUDEOPS_STATE_DIR": filepath.Join(dir, "state"),
		"CLAUDEOPS_TIER":      "2",
		"CLAUDEOPS_REPOS_DIR": filepath.Join(dir, "repos"), "CLAUDEOPS_ADDR": "127.0.0.1:0", "CLAUDEOPS_POLL_INTERVAL": "0",
		"CLAUDEOPS_CLAUDE_BIN": filepath.Join(dir, "claude"), "CLAUDEOPS_BOUNDARY": "none",
		"PATH": os.Getenv("PATH"), "HOME": dir,
	}
}

func lookupIn(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, found := env[name]
		return value, found
	}
}

// newPeopleWorld copies the seed. In values of env, $DIR is the folder of the world.
func newPeopleWorld(t *testing.T, env map[string]string) *peopleWorld {
	t.Helper()
	w := &peopleWorld{T: t, dir: t.TempDir(), rows: rowsOfSeed}
	seed := w.seed()
	syscall.ForkLock.RLock() // no child may inherit the copied program, opened for writing: it could not be run (ETXTBSY)
	err := os.CopyFS(w.dir, os.DirFS(seed.dir))
	syscall.ForkLock.RUnlock()
	must.Do(t, err)
	must.Do(t, os.Chmod(filepath.Join(w.dir, "state"), 0o700))
	w.env = peopleEnv(w.dir)
	for name, value := range env {
		w.env[name] = strings.ReplaceAll(value, "$DIR", w.dir)
	}
	return w
}

// plain is the world without the settings that the test is about, to look at what is there, and to act as ann.
func (w *peopleWorld) plain() func(string) (string, bool) { return w.asAnn(peopleEnv(w.dir)) }

// asAnn adds ann's token to an environment.
func (w *peopleWorld) asAnn(env map[string]string) func(string) (string, bool) {
	w.Helper()
	env = maps.Clone(env)
	env["CLAUDEOPS_TOKEN"] = w.seed().token
	return lookupIn(env)
}

// seed is what the world is a copy of.
func (w *peopleWorld) seed() peopleSeed {
	w.Helper()
	seed, err := seedOfPeople()
	must.Do(w, err)
	return seed
}

// bearer are the headers of a request with a secret, or with ann's token for "".
func (w *peopleWorld) bearer(secret string) http.Header {
	w.Helper()
	if secret == "" {
		secret = w.seed().token
	}
	return http.Header{"Authorization": {"Bearer " + secret}, "Content-Type": {"application/json"}}
}

// command runs a command, and returns its answer and its exit code.
func (w *peopleWorld) command(lookup func(string) (string, bool), args ...string) (out string, code int) {
	w.Helper()
	out, errs, code := runCommand(w, lookup, args...)
	return out + errs, code
}

// throughCLI does something at the command line with ann's token, and returns the code of the refusal, "" for none.
func (w *peopleWorld) throughCLI(args ...string) fault.Code {
	w.Helper()
	out, exit := w.command(w.asAnn(w.env), append(args, "--json")...)
	if exit == 0 {
		return ""
	}
	code := decode[struct{ Code fault.Code }](w, out).Code
	if code == "" || code.ExitCode() != exit {
		w.Errorf("%v: exit code %d for %q: %s", args, exit, code, out)
	}
	return code
}

// throughServer does something with a request to `claudeops serve`, signed by ann's token. Without a body it is an
// empty form.
func (w *peopleWorld) throughServer(path string, body any) fault.Code {
	w.Helper()
	return w.throughPage("", path, body)
}

// throughPage is throughServer for a form of a page that was looked at before; "" for none.
func (w *peopleWorld) throughPage(page, path string, body any) (code fault.Code) {
	w.Helper()
	ask := func(address string) {
		if page != "" {
			w.get(address+page, w.bearer(""))
		}
		code = w.post(address+page+path, body)
	}
	if w.address != "" {
		ask(w.address)
	} else {
		w.serving(ask)
	}
	return code
}

// serving runs `claudeops serve` while do asks it at its address.
func (w *peopleWorld) serving(do func(address string), flags ...string) (said func() string) {
	w.Helper()
	s := serveUntil(w, "http://", lookupIn(w.env), flags...)
	defer func() {
		s.stop()
		w.inspect(func(s *store.Store) error {
			rows, err := s.Audit.Page(w.Context(), record.AuditQuery{Limit: record.MaxAuditLimit})
			for _, row := range rows {
				if row.Policy == "" {
					w.Errorf("a row of the audit does not have the policy that judged it: %v", row)
				}
			}
			return err
		})
	}()
	do(s.url)
	return s.log.String
}

// seeded returns texts with what the seed has: $HEAD is the head commit of the pull request in demo/home.
func (w *peopleWorld) seeded(texts []string) (out []string) {
	w.Helper()
	for _, text := range texts {
		out = append(out, strings.ReplaceAll(text, "$HEAD", w.seed().head))
	}
	return out
}

// moveBranch adds a commit to the branch of the pull request in demo/home, the same one in every world.
func (w *peopleWorld) moveBranch() {
	w.Helper()
	head := w.seeded([]string{"$HEAD"})[0]
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", filepath.Join(w.dir, "root/demo/home.git"), "-c", "user.name=b",
			"-c", "user.email=b@example.org"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
			"GIT_AUTHOR_DATE=1767225600 +0000", "GIT_COMMITTER_DATE=1767225600 +0000")
		out, err := cmd.Output()
		if err != nil {
			w.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	git("update-ref", git("for-each-ref", "--points-at", head, "--format=%(refname)", "refs/heads/claude-ops/"),
		git("commit-tree", "-p", head, "-m", "more", head+"^{tree}"))
}

func (w *peopleWorld) post(address string, body any) fault.Code {
	w.Helper()
	headers, text := w.bearer(""), ""
	if form, isForm := body.(url.Values); isForm {
		headers.Set("Content-Type", "application/x-www-form-urlencoded")
		text = form.Encode()
	} else if body != nil {
		raw := must.Get(json.Marshal(body))(w)
		text = string(raw)
	}
	status, answer := w.ask(http.MethodPost, address, text, headers)
	if status < http.StatusBadRequest {
		return ""
	}
	var problem struct{ Code fault.Code }
	if err := json.Unmarshal([]byte(answer), &problem); err != nil || problem.Code.HTTPStatus() != status {
		w.Fatalf("status %d: %s", status, answer)
	}
	return problem.Code
}

// effect is the result of a person's act.
type effect struct {
	Code  fault.Code
	Rows  []string // of the audit since the last look
	Pulls []string
	Heads []string // branches of all repositories, by name alone but for main
}

func (w *peopleWorld) effect(code fault.Code) effect {
	w.Helper()
	e := effect{Code: code}
	w.inspect(func(s *store.Store) error {
		rows, err := s.Audit.Page(w.Context(), record.AuditQuery{Limit: record.MaxAuditLimit})
		for _, row := range rows[:max(0, len(rows)-w.rows)] {
			e.Rows = append(e.Rows, w.sentence(row.Entry())...)
		}
		w.rows = len(rows)
		for _, repo := range []string{"demo/home", "demo/other"} {
			pulls, pullsErr := s.LocalPulls.PRs(w.Context(), repo, "")
			err = errors.Join(err, pullsErr)
			for _, pr := range pulls {
				e.Pulls = append(e.Pulls, fmt.Sprint(repo, " ", pr.Number, " ", pr.State, " ", pr.Title))
			}
		}
		_, reviews, reviewsErr := s.LocalPulls.PR(w.Context(), "demo/home", 1)
		for _, r := range reviews {
			e.Pulls = append(e.Pulls, fmt.Sprint(r.Author, " ", r.State, " ", r.Body))
		}
		return errors.Join(err, reviewsErr)
	})
	for _, repo := range []string{"demo/home", "demo/other"} {
		e.Heads = append(e.Heads, w.heads(filepath.Join(w.dir, "root", repo+".git")))
	}
	return e
}

// headsOf has the answers of heads by the texts of the references: most repositories are still as the seed's.
var headsOf sync.Map

// heads lists the references of a repository with their trees: the commits of two worlds differ by their times.
func (w *peopleWorld) heads(dir string) string {
	w.Helper()
	var texts strings.Builder
	read := func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&texts, "%s %q\n", strings.TrimPrefix(path, dir), text)
		return err
	}
	err := filepath.WalkDir(filepath.Join(dir, "refs"), read)
	if packed := filepath.Join(dir, "packed-refs"); err == nil {
		text, readErr := os.ReadFile(packed)
		if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
			err = readErr
		}
		fmt.Fprintf(&texts, "%q\n", text)
	}
	must.Do(w, err)
	if known, ok := headsOf.Load(texts.String()); ok {
		return known.(string)
	}
	out, err := exec.CommandContext(w.Context(), "git", "--git-dir", dir, "for-each-ref",
		"--format=%(refname) %(tree)").Output()
	must.Do(w, err)
	headsOf.Store(texts.String(), string(out))
	return string(out)
}

// sentence returns a row of the audit as effects are compared; none for one of the server's own, sooner or later.
func (w *peopleWorld) sentence(row record.AuditEntry) []string {
	w.Helper()
	if strings.HasPrefix(row.Action, "pull.") || row.Action == "prune" {
		return nil
	}
	if row.Caller != "ann" && row.Action != "session.start" { // which the user of the system asks for
		w.Errorf("a row of %s's", row.Caller)
	}
	return []string{fmt.Sprint(row.Action, " ", row.Provider, ":", row.Repo, " ", row.PRNumber, " ", row.Outcome, " ",
		row.Code)}
}

// inspect looks at the records as they are. A command that reads them would open them for each question, and compare
// all branches.
func (w *peopleWorld) inspect(look func(*store.Store) error) {
	w.Helper()
	s := store.New(filepath.Join(w.dir, "state"), store.Options{MustExist: true,
		LocalRoot: func() string { return local.RootIdentity(filepath.Join(w.dir, "root")) }})
	must.Do(w, errors.Join(look(s), s.Close()))
}

// rowsOfSeed is the number of rows in the audit of the seed: two pull requests, a dry run, a token.
const rowsOfSeed = 4

func (w *peopleWorld) read(into any, args ...string) {
	w.Helper()
	out, code := w.command(w.plain(), append(args, "--json")...)
	if code != 0 {
		w.Fatalf("%v: %d %s", args, code, out)
	}
	must.Do(w, json.Unmarshal([]byte(out), into))
}

// said returns the output of a command on both of its streams.
func (w *peopleWorld) said(args ...string) (out, errs string) {
	w.Helper()
	out, errs, _ = runCommand(w, w.plain(), args...)
	return out, errs
}

// What agents wrote is printed so that nothing hides in it, for people and as JSON, and on both streams.
func TestNothingHidesInWhatIsPrinted(t *testing.T) {
	t.Parallel()
	const evil = "Tidy \u202etxt.exe\u200b \x1b[2J\u3164"
	w := newPeopleWorld(t, nil)
	proposal := []string{"pr", "create", "--repo", "demo/home-cluster" + evil, "--title", evil, "--body", evil, "--create",
		"checks/" + evil + ".md=/dev/null"}
	for _, args := range [][]string{
		proposal, append([]string{"--json"}, proposal...),
		{"audit", "list"}, {"--json", "audit", "list"}, {"--json", "audit", "show", "1"}, {"audit", "list", "--repo", evil},
		{"pr", "status", "--repo", evil, "1"}, {"--json", "pr", "list", "--repo", evil},
		{"session", "show", evil}, {"--json", "session", "show", evil}, {"--json", "session", "list"},
		{"token", "create", "--name", evil}, {"--json", "token", "create", "--name", evil},
		{"--json", "token", "revoke", evil}, {"token", "revoke", evil},
		{"connections", "cut", evil}, {"--json", "connections", "cut", evil}, {evil}, {"audit", "list", "--outcome", evil},
		{"--json", "audit", "list", "--outcome", evil},
		{"policy", "check", "checks/" + evil}, {"--json", "policy", "check", "checks/" + evil}, {"scripts", "run", evil},
		{"--json", "doctor"},
	} {
		out, errs := w.said(args...)
		if found := textscan.Hidden(out + errs); len(found) > 0 {
			t.Errorf("%q prints %v: %q, %q", args, found, out, errs)
		}
		if args[0] == "--json" && !json.Valid([]byte(out)) {
			t.Errorf("%q prints no JSON: %q", args, out)
		}
	}
	if out, _ := w.said("--json", "audit", "list"); !strings.Contains(out, `\u202e`) {
		t.Errorf("no row has what was written: %s", out)
	}
}

// runCommand runs a command, and returns what it printed and its exit code.
func runCommand(t testing.TB, lookup func(string) (string, bool), args ...string) (out, errs string, code int) {
	t.Helper()
	return runWith(t.Context(), "", lookup, args)
}

// runWith runs a command with an input.
func runWith(ctx context.Context, in string, lookup func(string) (string, bool), args []string) (out, errs string,
	code int) {
	var stdout, stderr bytes.Buffer
	code = cli.Run(ctx, args, cli.Streams{In: strings.NewReader(in), Out: &stdout, Err: &stderr}, lookup)
	return stdout.String(), stderr.String(), code
}

// decode reads JSON, and ends the test if a text is none.
func decode[T any](t testing.TB, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}
