package cli_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/stdioproxy"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakeoidc"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// signedInWorld is a server that people sign in to by a provider, and ann, who has signed in there as an operator, with
// an agent's token of hers and a program that she has let in.
type signedInWorld struct {
	*peopleWorld
	provider       *fakeoidc.Provider
	address, login string    // of the server, and the cookie of ann's browser
	agent          string    // secret of her agent's token
	socket         string    // where her agent connects too
	client         string    // id of her program
	began          time.Time // when a test began that counts by minutes
	refresh        string    // its refresh token
	once           string    // code of a one-time address that was refused; "" for none
}

const rolesOfTest = rulesOfTest + "roles:\n  operator: [{provider: company, user: ann}]\n" +
	"  viewer: [{provider: company, user: bob}]\n"

// newSignedInWorld makes the world, before anybody has signed in and a server runs.
func newSignedInWorld(t *testing.T) *signedInWorld {
	t.Helper()
	provider := fakeoidc.New(time.Now)
	t.Cleanup(provider.Close)
	socket := shortFolder(t) + "/agents.sock"
	w := newPeopleWorld(t, map[string]string{
		"CLAUDEOPS_DOOR_SOCKET": socket,
		"CLAUDEOPS_POLICY":      "$DIR/policy.yaml", "CLAUDEOPS_PUBLIC_URL": "http://127.0.0.1:1",
		"CLAUDEOPS_SIGN_IN":                "company",
		"CLAUDEOPS_SIGN_IN_COMPANY_ISSUER": provider.Issuer(), "CLAUDEOPS_SIGN_IN_COMPANY_CLIENT_ID": provider.ID,
		"CLAUDEOPS_SIGN_IN_COMPANY_CLIENT_SECRET": provider.Secret, "GITEA_WEBHOOK_SECRET": "a-secret-of-the-webhooks",
	})
	w.put("policy.yaml", rolesOfTest)
	return &signedInWorld{peopleWorld: w, provider: provider, socket: socket}
}

