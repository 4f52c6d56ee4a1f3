package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/proposals/review"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakeoidc"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// eyes is a world whose policy wants two persons, with people of a provider.
type eyes struct {
	*world
	provider *fakeoidc.Provider
	reviewer *reviewer
	made     int // tokens, whose names differ
}

func newEyes(t *testing.T) *eyes {
	t.Helper()
	w, provider := peopleWorld(t)
	w.flow.Authority.Policy.People.FourEyes = true
	r := &reviewer{world: w}
	w.web.Providers.Reviewer = r
	w.web.Acts = append(w.web.Acts, review.Operations{Service: r.service,
		ProviderOf: func(string, string) string { return "fake" }}.Operations()...)
	w.build()
	return &eyes{world: w, provider: provider, reviewer: r}
}

// browser is one in which a person is signed in, who may do everything.
func (e *eyes) browser(subject, user string) edit {
	e.Helper()
	return cookies(e.signInAs(e.provider, account(subject, user, "operators")))
}

// mint has somebody make a token, and returns its secret. more are further members of the request.
func (e *eyes) mint(by edit, more string) string {
	e.Helper()
	e.made++
	a := e.do("POST", "/api/v1/tokens", fmt.Sprintf(`{"name":"made-%d","max_tier":3,%s}`, e.made, more), by)
	e.want(a, 201, "")
	secret, _ := a.json["token"].(string)
	return secret
}

const (
	everyScope = `"scopes":["propose","review","read","operate"]`
	anAgent    = `"agent":true`
)

// propose proposes over REST, as somebody.
func (e *eyes) propose(by edit) {
	e.Helper()
	e.want(e.do("POST", "/api/v1/prs", request(nil), by), 201, "")
}

// proposeAsAgent proposes over MCP, with an agent's token or an access token.
func (e *eyes) proposeAsAgent(secret string) {
	e.Helper()
	c := dialed(e.TB, e.listening(nil).URL, secret)
	body, headers := modernCreatePR(1)
	c.opens(c.send(body, headers))
}

// proposeAs proposes as an actor whose door is not one of this package.
func (e *eyes) proposeAs(who record.Actor) {
	e.Helper()
	_, err := prflow.New(e.flow).Create(context.Background(), operation.Caller{Actor: who}, []byte(request(nil)))
	must.Do(e, err)
}

// grant is an access token that a program got by the consent of somebody.
func (e *eyes) grant(by edit) string {
	e.Helper()
	p := e.register()
	access, _ := p.keys(p.exchange(p.code(by), nil))
	return access
}

// decider is somebody who lets a change pass, or tries to: by HTTP, at the command line, or both.
type decider struct {
	web      edit          // nil: not by HTTP
	terminal *record.Actor // nil: not at the command line
}

// withToken is the holder of a token, who shows it over HTTP and at the command line.
func (e *eyes) withToken(secret string) decider {
	e.Helper()
	who, err := e.web.Access.Bearer(e.Context(), secret)
	must.Do(e, err)
	at := who.Actor.At(record.DoorCLI)
	return decider{bearer(secret), &at}
}

// passing is a door by which a change passes. try returns the code of the refusal.
type passing struct {
	name string
	verb string // of review.Verbs
	try  func(decider) (code fault.Code, offered bool)
}

// passes lists every door by which a change can pass. It is derived from the verbs, the operations and the pages of the
// product: a new one fails here until this function knows it.
func (e *eyes) passes() (out []passing) {
	e.Helper()
	for _, verb := range review.Verbs() {
		if verb.Passes {
			out = append(out, e.atTerminal(verb.Name), e.onPage(verb.Name))
		}
	}
	for _, o := range operation.List(operation.Toolset{Operations: e.web.Acts}, e.web.Toolsets.Operations[0]) {
		switch {
		case o.Needs.Scope != access.Review:
		case o.Name == "review_pr":
			out = append(out, e.byREST(o, "approve", `"event":"approve",`))
		case o.Name == "merge_pr":
			out = append(out, e.byREST(o, "merge", ""))
		case slices.Contains([]string{"close_pr", "lift_cooldown", prflow.OpPromote}, o.Name): // let nothing pass
		default:
			e.Fatalf("the operation %s needs the scope review: does a change pass by it?", o.Name)
		}
	}
	table, err := os.ReadFile(filepath.Join("testdata", "roles.txt"))
	must.Do(e, err)
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		page := f[0] == "POST" && f[2] == string(access.Review) && !strings.HasPrefix(f[1], "/api/")
		if page && f[1] != "/pulls/{provider}/{owner}/{repo}/{number}/review" && f[1] != "/proposals/{id}/promote" {
			e.Fatalf("the page %s needs the scope review: does a change pass by it?", f[1])
		}
	}
	return out
}

