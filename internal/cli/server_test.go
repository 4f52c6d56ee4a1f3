package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/cli"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// startedServer is a `claudeops serve` in this process.
type startedServer struct {
	said, url string       // what it printed when it began to listen, and where it does
	log       bytes.Buffer // what it said beside, once it has ended
	stop      func()       // has it end, and fails the test unless it ends well
}

// serveUntil starts a server, and waits until it has printed a text. It ends with the test at the latest.
func serveUntil(t testing.TB, text string, lookup func(string) (string, bool), flags ...string) *startedServer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	ended, s := make(chan int, 1), &startedServer{}
	go func() {
		ended <- cli.Run(ctx, append([]string{"serve"}, flags...),
			cli.Streams{In: strings.NewReader(""), Out: writer, Err: &s.log}, lookup)
		_ = writer.Close()
	}()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("serve ended with %d: %s", code, s.log.Bytes())
		}
	})
	t.Cleanup(s.stop)
	for lines := bufio.NewReader(reader); !strings.Contains(s.said, text); {
		line, err := lines.ReadString('\n')
		if s.said += line; err != nil {
			t.Fatalf("serve said %q, %v", s.said, err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	s.url = regexp.MustCompile(`http://[0-9.:]+`).FindString(s.said)
	return s
}

// serveIn starts a server in a state folder.
func serveIn(t *testing.T, state string) *startedServer {
	t.Helper()
	return serveUntil(t, "token", lookupIn(map[string]string{"CLAUDEOPS_STATE_DIR": state, // its last line names one
		"CLAUDEOPS_ADDR": "127.0.0.1:0", "PATH": os.Getenv("PATH"), "HOME": t.TempDir()}))
}

func TestTheFirstStartMakesATokenAndPrintsAnAddressThatSignsInOnce(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	s := serveIn(t, state)
	file := filepath.Join(state, "operator-token")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	secret, err := os.ReadFile(file)
	if err != nil || !regexp.MustCompile(`^cops_[A-Za-z0-9_-]{43}\n$`).Match(secret) ||
		strings.Contains(s.said, strings.TrimSpace(string(secret))) {
		t.Fatalf("the token %q, %v; it said %s", secret, err, s.said)
	}
	address := regexp.MustCompile(`http://\S+/sign-in\?code=\S+`).FindString(s.said)
	parsed, err := url.Parse(address)
	if address == "" || err != nil {
		t.Fatalf("it said %s", s.said)
	}
	base, code := "http://"+parsed.Host, parsed.Query().Get("code")
	jar := must.Get(cookiejar.New(nil))(t)
	client := &http.Client{Jar: jar}
	if status, page := fetchPage(t, client, http.MethodGet, address, nil); status != 200 || !strings.Contains(page, code) {
		t.Fatalf("%d %s", status, page)
	}
	if status, _ := fetchPage(t, client, http.MethodGet, base+"/api/v1/me", nil); status != 401 {
		t.Errorf("looking at the address has signed in: %d", status)
	}
	if status, page := fetchPage(t, client, http.MethodPost, base+"/sign-in", url.Values{"code": {code}}); status != 200 ||
		!strings.Contains(page, "<h1>Overview</h1>") {
		t.Fatalf("%d %s", status, page)
	}
	if status, page := fetchPage(t, client, http.MethodGet, base+"/api/v1/me", nil); status != 200 ||
		!strings.Contains(page, `"name":"operator"`) {
		t.Errorf("%d %s", status, page)
	}
	if status, _ := fetchPage(t, http.DefaultClient, http.MethodPost, base+"/sign-in",
		url.Values{"code": {code}}); status != 401 {
		t.Errorf("the code was good twice: %d", status)
	}
	s.stop()

	again := serveIn(t, state)
	if kept, err := os.ReadFile(file); err != nil || string(kept) != string(secret) ||
		!strings.Contains(again.said, "/sign-in?code=") || strings.Contains(again.said, code) {
		t.Errorf("another token %v, or no other code: %s", err, again.said)
	}
}

// A server that was killed between the two has left the file alone; its token is the one that the next start makes
// known.
func TestATokenThatWasNotMadeKnownYetIsFoundAgain(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	const secret = "cops_0123456789012345678901234567890123456789012"
	must.Do(t, os.WriteFile(filepath.Join(state, "operator-token"), []byte(secret+"\n"), 0o600))
	s := serveIn(t, state)
	answer, _ := exchange(t, http.DefaultClient, http.MethodGet, s.url+"/api/v1/me", "",
		http.Header{"Authorization": {"Bearer " + secret}})
	if answer.StatusCode != 200 {
		t.Errorf("status %d", answer.StatusCode)
	}
}

func TestAServerThatCannotKeepItsTokenSaysWhatToDo(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(state, nil, 0o600))
	env := map[string]string{"CLAUDEOPS_STATE_DIR": state, "CLAUDEOPS_ADDR": "127.0.0.1:0"}
	out, problems, code := runCommand(t, lookupIn(env), "serve")
	if code == fault.ExitDone || out != "" || !strings.Contains(problems, state) {
		t.Errorf("exit %d: %s%s", code, out, problems)
	}
}

func fetchPage(t *testing.T, client *http.Client, method, address string, form url.Values) (status int, text string) {
	t.Helper()
	headers := http.Header{"Accept": {"text/html"}}
	if form != nil {
		headers["Content-Type"], headers["Sec-Fetch-Site"] = []string{"application/x-www-form-urlencoded"},
			[]string{"same-origin"}
	}
	answer, text := exchange(t, client, method, address, form.Encode(), headers)
	return answer.StatusCode, text
}

// healthOf runs `claudeops health` against an address.
func healthOf(t *testing.T, env map[string]string) (code int, out, errOut string) {
	t.Helper()
	out, errOut, code = runCommand(t, lookupIn(env), "health")
	return code, out, errOut
}

func TestHealthIsWhatTheServerSaysOfItself(t *testing.T) {
	t.Parallel()
	status, asked := http.StatusOK, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		w.Header().Set("Location", "/healthz")
		w.WriteHeader(status)
	}))
	defer server.Close()
	addr := server.Listener.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	must.Do(t, err)
	for _, listening := range []string{addr, "0.0.0.0:" + port, ":" + port, "localhost:" + port} {
		code, out, errOut := healthOf(t, map[string]string{"CLAUDEOPS_ADDR": listening, "CLAUDEOPS_BASE_PATH": "/ops"})
		if code != fault.ExitDone || !strings.Contains(out, "is ready") || asked != "/ops/readyz" {
			t.Errorf("%s: exit %d, asked for %q: %s%s", listening, code, asked, out, errOut)
		}
	}
	for _, status = range []int{http.StatusServiceUnavailable, http.StatusNotFound, http.StatusFound,
		http.StatusForbidden} {
		if code, out, errOut := healthOf(t, map[string]string{"CLAUDEOPS_ADDR": addr}); code != 1 || out != "" ||
			!strings.Contains(errOut, "not ready") {
			t.Errorf("status %d: exit %d: %s%s", status, code, out, errOut)
		}
	}
}