// What the operator changes in the policy holds for people, for their programs and agents, and for the command line
// of a running server from the same moment on. While the policy is broken nobody signs in anew and no program is let
// in, and who is in may read, and nothing else.
func TestTheRulesHoldForPeopleOfARunningServer(t *testing.T) {
	t.Parallel()
	s := newSignedInWorld(t)
	s.put("policy.yaml", rolesOfTest+hooksOfTest)
	said := s.serving(func(address string) {
		s.address = address
		s.arrive()
		own := s.ownAgent()
		for _, step := range []struct {
			name, policy string
			// What ann's browser gets that reads and that makes a token, bob who signs in, a program that asks for consent
			// and one that refreshes, ann's agent that lists and that proposes, the command line that proposes.
			reads, makes, signsIn, consents, refreshes int
			lists, proposes, terminal                  fault.Code
			// What the operator's own token gets that proposes by REST, and ann's browser that resumes what is
			// not paused, promotes what was not proposed and merges what is not there.
			person                    fault.Code
			resumes, promotes, merges int
			// What the command line gets that runs a session, ann's browser that starts one, and who calls a hook.
			runs          fault.Code
			starts, hooks int
		}{
			{"as it was", rolesOfTest + hooksOfTest, 200, 201, 200, 303, 200, "", "", "", "", 404, 404, 404, "", 202, 200},
			{"narrowed", rolesOfTest + hooksOfTest + "repositories: [demo/other]\n", 200, 201, 200, 303, 200,
				fault.RepoNotAllowed, fault.RepoNotAllowed, fault.RepoNotAllowed, fault.RepoNotAllowed, 404, 404, 403, "", 202,
				200},
			{"broken", rolesOfTest + hooksOfTest + "nonsense: true\n", 200, 403, 403, 403, 200, "", fault.ReadOnly,
				fault.ReadOnly, fault.ReadOnly, 403, 403, 403, fault.Misconfigured, 403, 503},
			{"mended", rolesOfTest + hooksOfTest, 200, 201, 200, 303, 200, "", "", "", "", 404, 404, 404, "", 202, 200},
			{"a lower role", strings.Replace(rolesOfTest, "operator:", "reviewer:", 1), 200, 403, 200, 403, 400,
				fault.Unauthenticated, fault.Unauthenticated, "", "", 403, 404, 404, "", 403, 401},
			{"mended again", rolesOfTest + hooksOfTest, 200, 201, 200, 303, 200, "", "", "", "", 404, 404, 404, "", 202,
				200},
			{"no role", strings.Replace(rolesOfTest, "user: ann", "user: eve", 1), 401, 401, 200, 401, 400,
				fault.Unauthenticated, fault.Unauthenticated, "", "", 401, 401, 401, "", 401, 401},
		} {
			s.put("policy.yaml", step.policy)
			// What the agent and the browser get tells that the rules of this step are seen: it differs from the step before.
			s.becomes(step.name, func() bool {
				return s.reading() == step.reads && s.making() == step.makes && s.listsAs() == step.lists
			})
			once := http.StatusSeeOther // leads on
			if step.signsIn == http.StatusForbidden {
				once = step.signsIn
			}
			read := fault.Code("") // what who reads gets that is not ann
			if step.person == fault.RepoNotAllowed {
				read = step.person
			}
			s.becomes(step.name+", for a process of its own", func() bool { return own.calls("list_prs", homeOfTest) == read })
			for what, c := range map[string]struct{ got, want any }{
				"a browser that reads": {s.reading(), step.reads}, "a browser that makes a token": {s.making(), step.makes},
				"somebody who signs in":    {s.signingIn("bob"), step.signsIn},
				"who signs in by a token":  {s.signsInByToken(), step.signsIn},
				"a one-time address":       {s.signsInOnce(), once},
				"a program that asks":      {s.consent(), step.consents},
				"a program that refreshes": {s.refreshing(), step.refreshes}, "an agent that lists": {s.listsAs(), step.lists},
				"an agent that proposes":               {s.proposesAs(), step.proposes},
				"an agent at the socket that reads":    {s.socketCalls("list_prs", homeOfTest), step.lists},
				"an agent at the socket":               {s.socketCalls("create_pr", newFile()), step.proposes},
				"the command line":                     {s.terminal(), step.terminal},
				"a person by REST":                     {s.proposesByREST(), step.person},
				"a person who looks by REST":           {s.looks(), read},
				"a person who revises by REST":         {s.revises(true), step.person},
				"a person who replies by REST":         {s.revises(false), step.person},
				"an agent of the older era that lists": {s.olderCalls("list_prs", homeOfTest), step.lists},
				"an agent of the older era":            {s.olderCalls("create_pr", newFile()), step.proposes},
				"a process of its own":                 {own.calls("create_pr", newFile()), step.terminal},
				"the command line that runs a session": {s.runs(), step.runs},
				"a browser that starts a session":      {s.starts(), step.starts},
				"a hook":                               {s.hooks(), step.hooks},
				"a program that gives up a token":      {s.revokes(), http.StatusOK},
				"a browser that resumes":               {s.resuming(), step.resumes},
				"a browser that stops a session":       {s.acts("/api/v1/sessions/none/stop", ""), step.resumes},
				"a browser that promotes":              {s.acts("/api/v1/proposals/none/promote", "{}"), step.promotes},
				"a browser that merges": {s.sends("/pulls/local/demo/home/999/review", "action=merge"),
					step.merges},
				"a browser that sends a form": {s.sends("/resume", "repo=demo/home"), step.resumes},
				"a delivery": {s.delivers(address, "a-secret-of-the-webhooks") < http.StatusBadRequest,
					true},
			} {
				if c.got != c.want {
					t.Errorf("%s: %s gets %v, want %v", step.name, what, c.got, c.want)
				}
			}
		}
	})
	for text, want := range map[string]int{"rules have changed": 4, "rules cannot be read: nothing": 1,
		"rules can be read again": 1} {
		if got := strings.Count(said(), text); got != want {
			t.Errorf("the log says %d times that the %s:\n%s", got, text, said())
		}
	}
}