func (e *eyes) onPage(verb string) passing {
	return passing{"page, " + verb, verb, func(who decider) (fault.Code, bool) {
		if who.web == nil {
			return "", false
		}
		form := url.Values{"action": {verb}, "head": {""}, "force": {"yes"}}
		a := e.do("POST", "/pulls/fake/joe/infra/1/review", form.Encode(), browser, set("Content-Type", formType), who.web)
		switch {
		case a.StatusCode < 400:
			return "", true
		case a.StatusCode == http.StatusForbidden && strings.Contains(string(a.body), "two persons"):
			return fault.Forbidden, true
		}
		e.Fatalf("%s: %d %s", verb, a.StatusCode, a.body)
		return "", true
	}}
}

func (e *eyes) byREST(o operation.Operation, verb, members string) passing {
	return passing{"REST, " + verb, verb, func(who decider) (fault.Code, bool) {
		if who.web == nil {
			return "", false
		}
		a := e.do(o.Route.Method, "/api/v1"+strings.Replace(o.Route.Path, "{number}", "1", 1),
			`{`+members+`"repo_owner":"joe","repo_name":"infra"}`, who.web)
		if a.StatusCode >= 400 && !strings.Contains(string(a.body), "two persons") {
			e.Fatalf("%s: %d %s", verb, a.StatusCode, a.body)
		}
		return fault.Code(a.code()), true
	}}
}

func (e *eyes) atTerminal(verb string) passing {
	return passing{"command line, " + verb, verb, func(who decider) (fault.Code, bool) {
		if who.terminal == nil {
			return "", false
		}
		_, err := e.reviewer.Do(e.Context(), review.Request{Provider: "fake", Owner: "joe", Name: "infra", Number: 1,
			Verb: verb, By: operation.Caller{Actor: *who.terminal}})
		return fault.CodeOf(err), true
	}}
}

