package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/proposals/review"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakeoidc"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// hand is what somebody shows who decides about a pull request.
type hand struct {
	name          string
	cookie, token string
	terminal      bool // they sit at the command line, where a token may be shown
}

// passingAt is a door of a running server, or of its machine, by which a change passes.
type passingAt struct {
	name string
	try  func(s *signedInWorld, number int, by hand) (code fault.Code, offered bool)
}

// passingDoors are derived from the verbs of the command line and the page, and from every operation of the program. A
// new one fails the test until this function knows it.
func passingDoors(t *testing.T) (out []passingAt) {
	t.Helper()
	verbs := []string{}
	for _, verb := range review.Verbs() {
		if verb.Passes {
			verbs = append(verbs, verb.Name)
			out = append(out, pageDoor(verb.Name), terminalDoor(verb.Name))
		}
	}
	rest := []string{}
	for _, o := range append(operation.List(new(app.App).Toolsets()...), app.Acts(nil)...) {
		switch {
		case o.Needs.Scope != access.Review:
		case slices.Contains([]string{"close_pr", "lift_cooldown", prflow.OpPromote}, o.Name): // let nothing pass
		case o.Name == "review_pr":
			rest, out = append(rest, "approve"), append(out, restDoor(o, "approve", map[string]any{"event": "approve"}))
		case o.Name == "merge_pr":
			rest, out = append(rest, "merge"), append(out, restDoor(o, "merge", map[string]any{}))
		default:
			t.Fatalf("the operation %s needs the scope review: does a change pass by it?", o.Name)
		}
	}
	if !slices.Equal(rest, verbs) {
		t.Fatalf("REST has %v, and the command line %v", rest, verbs)
	}
	return out
}

func headersOf(by hand, contentType string) http.Header {
	h := http.Header{"Sec-Fetch-Site": {"same-origin"}, "Content-Type": {contentType}}
	if by.cookie != "" {
		h.Set("Cookie", by.cookie)
	} else {
		h.Set("Authorization", "Bearer "+by.token)
	}
	return h
}

func refusalIn(s *signedInWorld, status int, text string) fault.Code {
	s.Helper()
	if status < http.StatusBadRequest {
		return ""
	}
	if !strings.Contains(text, "two persons") {
		s.Errorf("refused for something else: %d %s", status, text)
	}
	return fault.Forbidden
}

func pageDoor(verb string) passingAt {
	return passingAt{"page, " + verb, func(s *signedInWorld, number int, by hand) (fault.Code, bool) {
		if by.cookie == "" && by.token == "" {
			return "", false
		}
		status, text := s.ask(http.MethodPost, fmt.Sprintf("%s/pulls/local/demo/home/%d/review", s.address, number),
			url.Values{"action": {verb}, "force": {"yes"}}.Encode(), headersOf(by, "application/x-www-form-urlencoded"))
		return refusalIn(s, status, text), true
	}}
}

func restDoor(o operation.Operation, verb string, body map[string]any) passingAt {
	return passingAt{"REST, " + verb, func(s *signedInWorld, number int, by hand) (fault.Code, bool) {
		if by.cookie == "" && by.token == "" {
			return "", false
		}
		body["repo_owner"], body["repo_name"], body["provider"] = "demo", "home", "local"
		raw := must.Get(json.Marshal(body))(s)
		path := strings.Replace(o.Route.Path, "{number}", fmt.Sprint(number), 1)
		status, text := s.ask(o.Route.Method, s.address+"/api/v1"+path, string(raw), headersOf(by, "application/json"))
		return refusalIn(s, status, text), true
	}}
}

func terminalDoor(verb string) passingAt {
	return passingAt{"command line, " + verb, func(s *signedInWorld, number int, by hand) (fault.Code, bool) {
		if !by.terminal {
			return "", false
		}
		env := map[string]string{"CLAUDEOPS_TOKEN": by.token}
		for name, value := range s.env {
			env[name] = value
		}
		out, exit := s.command(lookupIn(env), "review", verb, fmt.Sprint(number), "--repo", "demo/home", "--json")
		status := http.StatusOK
		if exit != 0 {
			status = http.StatusForbidden
		}
		return refusalIn(s, status, out), true
	}}
}