func TestHealthOfNoServer(t *testing.T) {
	t.Parallel()
	addr := strings.TrimPrefix(httpfault.NoListener, "http://")
	if code, _, errOut := healthOf(t, map[string]string{"CLAUDEOPS_ADDR": addr}); code != 1 ||
		!strings.Contains(errOut, "no server answers on "+addr) {
		t.Errorf("exit %d: %s", code, errOut)
	}
	if code, _, errOut := healthOf(t, map[string]string{"CLAUDEOPS_ADDR": "nonsense"}); code != fault.ExitUsage ||
		!strings.Contains(errOut, "CLAUDEOPS_ADDR") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}

// rulesOfTest has caps that a test which proposes again and again does not reach.
const rulesOfTest = "version: 1\ncaps: {open_prs: 900, creations_per_hour: 900}\n"

// The operator's changes while `claudeops serve` runs apply to all protocols at the same moment: the policy, and the
// environment file's repositories and switches.
func TestTheRulesOfARunningServerAreThoseOfNow(t *testing.T) {
	t.Parallel()
	w := newPeopleWorld(t, map[string]string{"CLAUDEOPS_POLICY": "$DIR/policy.yaml", "CLAUDEOPS_API_TOKENS": ""})
	w.put("policy.yaml", rulesOfTest)
	w.put(".config/claudeops/environment", "CLAUDEOPS_DRY_RUN=\n")
	var made struct{ Token string }
	w.read(&made, "token", "create", "--agent", "--name", "bot", "--tier", "2")
	w.serving(func(address string) {
		for _, step := range []struct {
			name, file, text        string
			proposes, merges, lists fault.Code
			dryRun                  bool
		}{
			{name: "as it was"},
			{"narrowed", "policy.yaml", rulesOfTest + "repositories: [demo/other]\n", fault.RepoNotAllowed, fault.RepoNotAllowed,
				fault.RepoNotAllowed, false},
			{"broken", "policy.yaml", rulesOfTest + "nonsense: true\n", fault.ReadOnly, fault.ReadOnly, "", false},
			{"mended", "policy.yaml", rulesOfTest, "", "", "", false},
			{"read-only by the policy", "policy.yaml", rulesOfTest + "read_only: true\n", fault.ReadOnly, "", "", false},
			{"dry run by the policy", "policy.yaml", rulesOfTest + "dry_run: true\n", "", fault.ReadOnly, "", true},
			{"a list in the environment file", "policy.yaml", rulesOfTest, "", "", "", false},
			{"a list", ".config/claudeops/environment", "CLAUDEOPS_REPOS=demo/other\n", fault.RepoNotAllowed,
				fault.RepoNotAllowed, fault.RepoNotAllowed, false},
			{"a malformed list", ".config/claudeops/environment", "CLAUDEOPS_REPOS=demo-home\n", fault.ReadOnly, fault.ReadOnly,
				"", false},
			{"a dry run", ".config/claudeops/environment", "CLAUDEOPS_DRY_RUN=true\n", "", fault.ReadOnly, "", true},
			{"no environment file that can be read", ".config/claudeops/environment", "nonsense\n", fault.ReadOnly,
				fault.ReadOnly, "", false},
			{"all of it mended", ".config/claudeops/environment", "", "", "", "", false},
		} {
			if step.file != "" {
				w.put(step.file, step.text)
			}
			w.becomes(step.name, func() bool {
				got, dry := w.proposes(address, "")
				return got == step.proposes && dry == step.dryRun
			})
			// From now on no way in may say anything else.
			for range 2 {
				if got, dry := w.proposes(address, made.Token); got != step.proposes || dry != step.dryRun {
					t.Errorf("%s: an agent that proposes over MCP gets %q, dry run %t; want %q, %t", step.name, got, dry,
						step.proposes, step.dryRun)
				}
			}
			if strings.Contains(step.text, "nonsense: true") || step.name == "mended" {
				w.becomes(step.name+", in the health and on each page", func() bool {
					tell, all := w.tellOfBrokenPolicy(address)
					return step.name == "broken" && tell == all || step.name == "mended" && tell == 0
				})
			}
			if got := w.lists(address, made.Token); got != step.lists {
				t.Errorf("%s: an agent that lists gets %q, want %q", step.name, got, step.lists)
			}
			// A number that there is not: nothing is merged, and the rules are asked before.
			want := step.merges
			if want == "" {
				want = fault.NotFound
			}
			if got := w.post(address+"/api/v1/prs/99/merge", map[string]any{"repo_owner": "demo", "repo_name": "home",
				"provider": "local"}); got != want {
				t.Errorf("%s: a person who merges over REST gets %q, want %q", step.name, got, want)
			}
		}
	})
}