// A server that starts with a policy that it cannot read knows no roles. It lets nobody in by them, and ends no login.
func TestAServerThatStartsWithABrokenPolicyKnowsNoRoles(t *testing.T) {
	t.Parallel()
	s := newSignedInWorld(t)
	s.serving(func(address string) {
		s.address = address
		s.arrive()
	})
	s.put("policy.yaml", rolesOfTest+"nonsense: true\n")
	s.serving(func(address string) {
		s.address = address
		if got := s.reading(); got != http.StatusForbidden {
			t.Errorf("a browser that was signed in gets %d", got)
		}
		if got := s.signingIn("ann"); got != http.StatusForbidden {
			t.Errorf("somebody who signs in gets %d", got)
		}
		s.put("policy.yaml", rolesOfTest)
		s.becomes("mended", func() bool { return s.reading() == http.StatusOK })
	})
}

// The secret by which the provider knows the server is the present one of its file, for each sign-in. An empty file
// takes nothing away.
func TestTheSecretOfTheSignInIsThatOfNow(t *testing.T) {
	t.Parallel()
	s := newSignedInWorld(t)
	delete(s.env, "CLAUDEOPS_SIGN_IN_COMPANY_CLIENT_SECRET")
	s.env["CLAUDEOPS_SIGN_IN_COMPANY_CLIENT_SECRET_FILE"] = filepath.Join(s.dir, "client")
	s.put("client", s.provider.Secret+"\n")
	s.serving(func(address string) {
		s.address = address
		if got := s.signingIn("ann"); got != http.StatusOK {
			t.Fatalf("with the secret of the start: %d", got)
		}
		s.put("client", "another-client-secret-of-tests")
		s.becomes("the provider does not know the server", func() bool { return s.signingIn("ann") != http.StatusOK })
		s.put("client", s.provider.Secret)
		s.becomes("it knows it again", func() bool { return s.signingIn("ann") == http.StatusOK })
		s.put("client", "")
		s.becomes("the health says that the file is empty", func() bool {
			return strings.Contains(s.health(address), "CLIENT_SECRET_FILE")
		})
		if got := s.signingIn("ann"); got != http.StatusOK {
			t.Errorf("with an empty file: %d", got)
		}
	})
}

// arrive signs ann in, makes her agent's token and lets her program in.
func (s *signedInWorld) arrive() {
	s.Helper()
	status, cookie := s.signIn("ann")
	if status != http.StatusOK || cookie == "" {
		s.Fatalf("signing in: %d", status)
	}
	s.login = cookie
	status, body := s.ask(http.MethodPost, s.address+"/api/v1/tokens", `{"name":"laptop","agent":true,"max_tier":2}`,
		s.as("application/json"))
	s.agent = decode[struct{ Token string }](s, body).Token
	if status != http.StatusCreated {
		s.Fatalf("%d %s", status, body)
	}
	status, body = s.ask(http.MethodPost, s.address+"/oauth/register",
		`{"client_name":"A program","redirect_uris":["http://127.0.0.1/back"]}`,
		http.Header{"Content-Type": {"application/json"}})
	s.client = decode[struct {
		ID string `json:"client_id"`
	}](s, body).ID
	if status != http.StatusCreated {
		s.Fatalf("%d %s", status, body)
	}
	code := s.allowed()
	if s.exchange(url.Values{"grant_type": {"authorization_code"}, "code": {code},
		"redirect_uri": {"http://127.0.0.1/back"}, "code_verifier": {strings.Repeat("v", 43)}}) != http.StatusOK {
		s.Fatal("the program got no token")
	}
}

// as are the headers of a request of ann's browser.
func (s *signedInWorld) as(contentType string) http.Header {
	h := http.Header{"Cookie": {s.login}, "Sec-Fetch-Site": {"same-origin"}}
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	return h
}

