package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/proposals/review"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakeoidc"
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
	w.build()
	return &eyes{world: w, provider: provider, reviewer: r}
}

// browser is one in which a person is signed in, who may do everything.
func (e *eyes) browser(subject, user string) edit {
	e.Helper()
	return cookies(e.signInAs(e.provider, fakeoidc.Person{Subject: subject, User: user, Groups: []string{"operators"}}))
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
	if m, _ := c.answer(c.send(body, headers)); m.Result.IsError || m.Result.Structured["number"] != 1.0 {
		e.Fatalf("%+v", m)
	}
}

// proposeAs proposes as an actor whose door is not one of this package.
func (e *eyes) proposeAs(who record.Actor) {
	e.Helper()
	_, err := prflow.New(e.flow).Create(context.Background(), operation.Caller{Actor: who}, []byte(request(nil)))
	if err != nil {
		e.Fatal(err)
	}
}

// grant is an access token that a program got by the consent of somebody.
func (e *eyes) grant(by edit) string {
	e.Helper()
	p := e.register()
	access, _ := p.keys(p.exchange(p.code(by), nil))
	return access
}

// decide is a person's decision on the page, and returns its code.
func (e *eyes) decide(verb string, by edit) fault.Code {
	e.Helper()
	a := e.do("POST", "/pulls/fake/joe/infra/1/review", url.Values{"action": {verb}, "head": {""}}.Encode(), browser,
		set("Content-Type", formType), by)
	switch {
	case a.StatusCode < 400:
		return ""
	case a.StatusCode == http.StatusForbidden && strings.Contains(string(a.body), "two persons"):
		return fault.Forbidden
	}
	e.Fatalf("%s: %d %s", verb, a.StatusCode, a.body)
	return ""
}

// decideAs is the decision of somebody at the command line.
func (e *eyes) decideAs(verb string, who record.Actor) fault.Code {
	_, err := e.reviewer.Do(context.Background(), review.Request{Provider: "fake", Owner: "joe", Name: "infra", Number: 1,
		Verb: verb, By: operation.Caller{Actor: who}})
	return fault.CodeOf(err)
}

// TestNobodyIsTwoPersons lists who started a pull request, and who tries to decide about it.
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
	type decision = func(verb string) fault.Code
	by := func(e *eyes, who edit) decision { return func(verb string) fault.Code { return e.decide(verb, who) } }
	at := func(e *eyes, who record.Actor) decision {
		return func(verb string) fault.Code { return e.decideAs(verb, who) }
	}
	for name, start := range map[string]func(e *eyes, ann edit) decision{
		"own token, then themselves": func(e *eyes, ann edit) decision {
			e.propose(bearer(e.mint(ann, everyScope)))
			return by(e, ann)
		},
		"own token, then another own token": func(e *eyes, ann edit) decision {
			e.propose(bearer(e.mint(ann, everyScope)))
			return by(e, bearer(e.mint(ann, everyScope)))
		},
		"own agent's token": func(e *eyes, ann edit) decision {
			e.proposeAsAgent(e.mint(ann, anAgent))
			return by(e, ann)
		},
		"own grant": func(e *eyes, ann edit) decision {
			e.proposeAsAgent(e.grant(ann))
			return by(e, ann)
		},
		"agent's token that one's own token made": func(e *eyes, ann edit) decision {
			e.proposeAsAgent(e.mint(bearer(e.mint(ann, everyScope)), anAgent))
			return by(e, ann)
		},
		"a token that a token made, then that": func(e *eyes, _ edit) decision {
			first := bearer(e.token("first", 3, "propose", "review", "read", "operate"))
			e.propose(bearer(e.mint(first, everyScope)))
			return by(e, first)
		},
		"a token, then one that it made": func(e *eyes, _ edit) decision {
			first := bearer(e.token("first", 3, "propose", "review", "read", "operate"))
			e.propose(first)
			return by(e, bearer(e.mint(first, everyScope)))
		},
		"an agent's token and a token of the same maker": func(e *eyes, _ edit) decision {
			first := bearer(e.token("first", 3, "propose", "review", "read", "operate"))
			e.proposeAsAgent(e.mint(first, anAgent))
			return by(e, bearer(e.mint(first, everyScope)))
		},
		"a grant that a token allowed, then the token": func(e *eyes, _ edit) decision {
			secret := e.token("first", 3, "propose", "review", "read", "operate")
			e.proposeAsAgent(e.grant(with(e.signIn(secret))))
			return by(e, bearer(secret))
		},
		"a dry run that somebody else opened": func(e *eyes, ann edit) decision {
			e.flow.Authority.DryRun = true
			e.build()
			e.want(e.do("POST", "/api/v1/prs", request(nil), bearer(e.mint(ann, everyScope))), 200, "")
			id := e.attempts()[0].RequestID
			e.flow.Authority.DryRun = false
			e.build()
			if a := e.do("POST", "/api/v1/proposals/"+id+"/promote", "", e.browser("8", "bob")); a.StatusCode != 201 {
				e.Fatalf("%d %s", a.StatusCode, a.body)
			}
			return by(e, ann)
		},
		"own session": func(e *eyes, ann edit) decision {
			e.proposeAs(session(record.Actor{Door: record.DoorWeb, Person: person(e, "7")}))
			return by(e, ann)
		},
		"a hand-over of the own session": func(e *eyes, ann edit) decision {
			e.proposeAs(session(session(record.Actor{Door: record.DoorWeb, Person: person(e, "7")})))
			return by(e, ann)
		},
		"renamed meanwhile": func(e *eyes, ann edit) decision {
			e.propose(bearer(e.mint(ann, everyScope)))
			return by(e, e.browser("7", "annie"))
		},
		"the command line, twice": func(e *eyes, _ edit) decision {
			e.proposeAs(joe)
			return at(e, joe)
		},
		"the command line, then with sudo": func(e *eyes, _ edit) decision {
			e.proposeAs(joe)
			return at(e, root)
		},
		"themselves, then the command line": func(e *eyes, ann edit) decision {
			e.propose(bearer(e.mint(ann, everyScope)))
			return at(e, joe)
		},
		"themselves, then with their token at the command line": func(e *eyes, ann edit) decision {
			secret := e.mint(ann, everyScope)
			e.propose(bearer(secret))
			who, err := e.web.Access.Bearer(t.Context(), secret)
			if err != nil {
				e.Fatal(err)
			}
			return at(e, who.Actor.At(record.DoorCLI))
		},
		"an agent over stdio, then the command line": func(e *eyes, _ edit) decision {
			e.proposeAs(joe.At(record.DoorMCP))
			return at(e, joe)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEyes(t)
			decide := start(e, e.browser("7", "ann"))
			for _, verb := range []string{"approve", "merge"} {
				if code := decide(verb); code != fault.Forbidden {
					t.Errorf("%s: %q", verb, code)
				}
				if row := e.attempts()[0]; row.Action != "review."+verb || row.Outcome != record.OutcomeRefused ||
					row.Actor.IsZero() {
					t.Errorf("%s: %+v", verb, row.Attempt)
				}
			}
			if len(e.reviewer.done) > 0 {
				t.Errorf("done: %+v", e.reviewer.done)
			}
			if code := e.decide("approve", e.browser("9", "eve")); code != "" {
				t.Errorf("somebody else: %s", code)
			}
		})
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
	e.decide("approve", e.browser("8", "bob"))
	if row := e.attempts()[0]; row.Action != "review.approve" || row.Actor.Person == nil ||
		row.Actor.Person.Subject != "8" {
		t.Errorf("the approval has %+v", row.Actor)
	}
}