// TestNobodyIsTwoPersons lists who started a pull request, and who tries to let it pass, at every door.
func TestNobodyIsTwoPersons(t *testing.T) {
	joe, root := record.OSUser("1000", "joe"), record.OSUser("0", "root")
	session := func(starter record.Actor) record.Actor {
		return record.Actor{
			Door:    record.DoorMCP,
			Client:  "claude 2",
			Session: &record.ActorSession{ID: "1", Starter: &starter},
		}
	}
	person := func(e *eyes, subject string) *record.Person {
		return &record.Person{Issuer: e.provider.Issuer(), Subject: subject, Name: "gitea:ann"}
	}
	by := func(who edit) decider { return decider{web: who} }
	at := func(who record.Actor) decider { return decider{terminal: &who} }
	for name, start := range map[string]func(e *eyes, ann edit) decider{
		"own token, then themselves": func(e *eyes, ann edit) decider {
			e.propose(bearer(e.mint(ann, everyScope)))
			return by(ann)
		},
		"own token, then another own token": func(e *eyes, ann edit) decider {
			e.propose(bearer(e.mint(ann, everyScope)))
			return e.withToken(e.mint(ann, everyScope))
		},
		"own agent's token": func(e *eyes, ann edit) decider {
			e.proposeAsAgent(e.mint(ann, anAgent))
			return by(ann)
		},
		"own grant": func(e *eyes, ann edit) decider {
			e.proposeAsAgent(e.grant(ann))
			return by(ann)
		},
		"agent's token that one's own token made": func(e *eyes, ann edit) decider {
			e.proposeAsAgent(e.mint(bearer(e.mint(ann, everyScope)), anAgent))
			return by(ann)
		},
		"a token that a token made, then that": func(e *eyes, _ edit) decider {
			first := e.token("first", 3, "propose", "review", "read", "operate")
			e.propose(bearer(e.mint(bearer(first), everyScope)))
			return e.withToken(first)
		},
		"a token, then one that it made": func(e *eyes, _ edit) decider {
			first := bearer(e.token("first", 3, "propose", "review", "read", "operate"))
			e.propose(first)
			return e.withToken(e.mint(first, everyScope))
		},
		"an agent's token and a token of the same maker": func(e *eyes, _ edit) decider {
			first := bearer(e.token("first", 3, "propose", "review", "read", "operate"))
			e.proposeAsAgent(e.mint(first, anAgent))
			return e.withToken(e.mint(first, everyScope))
		},
		"a grant that a token allowed, then the token": func(e *eyes, _ edit) decider {
			secret := e.token("first", 3, "propose", "review", "read", "operate")
			e.proposeAsAgent(e.grant(with(e.signIn(secret))))
			return e.withToken(secret)
		},
		"a dry run that somebody else opened": func(e *eyes, ann edit) decider {
			e.tryAndOpen(bearer(e.mint(ann, everyScope)), e.browser("8", "bob"))
			return by(ann)
		},
		"own session": func(e *eyes, ann edit) decider {
			e.proposeAs(session(record.Actor{Door: record.DoorWeb, Person: person(e, "7")}))
			return by(ann)
		},
		"a hand-over of the own session": func(e *eyes, ann edit) decider {
			e.proposeAs(session(session(record.Actor{Door: record.DoorWeb, Person: person(e, "7")})))
			return by(ann)
		},
		"renamed meanwhile": func(e *eyes, ann edit) decider {
			e.propose(bearer(e.mint(ann, everyScope)))
			return by(e.browser("7", "annie"))
		},
		"the command line, twice": func(e *eyes, _ edit) decider {
			e.proposeAs(joe)
			return at(joe)
		},
		"the command line, then with sudo": func(e *eyes, _ edit) decider {
			e.proposeAs(joe)
			return at(root)
		},
		"themselves, then the command line": func(e *eyes, ann edit) decider {
			e.propose(bearer(e.mint(ann, everyScope)))
			return at(joe)
		},
		"their token, then that": func(e *eyes, ann edit) decider {
			secret := e.mint(ann, everyScope)
			e.propose(bearer(secret))
			return e.withToken(secret)
		},
		"the same as somebody else has proposed": func(e *eyes, ann edit) decider {
			e.propose(bearer(e.mint(e.browser("8", "bob"), everyScope)))
			if a := e.do("POST", "/api/v1/prs", request(nil), bearer(e.mint(ann, everyScope))); a.json["reused"] != true {
				e.Fatalf("%d %s", a.StatusCode, a.body)
			}
			return by(ann)
		},
		"somebody else's dry run, which they opened": func(e *eyes, ann edit) decider {
			e.tryAndOpen(bearer(e.mint(e.browser("8", "bob"), everyScope)), ann)
			return by(ann)
		},
		"a session of the schedule that read their words": func(e *eyes, _ edit) decider {
			who := session(record.Actor{Door: record.DoorPoll, System: record.SystemSchedule})
			who.Session.Read = []record.Actor{{Door: record.DoorWeb, Person: person(e, "7")}}
			e.proposeAs(who)
			return by(e.browser("7", "ann"))
		},
		"a session of a hook that read their words, then handed over": func(e *eyes, ann edit) decider {
			who := session(record.Actor{Door: record.DoorWebhook, Client: "hook alerts"})
			who.Session.Read = []record.Actor{{Door: record.DoorWeb, Person: person(e, "7")}}
			e.proposeAs(session(who))
			return e.withToken(e.mint(ann, everyScope))
		},
		"a session of the schedule, then an agent of nobody": func(e *eyes, _ edit) decider {
			e.proposeAs(session(record.Actor{Door: record.DoorPoll, System: record.SystemSchedule}))
			return at(record.Actor{Door: record.DoorCLI, Client: "somebody"})
		},
		"a session of which it is not known who started it": func(e *eyes, ann edit) decider {
			e.proposeAs(record.Actor{Door: record.DoorMCP, Session: &record.ActorSession{ID: "1"}})
			return by(ann)
		},
		"what no record is of": func(e *eyes, ann edit) decider {
			e.openUnrecorded()
			return by(ann)
		},
		"an agent over stdio, then the command line": func(e *eyes, _ edit) decider {
			e.proposeAs(joe.At(record.DoorMCP))
			return at(joe)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEyes(t)
			who, doors, offered := start(e, e.browser("7", "ann")), e.passes(), 0
			for _, door := range doors {
				code, has := door.try(who)
				if !has {
					continue
				}
				offered++
				if row := e.attempts()[0]; code != fault.Forbidden || row.Action != "review."+door.verb ||
					row.Outcome != record.OutcomeRefused || row.Actor.IsZero() {
					t.Errorf("%s: %q, %+v", door.name, code, row.Attempt)
				}
			}
			if len(e.reviewer.done) > 0 || offered == 0 {
				t.Errorf("%d doors, done: %+v", offered, e.reviewer.done)
			}
			eve := e.withToken(e.mint(e.browser("9", "eve"), everyScope))
			for _, door := range doors {
				code, _ := door.try(eve)
				if unknown := strings.Contains(name, "known") || strings.Contains(name, "no record"); (code == "") == unknown {
					t.Errorf("somebody else, %s: %q", door.name, code)
				}
			}
		})
	}
}