// Secrets in files count in their present form, for every protocol: a token whose file is replaced, empty or gone is
// refused, and sign-ins by it end; everything else stays valid.
func TestTheSecretsOfARunningServerAreThoseOfNow(t *testing.T) {
	t.Parallel()
	w := newPeopleWorld(t, map[string]string{"CLAUDEOPS_API_TOKENS_FILE": "$DIR/tokens",
		"GITEA_WEBHOOK_SECRET_FILE": "$DIR/hook", "CLAUDEOPS_MARK_KEY_FILE": "$DIR/key"})
	const first, second = "first-token-of-the-file", "second-token-of-the-file"
	w.put("tokens", first)
	w.put("hook", first)
	w.put("key", strings.Repeat("ab", 32))
	w.serving(func(address string) {
		login := w.loginBy(address, first)
		for _, step := range []struct {
			name, tokens, hook string
			lets               []string // secrets that let in
			health             string   // what the health says
		}{
			{"as it was", first, first, []string{first}, ""},
			{"replaced", second + "," + second + "-2", second, []string{second}, ""},
			{"empty", "", "", nil, "none of its tokens lets anybody in"},
			{"mended", first, first, []string{first}, ""},
			{"gone", "-", "-", nil, "none of its tokens lets anybody in"},
			{"there again", second, second, []string{second}, ""},
		} {
			for name, text := range map[string]string{"tokens": step.tokens, "hook": step.hook} {
				if text == "-" {
					_ = os.Remove(filepath.Join(w.dir, name))
					continue
				}
				w.put(name, text)
			}
			lets := func(secret string) bool { return slices.Contains(step.lets, secret) }
			w.becomes(step.name, func() bool {
				return (w.reads(address, first) == http.StatusOK) == lets(first) &&
					(w.reads(address, second) == http.StatusOK) == lets(second)
			})
			for _, secret := range []string{first, second} {
				if got := w.delivers(address, secret); (got < http.StatusBadRequest) != lets(secret) {
					t.Errorf("%s: a delivery that is signed with %s: %d", step.name, secret, got)
				}
			}
			if got := w.opens(address, login); step.name != "as it was" && got == http.StatusOK {
				t.Errorf("%s: a browser that has signed in with the first token reads: %d", step.name, got)
			}
			if got := w.reads(address, w.seed().token); got != http.StatusOK {
				t.Errorf("%s: who is in by another token gets %d", step.name, got)
			}
			said := w.health(address)
			if strings.Contains(said, "lets anybody in") != (step.health != "") || !strings.Contains(said, step.health) {
				t.Errorf("%s: the health says %s", step.name, said)
			}
		}
		w.put("key", strings.Repeat("cd", 32))
		w.becomes("the health says that the key is another one", func() bool {
			return strings.Contains(w.health(address), "CLAUDEOPS_MARK_KEY has changed since this process started")
		})
	})
}

