package record

import (
	"github.com/claudeops/claudeops/internal/testkit/must"
	"strings"
	"testing"
)

func token(id string, maker *Actor) *Credential {
	return &Credential{Kind: CredentialToken, ID: id, Name: "token " + id, Maker: maker}
}

func signedIn(subject, name string) Actor {
	return Actor{Door: DoorWeb, Person: &Person{Issuer: "https://git.example.com", Subject: subject, Name: name}}
}

func TestOnePersonIsNeverTwo(t *testing.T) {
	ann, renamed, bob := signedIn("7", "gitea:ann"), signedIn("7", "gitea:annie"), signedIn("8", "gitea:bob")
	namesake := signedIn("9", "gitea:ann")
	joe, jim, root := OSUser("1000", "joe"), OSUser("1001", "jim"), OSUser("0", "root")
	proxied := Actor{Door: DoorREST, Person: &Person{Issuer: IssuerProxy, Subject: "ann", Name: "proxy:ann"}}
	of := func(door Door, id string, maker Actor) Actor {
		person := maker.Person
		if !person.Vouched() {
			person = nil
		}
		return Actor{Door: door, Person: person, Credential: token(id, &maker)}
	}
	session := func(starter Actor, read ...Actor) Actor {
		return Actor{Door: DoorMCP, Session: &ActorSession{ID: "s", Starter: &starter, Read: read}, Client: "cli 1"}
	}
	minted := of(DoorREST, "b", of(DoorREST, "a", joe))
	shouted := Actor{Door: DoorREST, Person: &Person{Issuer: IssuerProxy, Subject: "ANN", Name: "proxy:ANN"}}
	schedule := Actor{Door: DoorPoll, System: SystemSchedule}
	// ann at the forge where people sign in, and at one where nobody does
	atForge := session(Actor{Door: DoorWebhook, Client: "hook fix",
		Person: &Person{Issuer: "https://git.example.com", Subject: "7", Name: "gitea:ann", Forge: true}})
	elsewhere := session(Actor{Door: DoorWebhook, Client: "hook fix",
		Person: &Person{Issuer: "https://forge.example.org", Subject: "7", Name: "gitea:ann", Forge: true}})
	for name, c := range map[string]struct {
		second, started Actor
		why             string // part of it; "" for a second person
	}{
		"themselves":                            {ann, ann, "gitea:ann stands behind"},
		"after a new name":                      {renamed, ann, "stands behind"},
		"who has taken over their name":         {namesake, ann, ""},
		"their own token":                       {of(DoorREST, "a", ann), ann, "stands behind"},
		"them, after their token":               {ann, of(DoorREST, "a", ann), "stands behind"},
		"them, after their agent":               {ann, of(DoorMCP, "a", ann), "stands behind"},
		"a token, after one that it made":       {of(DoorREST, "a", joe), minted, "stands behind"},
		"a token, after the one that made it":   {minted, of(DoorREST, "a", joe), "stands behind"},
		"a token, after its twin":               {of(DoorREST, "c", of(DoorREST, "a", joe)), minted, "stands behind"},
		"them, after their session":             {ann, session(ann), "stands behind"},
		"them, after a hand-over":               {ann, session(session(ann)), "stands behind"},
		"them, after their words were read":     {ann, session(schedule, ann), "stands behind"},
		"a user of the terminal":                {joe, joe, "uid 1000 (joe) stands behind"},
		"another user of the terminal":          {jim, joe, ""},
		"root, after a user":                    {root, joe, "stands behind"},
		"a user, after root":                    {joe, root, "stands behind"},
		"a user of the terminal after a person": {joe, ann, "may be the same person"},
		"a token of nobody after a person":      {of(DoorREST, "a", joe), ann, "may be the same person"},
		"a person after a user of the terminal": {ann, joe, ""},
		"another person":                        {bob, ann, ""},
		"their token":                           {of(DoorREST, "a", bob), of(DoorMCP, "b", ann), ""},
		"one whom the proxy names":              {proxied, schedule, ""},
		"one whom the proxy names in capitals":  {shouted, proxied, "stands behind"},
		"a person, after the schedule":          {ann, session(schedule), ""},
		"them, after a comment at the forge":    {ann, atForge, "gitea:ann stands behind it, and behind"},
		"their token, after it":                 {of(DoorREST, "a", ann), atForge, "stands behind"},
		"another one of that forge":             {bob, atForge, ""},
		"a token of one of that forge":          {of(DoorREST, "a", bob), atForge, ""},
		"a user of the terminal, after it":      {joe, atForge, "may be the same person"},
		"whom the proxy names, after it":        {proxied, atForge, "sign in with an account of that forge"},
		"who signs in elsewhere":                {ann, elsewhere, "sign in with an account of that forge"},
		"them, after its hand-over":             {proxied, session(atForge), "sign in with an account"},
		"nobody":                                {Actor{System: SystemAnonymous}, schedule, "is not a person"},
		"a person, after nobody that is known":  {ann, Actor{Door: DoorREST}, "does not say"},
		"a person, after a session of nobody":   {ann, Actor{Session: &ActorSession{ID: "s"}}, "does not say"},
	} {
		t.Run(name, func(t *testing.T) {
			why := c.second.SecondTo(c.started)
			if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
				t.Errorf("%q, want %q", why, c.why)
			}
		})
	}
}

func TestNoProgramLooksLikeAPerson(t *testing.T) {
	boss := signedIn("1", "gitea:boss")
	for label, a := range map[string]Actor{
		"gitea:boss":                   boss,
		"agent (gitea:boss)":           {Door: DoorMCP, Client: "gitea:boss"},
		"agent (uid 0 (root))":         {Door: DoorMCP, Person: OSUser("1000", "joe").Person, Client: "uid 0 (root)"},
		"bot (gitea:boss)":             {Door: DoorMCP, Credential: &Credential{ID: "1", Name: "bot"}, Client: "gitea:boss"},
		"uid 0 (root)":                 OSUser("0", "root"),
		"uid 70000":                    OSUser("70000", ""),
		"schedule":                     {Door: DoorPoll, System: SystemSchedule},
		"unknown":                      {},
		"agent":                        {Door: DoorMCP},
		"agent (CLAUDEOPS_API_TOKENS)": {Door: DoorMCP, Session: &ActorSession{ID: "1"}, Client: "CLAUDEOPS_API_TOKENS"},
	} {
		must.Equal(t, a.String(), label)
	}
	for name, reserved := range map[string]bool{
		"gitea:boss": true, "GitHub:boss": true, "https://git.example.com": true, "uid 0": true, "UID 0 (root)": true,
		"anonymous": true, " Schedule ": true, "agent": true, "os": true, "ann": false, "Claude Code (plugin:x)": false,
		"night shift: ann": false, "uidentity": false,
		"gitea\uff1aboss": true, "gitea\u200b:boss": true,
		"gitea\u2236boss": true,
		"\u0430nonymous":  true, "\uff55id 0": true, "uid\u00a00 (root)": true, "\u03bfs": true, "agent (gitea:boss)": true,
		"agents of ann": false, "\u0434\u0435\u0436\u0443\u0440\u043d\u044b\u0439": false,
	} {
		if ReservedName(name) != reserved {
			t.Errorf("%q: %v", name, !reserved)
		}
	}
}