// TestNobodyApprovesWhatTheyHaveStartedAtAnyDoor has ann propose in each of her ways, at a running server, and decide
// in each of hers, at every door. Internal/web has the ways of sessions.
func TestNobodyApprovesWhatTheyHaveStartedAtAnyDoor(t *testing.T) {
	t.Parallel()
	s := newSignedInWorld(t)
	s.put("policy.yaml", strings.Replace(rolesOfTest, "viewer:", "reviewer:", 1)+"review: {four_eyes: true}\n")
	s.serving(func(address string) {
		s.address = address
		s.arrive()
		first := s.mints(hand{cookie: s.login}, `"scopes":["propose","review","read","operate"]`)
		minted := s.mints(hand{token: first}, `"scopes":["propose","review","read","operate"]`)
		agent := s.mints(hand{token: minted}, `"agent":true`)
		numbers := map[string]int{}
		for name, secret := range map[string]string{"own token": first, "a token that that made": minted} {
			numbers[name] = s.opens(name, func(body map[string]any) string {
				raw, _ := json.Marshal(body)
				_, text := s.ask(http.MethodPost, address+"/api/v1/prs", string(raw), headersOf(hand{token: secret},
					"application/json"))
				return text
			})
		}
		for name, secret := range map[string]string{"own agent": s.agent, "own grant": s.granted(),
			"an agent's token that a token's token made": agent} {
			numbers[name] = s.opens(name, func(body map[string]any) string {
				return string(s.rawCall(address, secret, "t", "create_pr", body))
			})
		}
		renamed := s.renames("ann", "annabel")
		before := s.state()
		hands := []hand{{name: "her browser", cookie: s.login}, {name: "her token", token: first, terminal: true},
			{name: "the token that that made", token: minted, terminal: true}, {name: "the command line", terminal: true},
			{name: "her browser after a new name", cookie: renamed}}
		tried := 0 // with what differs in the audit: the new name is the same person's
		for way, number := range numbers {
			for _, by := range hands {
				for _, door := range passingDoors(t) {
					code, offered := door.try(s, number, by)
					if !offered {
						continue
					}
					if by.cookie != renamed {
						tried++
					}
					if code != fault.Forbidden {
						t.Errorf("%s, then %s, %s: %q", way, by.name, door.name, code)
					}
				}
			}
		}
		if after := s.state(); after != before {
			t.Errorf("something was written:\n%s\nwas\n%s", after, before)
		}
		rows := map[string]bool{}
		for _, row := range s.rowsOf("") {
			if row["outcome"] == "refused" && row["code"] == "forbidden" {
				rows[fmt.Sprint(row["door"], row["action"], row["pr_number"], row["caller"])] = true
			}
		}
		if len(rows) < tried {
			t.Errorf("%d refusals have %d rows", tried, len(rows))
		}
		s.secondPersonDecides(numbers)
	})
}

// secondPersonDecides has bob let each of them pass, at one door each.
func (s *signedInWorld) secondPersonDecides(numbers map[string]int) {
	s.Helper()
	bob := hand{name: "bob", cookie: s.viewer(), terminal: true}
	left := passingDoors(s.T)
	for way, number := range numbers {
		door := left[0]
		if strings.HasPrefix(door.name, "command line") { // bob has no token; see TestNobodyIsTwoPersons
			door = left[len(left)-1]
		}
		if code, _ := door.try(s, number, bob); code != "" {
			s.Errorf("somebody else, %s, %s: %q", way, door.name, code)
		}
		if left = left[1:]; len(left) == 0 {
			left = passingDoors(s.T)
		}
	}
}