// doctor says by which rules a server judges that runs, and when they are not those that the command reads.
func TestDoctorSaysByWhichRulesTheServerJudges(t *testing.T) {
	t.Parallel()
	w := newPeopleWorld(t, map[string]string{"CLAUDEOPS_POLICY": "$DIR/policy.yaml"})
	w.put("policy.yaml", rulesOfTest)
	w.put("other.yaml", rulesOfTest+"repositories: [demo/other]\n")
	other := maps.Clone(w.env)
	other["CLAUDEOPS_POLICY"] = filepath.Join(w.dir, "other.yaml")
	says := func(env map[string]string) (found doctor.Finding) {
		out, _ := w.command(lookupIn(env), "doctor", "--json")
		for _, f := range decode[struct{ Findings []doctor.Finding }](t, out).Findings {
			if f.Name == "server" {
				found = f
			}
		}
		return found
	}
	want := func(what string, env map[string]string, status, detail string) {
		t.Helper()
		got := says(env)
		if got.Status != status || !strings.Contains(got.Detail, detail) || got.Blocks != (status == doctor.Problem) {
			t.Errorf("%s: %+v, want %s and %q", what, got, status, detail)
		}
	}
	want("no server", w.env, "", "")
	w.serving(func(string) {
		w.becomes("the server tells of its rules", func() bool { return says(w.env).Status == doctor.OK })
		want("the same policy", w.env, doctor.OK, "judges by the same policy")
		want("another policy", other, doctor.Warning, "this command reads one with the hash")
		w.put("policy.yaml", rulesOfTest+"nonsense: true\n")
		w.becomes("a broken one is seen", func() bool { return says(other).Status == doctor.Problem })
		want("a broken one, seen with a good one", other, doctor.Problem, "cannot read its rules: ")
		w.put("policy.yaml", rulesOfTest+"repositories: [demo/other]\n")
		w.becomes("a new policy holds there, too", func() bool { return says(w.env).Status == doctor.OK })
	})
	want("it has ended", w.env, "", "")
}

// reads asks over REST with a token, and returns the status.
func (w *peopleWorld) reads(address, token string) int {
	w.Helper()
	return w.status(http.MethodGet, address+"/api/v1/me", "", w.bearer(token))
}

// opens opens a page with the cookie of a login, and returns the status.
func (w *peopleWorld) opens(address, login string) int {
	w.Helper()
	return w.status(http.MethodGet, address+"/settings/tokens", "", http.Header{"Cookie": {login}})
}

// delivers sends a ping as Gitea does, signed with a secret.
func (w *peopleWorld) delivers(address, secret string) int {
	w.Helper()
	const body = `{"zen":"x"}`
	h := hmac.New(sha256.New, []byte(secret))
	_, _ = h.Write([]byte(body))
	return w.status(http.MethodPost, address+"/webhooks/gitea", body, http.Header{
		"Content-Type": {"application/json"}, "X-Gitea-Delivery": {fmt.Sprint(time.Now().UnixNano())},
		"X-Gitea-Event": {"ping"}, "X-Gitea-Signature": {hex.EncodeToString(h.Sum(nil))}})
}