// signIn signs a person in by the provider, and returns the status and the cookie of the login.
func (s *signedInWorld) signIn(name string) (status int, cookie string) {
	s.Helper()
	return s.signInAs(fakeoidc.Person{Subject: name, User: name})
}

func (s *signedInWorld) signInAs(who fakeoidc.Person) (status int, cookie string) {
	s.Helper()
	s.provider.SignedIn(who)
	get := func(address, kept string) responseHead {
		headers := http.Header{}
		if kept != "" {
			headers.Set("Cookie", kept)
		}
		answer, _ := s.exchangeOf(http.MethodGet, address, "", headers)
		return answer
	}
	began := get(s.address+"/sign-in/with/company", "")
	if began.StatusCode != http.StatusSeeOther || len(began.Cookies()) != 1 {
		return began.StatusCode, ""
	}
	kept := began.Cookies()[0]
	back, err := url.Parse(get(began.Header.Get("Location"), "").Header.Get("Location"))
	must.Do(s, err)
	arrived, text := s.exchangeOf(http.MethodGet, s.address+back.RequestURI(), "",
		http.Header{"Cookie": {kept.Name + "=" + kept.Value}})
	if strings.Contains(text, "nonsense") {
		s.Errorf("a person without a role reads what is wrong with the policy: %s", text)
	}
	for _, c := range arrived.Cookies() {
		if c.Name == "claudeops_session" {
			cookie = c.Name + "=" + c.Value
		}
	}
	return arrived.StatusCode, cookie
}

func (s *signedInWorld) signingIn(name string) int {
	status, _ := s.signIn(name)
	return status
}

func (s *signedInWorld) reading() int {
	return s.status(http.MethodGet, s.address+"/api/v1/proposals", "", s.as(""))
}

func (s *signedInWorld) making() int {
	return s.status(http.MethodPost, s.address+"/api/v1/tokens", fmt.Sprintf(`{"name":"t%d","scopes":["read"]}`,
		time.Now().UnixNano()), s.as("application/json"))
}

// resuming is what ann's browser gets that ends the pauses of a repository, of which there are none.
func (s *signedInWorld) resuming() int {
	return s.status(http.MethodPost, s.address+"/api/v1/resume", `{"repo":"demo/home"}`, s.as("application/json"))
}

func (s *signedInWorld) acts(path, body string) int {
	return s.status(http.MethodPost, s.address+path, body, s.as("application/json"))
}

func (s *signedInWorld) sends(path, form string) int {
	return s.status(http.MethodPost, s.address+path, form, s.as("application/x-www-form-urlencoded"))
}

// proposesByREST is what a person's own token gets.
func (s *signedInWorld) proposesByREST() fault.Code {
	code, _ := s.proposes(s.address, "")
	return code
}

// wanted is what the program sends the browser with.
func (s *signedInWorld) wanted() url.Values {
	sum := sha256.Sum256([]byte(strings.Repeat("v", 43)))
	return url.Values{"response_type": {"code"}, "client_id": {s.client}, "redirect_uri": {"http://127.0.0.1/back"},
		"state": {"x"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}}
}

// consent has ann let the program in, and returns the status of the answer to the form.
func (s *signedInWorld) consent() int {
	status, _ := s.allow()
	return status
}

// allowed is the code that the program gets.
func (s *signedInWorld) allowed() string {
	s.Helper()
	status, location := s.allow()
	back, err := url.Parse(location)
	if err != nil || status != http.StatusSeeOther || back.Query().Get("code") == "" {
		s.Fatalf("the program is not let in: %d %s", status, location)
	}
	return back.Query().Get("code")
}