// mints has somebody make a token.
func (s *signedInWorld) mints(by hand, members string) string {
	s.Helper()
	status, text := s.ask(http.MethodPost, s.address+"/api/v1/tokens", fmt.Sprintf(`{"name":"m%s","max_tier":2,%s}`,
		sumOfTest(by.cookie + by.token + members)[:12], members), headersOf(by, "application/json"))
	if status != http.StatusCreated {
		s.Fatalf("%d %s", status, text)
	}
	return decode[struct{ Token string }](s, text).Token
}

// granted is an access token of ann's program.
func (s *signedInWorld) granted() string {
	s.Helper()
	_, text := s.ask(http.MethodPost, s.address+"/oauth/token", tokenForm(s.client, s.refresh), formHeaders())
	keys := decode[struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}](s, text)
	if keys.Access == "" {
		s.Fatal(text)
	}
	s.refresh = keys.Refresh
	return keys.Access
}

// opens has a pull request opened, and returns its number.
func (s *signedInWorld) opens(way string, propose func(body map[string]any) string) int {
	s.Helper()
	body := newFile()
	body["title"] = "By " + way
	var byREST struct{ Number int }
	var byTool toolAnswer
	text := propose(body)
	err := errors.Join(json.Unmarshal([]byte(text), &byREST), json.Unmarshal([]byte(text), &byTool))
	number := byREST.Number + byTool.Result.Structured.Number
	if err != nil || number == 0 {
		s.Fatalf("%s: %s", way, text)
	}
	return number
}

// state is all that a decision may change.
func (s *signedInWorld) state() string {
	s.Helper()
	refs, err := exec.CommandContext(s.Context(), "git", "--git-dir", filepath.Join(s.dir, "root/demo/home.git"),
		"for-each-ref").Output()
	must.Do(s, err)
	var pulls struct{ Items []map[string]any }
	s.read(&pulls, "review", "list", "--state", "all", "--repo", "demo/home")
	out := string(refs)
	for _, pr := range pulls.Items {
		var shown struct {
			State   string
			Reviews []any
		}
		s.read(&shown, "review", "show", fmt.Sprint(pr["number"]), "--repo", "demo/home")
		out += fmt.Sprint(pr["number"], " ", shown.State, " ", shown.Reviews, "\n")
	}
	return out
}

// renames has a person sign in who is called otherwise at the provider now, and returns the cookie.
func (s *signedInWorld) renames(subject, name string) string {
	s.Helper()
	s.put("policy.yaml", strings.Replace(strings.Replace(rolesOfTest, "viewer:", "reviewer:", 1), "user: ann}",
		"user: ann}, {provider: company, user: "+name+"}", 1)+"review: {four_eyes: true}\n")
	cookie := ""
	s.becomes("a role for the new name", func() bool {
		status, got := s.signInAs(fakeoidc.Person{Subject: subject, User: name})
		cookie = got
		return status == http.StatusOK
	})
	return cookie
}

// A line of tokens, each made with the one before, ends at the command line as it does at the other ways in.
func TestALineOfTokensEndsAtTheCommandLine(t *testing.T) {
	t.Parallel()
	w := newPeopleWorld(t, nil)
	as := w.asAnn(w.env) // whose token is the first
	for i := 1; i < record.MaxDescent; i++ {
		out, exit := w.command(as, "token", "create", "--name", fmt.Sprint("token-", i), "--scopes", "read,propose,operate",
			"--json")
		if exit != 0 {
			t.Fatalf("%d %s", exit, out)
		}
		env := maps.Clone(w.env)
		env["CLAUDEOPS_TOKEN"] = decode[struct{ Token string }](t, out).Token
		as = lookupIn(env)
	}
	for _, more := range []string{"--scopes=read", "--agent"} {
		out, exit := w.command(as, "token", "create", "--name", "next", more)
		if exit != fault.Forbidden.ExitCode() || !strings.Contains(out, "use a token nearer to the first, ann") {
			t.Errorf("%s: %d %s", more, exit, out)
		}
	}
	var list struct{ Items []any }
	if w.read(&list, "token", "list"); len(list.Items) != record.MaxDescent {
		t.Errorf("there are %d tokens", len(list.Items))
	}
}