// loginBy signs a browser in with a token, and returns its cookie.
func (w *peopleWorld) loginBy(address, token string) string {
	w.Helper()
	answer, _ := w.exchangeOf(http.MethodPost, address+"/sign-in", `{"token":"`+token+`"}`,
		http.Header{"Content-Type": {"application/json"}})
	if len(answer.Cookies()) != 1 {
		w.Fatalf("signing in: %d", answer.StatusCode)
	}
	return answer.Cookies()[0].Name + "=" + answer.Cookies()[0].Value
}

// tellOfBrokenPolicy counts the pages that say that the policy is broken, and all that were asked. The health is one.
func (w *peopleWorld) tellOfBrokenPolicy(address string) (tell, all int) {
	w.Helper()
	pages := map[string]string{"/healthz?detail=1": "nonsense"}
	for _, page := range []string{"/", "/changes", "/audit", "/sessions", "/tokens", "/policy", "/doctor"} {
		pages[page] = "Policy stops every proposal"
	}
	headers := w.bearer("")
	headers.Set("Accept", "text/html")
	for page, says := range pages {
		_, text := w.get(address+page, headers)
		if strings.Contains(text, says) {
			tell++
		}
	}
	return tell, len(pages)
}

// health returns /healthz in detail for ann.
func (w *peopleWorld) health(address string) string {
	w.Helper()
	_, body := w.get(address+"/healthz?detail=1", w.bearer(""))
	return body
}

func (w *peopleWorld) status(method, address, body string, headers http.Header) int {
	w.Helper()
	status, _ := w.ask(method, address, body, headers)
	return status
}

func (w *peopleWorld) get(address string, headers http.Header) (int, string) {
	w.Helper()
	return w.ask(http.MethodGet, address, "", headers)
}

func (w *peopleWorld) ask(method, address, body string, headers http.Header) (status int, answer string) {
	w.Helper()
	got, answer := w.exchangeOf(method, address, body, headers)
	return got.StatusCode, answer
}

// responseHead is an answer whose body was read.
type responseHead struct {
	StatusCode int
	Header     http.Header
}

func (h responseHead) Cookies() []*http.Cookie { return (&http.Response{Header: h.Header}).Cookies() }

// exchangeOf asks, and follows no redirect.
func (w *peopleWorld) exchangeOf(method, address, body string, headers http.Header) (head responseHead, text string) {
	w.Helper()
	return exchange(w, &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}, method, address, body, headers)
}

// exchange asks with a client.
func exchange(t testing.TB, client *http.Client, method, address, body string, headers http.Header) (
	head responseHead, text string,
) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body)))(t)
	r.Header = headers
	got, err := client.Do(r)
	must.Do(t, err)
	defer got.Body.Close()
	raw, err := io.ReadAll(got.Body)
	must.Do(t, err)
	return responseHead{got.StatusCode, got.Header}, string(raw)
}

// put writes a file of the world as its owner alone may read it. A server that runs sees it as it was or as it is, and
// no empty file in between.
func (w *peopleWorld) put(name, text string) {
	w.Helper()
	path := filepath.Join(w.dir, name)
	must.Do(w, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(w, files.Replace(path, []byte(text), 0o600))
}

func (w *peopleWorld) becomes(what string, is func() bool) {
	w.Helper()
	// Who asks more often with a token that is not good any more comes to the bound of wrong tokens in a minute.
	eventually(w.T, what, 250*time.Millisecond, is)
}

// proposes proposes a new file to demo/home, over MCP with an agent's token, or over REST without one. It returns the
// code of the refusal and whether it was a dry run.
func (w *peopleWorld) proposes(address, agent string) (code fault.Code, dryRun bool) {
	w.Helper()
	name := fmt.Sprintf("checks/n%d.md", time.Now().UnixNano())
	text := "# New\n"
	body := map[string]any{"repo_owner": "demo", "repo_name": "home", "title": "New " + name, "body": "Why: x",
		"files": []map[string]any{{"path": name, "action": "create", "content": text}}}
	if agent != "" {
		return w.calls(address, agent, "create_pr", body)
	}
	return w.asks(address+"/api/v1/prs", body)
}

func (w *peopleWorld) lists(address, agent string) fault.Code {
	w.Helper()
	code, _ := w.calls(address, agent, "list_prs", map[string]any{"repo_owner": "demo", "repo_name": "home"})
	return code
}

// proposed is the answer to a proposal.
type proposed struct {
	Code   fault.Code
	DryRun bool `json:"dry_run"`
}

// asks posts to REST with ann's token.
func (w *peopleWorld) asks(address string, body any) (code fault.Code, dryRun bool) {
	w.Helper()
	raw := w.send(address, body, w.bearer(""))
	answer := decode[proposed](w, string(raw))
	return answer.Code, answer.DryRun
}

// calls calls a tool at /mcp.
func (w *peopleWorld) calls(address, agent, tool string, arguments any) (code fault.Code, dryRun bool) {
	w.Helper()
	raw := string(w.rawCall(address, agent, "t", tool, arguments))
	answer := decode[toolAnswer](w, raw)
	if !strings.Contains(raw, `"structuredContent"`) {
		w.Fatal(raw)
	}
	return answer.code(), answer.Result.Structured.DryRun
}

// rawCall calls a tool at /mcp for a client that calls itself by a name.
func (w *peopleWorld) rawCall(address, agent, client, tool string, arguments any) []byte {
	w.Helper()
	const version = "2026-07-28"
	return w.send(
		address+"/mcp",
		map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
			"name": tool, "arguments": arguments, "_meta": map[string]any{
				"io.modelcontextprotocol/protocolVersion":    version,
				"io.modelcontextprotocol/clientInfo":         map[string]string{"name": client, "version": "1"},
				"io.modelcontextprotocol/clientCapabilities": map[string]any{},
			}}},
		http.Header{"Authorization": {"Bearer " + agent}, "Accept": {"application/json"},
			"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {version}, "Mcp-Method": {"tools/call"},
			"Mcp-Name": {tool}},
	)
}