// tryAndOpen has one propose in a dry run, and another open that.
func (e *eyes) tryAndOpen(tries, opens edit) {
	e.Helper()
	e.flow.Authority.DryRun = true
	e.build()
	e.want(e.do("POST", "/api/v1/prs", request(nil), tries), 200, "")
	id := e.attempts()[0].RequestID
	e.flow.Authority.DryRun = false
	e.build()
	e.status(e.do("POST", "/api/v1/proposals/"+id+"/promote", "", opens), 201)
}

// openUnrecorded opens a pull request as a process does that is killed before it records that.
func (e *eyes) openUnrecorded() {
	e.Helper()
	other := newWorld(e.TB, nil)
	flow := e.flow
	flow.Ledger, flow.History, flow.Proof.Head = other.store.Ledger, other.store.History, other.store.Audit.Head
	who := operation.Caller{Actor: record.OSUser("1000", "joe").At(record.DoorMCP)}
	if _, err := prflow.New(flow).Create(e.Context(), who, []byte(request(nil))); err != nil {
		e.Fatal(err)
	}
}

// TestARowSaysWhoStandsBehindIt asks the audit alone.
func TestARowSaysWhoStandsBehindIt(t *testing.T) {
	e := newEyes(t)
	ann := e.browser("7", "ann")
	e.proposeAsAgent(e.mint(bearer(e.mint(ann, everyScope)), anAgent))
	row := e.attempts()[0]
	var line []string
	for _, n := range row.Actor.Lineage() {
		line = append(line, n.Name)
	}
	if got := strings.Join(line, " < "); row.Caller != "made-2 (tester 9)" || got != "gitea:ann < made-2 < made-1" {
		t.Errorf("%s: %s", row.Caller, got)
	}
	kept, err := e.store.History.Proposal(t.Context(), row.RequestID)
	if err != nil || len(kept.Actor.Lineage()) != 3 || kept.Caller != row.Caller {
		t.Errorf("the proposal has %+v, %v", kept.Actor, err)
	}
	e.onPage("approve").try(decider{web: e.browser("8", "bob")})
	if row := e.attempts()[0]; row.Action != "review.approve" || row.Actor.Person == nil ||
		row.Actor.Person.Subject != "8" {
		t.Errorf("the approval has %+v", row.Actor)
	}
}