func (s *signedInWorld) allow() (status int, location string) {
	s.Helper()
	headers := s.as("")
	headers.Set("Accept", "application/json") // refusals are then no pages
	asked, page := s.exchangeOf(http.MethodGet, s.address+"/oauth/authorize?"+s.wanted().Encode(), "", headers)
	if asked.StatusCode != http.StatusOK {
		return asked.StatusCode, ""
	}
	form := url.Values{"tier": {"2"}}
	for _, input := range regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`).FindAllStringSubmatch(
		page, -1) {
		form.Set(input[1], html.UnescapeString(input[2]))
	}
	headers = s.as("application/x-www-form-urlencoded")
	for _, c := range asked.Cookies() {
		headers.Set("Cookie", headers.Get("Cookie")+"; "+c.Name+"="+c.Value)
	}
	answer, _ := s.exchangeOf(http.MethodPost, s.address+"/oauth/authorize/allow", form.Encode(), headers)
	return answer.StatusCode, answer.Header.Get("Location")
}

func (s *signedInWorld) refreshing() int {
	return s.exchange(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {s.refresh}})
}

// exchange asks the token endpoint, and keeps the refresh token that it gives.
func (s *signedInWorld) exchange(form url.Values) int {
	s.Helper()
	form.Set("client_id", s.client)
	status, body := s.ask(http.MethodPost, s.address+"/oauth/token", form.Encode(),
		http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
	var keys struct {
		Refresh string `json:"refresh_token"`
	}
	if json.Unmarshal([]byte(body), &keys) == nil && keys.Refresh != "" {
		s.refresh = keys.Refresh
	}
	return status
}

// newFile is a proposal of a new file to demo/home, and homeOfTest that repository.
func newFile() map[string]any {
	return map[string]any{"repo_owner": "demo", "repo_name": "home", "title": "New", "body": "Why: x",
		"files": []map[string]any{{"path": fmt.Sprintf("checks/n%d.md", time.Now().UnixNano()), "action": "create",
			"content": "# New\n"}}}
}

var homeOfTest = map[string]any{"repo_owner": "demo", "repo_name": "home"}

// proposesAs and listsAs are what ann's agent gets; unauthenticated if it is not let in.
func (s *signedInWorld) proposesAs() fault.Code { return s.agentCalls("create_pr", newFile()) }

func (s *signedInWorld) listsAs() fault.Code { return s.agentCalls("list_prs", homeOfTest) }

// shortFolder makes a folder whose path leaves room for the name of a socket.
func shortFolder(t *testing.T) string {
	t.Helper()
	dir := must.Get(os.MkdirTemp("", "sock"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// socketCalls is what ann's agent gets at the server's socket.
func (s *signedInWorld) socketCalls(tool string, arguments any) fault.Code {
	s.Helper()
	conn, err := stdioproxy.Dial(s.Context(), "unix:"+s.socket, stdioproxy.Hello{Ticket: s.agent})
	if refused := (*stdioproxy.RefusedError)(nil); errors.As(err, &refused) {
		return fault.Code(refused.Code)
	}
	must.Do(s, err)
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "%s\n%s\n%s\n", greetingOfTest, initializedOfTest,
		toolCall(tool, arguments)); err != nil {
		s.Fatal(err)
	}
	for answers := json.NewDecoder(conn); ; {
		var answer toolAnswer
		must.Do(s, answers.Decode(&answer))
		if answer.ID == 2 {
			return answer.code()
		}
	}
}

func (s *signedInWorld) agentCalls(tool string, arguments any) fault.Code {
	s.Helper()
	return decode[toolAnswer](s, string(s.rawCall(s.address, s.agent, "t", tool, arguments))).code()
}

// terminal proposes at the command line.
func (s *signedInWorld) terminal() fault.Code {
	s.Helper()
	out, exit := s.command(lookupIn(s.env), "pr", "create", "--repo", "demo/home", "--title", "New", "--body", "Why: x",
		"--create", fmt.Sprintf("checks/t%d.md=%s/short.md", time.Now().UnixNano(), s.dir), "--json")
	if exit == 0 {
		return ""
	}
	return decode[struct{ Code fault.Code }](s, out).Code
}