func (w *peopleWorld) send(address string, body any, headers http.Header) []byte {
	w.Helper()
	text := must.Get(json.Marshal(body))(w)
	_, answer := w.ask(http.MethodPost, address, string(text), headers)
	return []byte(answer)
}

// What looks like a token of somebody else is in no answer and no row, wherever a call has it but in what it proposes.
func TestTokensOfOthersInCallsAreRepeatedNowhere(t *testing.T) {
	t.Parallel()
	w := newPeopleWorld(t, nil)
	foreign := "ghp_" + "x7Kq2mW9vLp4Rt8Yb3Nc6Hd1Js5Gf0ZaQe2U"
	var made struct{ Token string }
	w.read(&made, "token", "create", "--agent", "--name", "bot", "--tier", "2")
	in := map[string]map[string]any{
		"clone_url":   {"clone_url": "https://joe:" + foreign + "@git.example/joe/infra.git"},
		"user":        {"clone_url": "https://" + foreign + "@git.example/joe/infra.git"},
		"base_branch": {"base_branch": foreign}, "repo_name": {"repo_name": foreign}, "repo_owner": {"repo_owner": foreign},
		"provider": {"provider": foreign}, "unknown": {foreign: "x"}, "unknown of a file": {"files": []any{map[string]any{
			foreign: "x"}}}, "action": {"files": []any{map[string]any{"path": "checks/a.md", "action": foreign}}},
	}
	said := w.serving(func(address string) {
		for name, change := range in {
			for _, tool := range []string{"create_pr", "list_prs", "get_pr_status"} {
				call := map[string]any{"repo_owner": "demo", "repo_name": "home"}
				maps.Copy(call, change)
				if raw := w.rawCall(address, made.Token, "a "+foreign, tool, call); strings.Contains(string(raw), foreign) {
					t.Errorf("%s of %s is in the answer: %s", name, tool, raw)
				}
				if raw := w.send(address+"/api/v1/prs", call, w.bearer("")); strings.Contains(string(raw), foreign) {
					t.Errorf("%s is in the answer of REST: %s", name, raw)
				}
			}
			query := url.Values{"repo_owner": {"demo"}, "repo_name": {"home"}}
			for field, value := range change {
				query.Set(field, fmt.Sprint(value))
			}
			if _, body := w.get(address+"/api/v1/prs?"+query.Encode(), w.bearer("")); strings.Contains(body, foreign) {
				t.Errorf("%s is in the answer to a question over REST: %s", name, body)
			}
		}
	})
	if strings.Contains(said(), foreign) {
		t.Errorf("the log has it:\n%s", said())
	}
	out, _ := w.command(w.plain(), "audit", "list", "--limit", "1000", "--json")
	if strings.Contains(out, foreign) || !strings.Contains(out, "withheld: looks like a secret") {
		t.Errorf("a row has it, or none says that something was withheld: %s", out)
	}
	if out, _ := w.command(w.plain(), "pr", "list", "--repo", "demo/"+foreign); strings.Contains(out, foreign) {
		t.Errorf("the command line says %s", out)
	}
}
