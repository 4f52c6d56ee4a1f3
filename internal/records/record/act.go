package record

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Act is a row of the audit as a sentence: who did what to which change where, and why not. Activity, records, the page
// of a change, the terminal, notices and the export say what happened with it and with nothing else.
type Act struct {
	Who        string // untrusted
	Agent      bool   // Who is one, or a session of one
	Verb       string // "merged", "could not merge"
	Number     int    // of the pull request; 0 for none
	Title      string // of the change; untrusted
	Repository string // owner/name, or "": untrusted
	Reason     string // why it was refused or failed, in a few words; "" if it was not
	// About names the subject of a row that is not about a change: "session ID"; "" for none.
	About string
}

// Context holds facts that the row lacks: the title of the change that it is about, and how a session that it started
// has ended, "" while it runs or if that went well.
type Context struct{ Title, Ended string }

// Act says what the row says.
func (a Attempt) Act(c Context) Act {
	out := Act{Number: a.PRNumber, Title: cmp.Or(a.Title, c.Title), Repository: a.Repository()}
	out.Who, out.Agent = a.actor()
	if id := a.Started(); id != "" {
		if out.About = "session " + id; a.Action == ActionStartSession {
			out.Reason = c.Ended
		}
	}
	verbs := verbsOf(a.Action)
	switch out.Verb = verbs.did; a.Outcome {
	case OutcomeRefused, OutcomeFailed:
		out.Verb, out.Reason = "could not "+verbs.do, a.Refusal()
		if a.Action == ActionCreate && a.Outcome == OutcomeRefused {
			out.Verb, out.Number = "was refused", 0 // the number is that of another one, which is in its way
		}
	case OutcomeDryRun:
		out.Verb = "tried to " + verbs.do + ", without writing,"
		if a.Action == ActionCreate {
			out.Verb = "tried out"
		}
	case OutcomeRevised:
		out.Verb = "revised"
	case OutcomeReused:
		out.Verb = "proposed again"
	}
	if a.Action == ActionStartSession && a.Tier > 0 {
		out.Verb += " of tier " + a.Tier.String()
	}
	if out.Number == 0 && out.Title+out.About+out.Repository == "" {
		out.Verb = strings.TrimSuffix(out.Verb, ",") // nothing follows
	}
	return out
}

// Started returns the session that the attempt started or stopped; "" for none.
func (a Attempt) Started() string {
	id, found := strings.CutPrefix(a.Message, "session ")
	id, _, _ = strings.Cut(id, ",") // what a hook started it for
	if !found || !strings.HasPrefix(a.Action, "session.") || a.Outcome != OutcomeDone {
		return ""
	}
	return id
}

// Sentence returns the act on one line. quote makes text that others wrote harmless where it is to stand.
func (a Act) Sentence(quote func(string) string) string {
	words := []string{quote(a.Who), a.Verb}
	if a.Number > 0 {
		words = append(words, "#"+strconv.Itoa(a.Number))
	}
	if a.Title != "" {
		words = append(words, `"`+quote(a.Title)+`"`)
	}
	if a.About != "" {
		words = append(words, "("+quote(a.About)+")")
	}
	if a.Repository != "" {
		words = append(words, "in "+quote(a.Repository))
	}
	out := strings.Join(words, " ")
	if a.Reason != "" {
		out += ": " + a.Reason
	}
	return out
}

// Step is the verb where what it is about is known, as on the page of a change: "approved", "asked for changes".
func (a Act) Step() string { return verbStep(a.Verb) }

// StepOf is Act.Step of an action that was done, for what a forge tells of and no row has.
func StepOf(action string) string { return verbStep(verbsOf(action).did) }

func verbStep(verb string) string {
	verb = strings.TrimSuffix(verb, ", without writing,")
	for _, preposition := range []string{" to", " on", " of"} {
		verb = strings.TrimSuffix(verb, preposition)
	}
	return verb
}

// Repository is owner/name as the attempt names it; "" for none.
func (a Attempt) Repository() string {
	if a.Owner+a.Repo == "" {
		return ""
	}
	return a.Owner + "/" + a.Repo
}

// actor returns the name of the actor for people, and whether that is an agent.
func (a Attempt) actor() (name string, agent bool) {
	if a.Action == ActionPullGone || a.Action == ActionPullFound {
		return "the forge", false
	}
	if !a.Actor.IsZero() {
		return a.Actor.called()
	}
	agent = a.Door == DoorMCP || a.Session != ""
	if name, is := osUserName(a.Caller); is {
		return name, false
	}
	if name, client, found := strings.Cut(a.Caller, " ("); found && strings.HasSuffix(client, ")") {
		return PersonName(name), agent
	}
	switch name = a.Caller; {
	case agent && a.Session != "":
		return "an agent's session", true
	case name == "" || name == "unknown":
		return cmp.Or(map[Door]string{DoorMCP: "an agent", DoorPoll: "Claude Ops"}[a.Door], "somebody"), agent
	case a.Door == DoorMCP:
		if at := strings.LastIndexByte(name, ' '); at > 0 {
			return name[:at], true
		}
	}
	return PersonName(name), agent
}

// called returns the actor as people know them, and whether that is an agent. What a program calls itself never stands
// alone, and a user of the operating system never without the number.
func (a Actor) called() (name string, agent bool) {
	agent = a.Door == DoorMCP || a.Session != nil
	client := a.Client
	if at := strings.LastIndexByte(client, ' '); at > 0 && agent { // the version
		client = client[:at]
	}
	switch {
	case a.System != "":
		return cmp.Or(map[string]string{SystemServe: "Claude Ops", SystemConnector: "an agent"}[a.System], a.System), agent
	case a.Session != nil:
		return "an agent's session", true
	case a.Credential != nil:
		return PersonName(a.Credential.Name), agent
	case agent && client != "":
		return "agent " + client, true
	case agent:
		return "an agent", true
	case a.Person != nil && a.Person.Issuer == IssuerOS:
		name, _ = osUserName(a.Person.Name)
		return name, false
	case a.Person != nil:
		return PersonName(a.Person.Name), false
	}
	return client, false
}

// CallerName returns the actor of a line of a record, as Actor.String gives it, as people know them: the name that
// stands in the sentence of the act. "" for "".
func CallerName(caller string) string {
	if caller == "" {
		return ""
	}
	name, _ := Attempt{Caller: caller}.actor()
	return name
}

// ReadableCaller returns the actor of a line of a record, as Actor.String gives it, with nothing left out: a user of
// the operating system has the name first, as in sentences.
func ReadableCaller(caller string) string {
	name, _ := osUserName(caller)
	return name
}

// RecordedCaller returns the actor as a record has it, of what ReadableCaller returned or of itself.
func RecordedCaller(name string) string {
	user, uid, found := strings.Cut(strings.TrimSuffix(name, ")"), " (uid ")
	if !found || uid == "" || strings.Trim(uid, "0123456789") != "" || !strings.HasSuffix(name, ")") {
		return name
	}
	return osName(uid, user)
}

// osUserName returns a user of the operating system with the name first, as in "ann (uid 1000)", and whether it is one.
func osUserName(caller string) (name string, is bool) {
	uid, name, named := strings.Cut(strings.TrimSuffix(caller, ")"), " (")
	if !strings.HasPrefix(uid, "uid ") || !named {
		return caller, strings.HasPrefix(uid, "uid ")
	}
	return name + " (" + uid + ")", true
}

// PersonName returns the name of somebody without the provider of identities that knows them: people read names, and
// the row has the rest.
func PersonName(name string) string {
	provider, rest, found := strings.Cut(name, ":")
	if found && rest != "" && provider != "" && !strings.ContainsAny(provider, " /") && !strings.HasPrefix(rest, "//") {
		return rest
	}
	return name
}

// verbs say what an action is: "ann merged #3", "ann could not merge #3".
type verbs struct{ did, do string }

// KnownAction reports whether there are words for an action.
func KnownAction(action string) bool {
	_, known := allVerbs()[action]
	return known
}

func verbsOf(action string) verbs {
	if v, known := allVerbs()[action]; known {
		return v
	}
	return verbs{"used " + action, "use " + action}
}

func allVerbs() map[string]verbs {
	return map[string]verbs{
		ActionCreate:             {"proposed", "propose"},
		ActionPromote:            {"opened the dry run", "open the dry run"},
		ActionSettle:             {"settled", "settle"},
		"create_pr.resume":       {"settled what was left", "settle what was left"},
		ActionPullMerged:         {"merged", "merge"},
		ActionPullClosed:         {"closed", "close"},
		ActionPullReopened:       {"reopened", "reopen"},
		ActionPullGone:           {"no longer knows", "find"},
		ActionPullFound:          {"knows again", "find"},
		ActionPullExpired:        {"closed as stale", "close as stale"},
		ActionPullStale:          {"reminded people of", "remind people of"},
		ActionDeployMerge:        {"deployed", "deploy"},
		ActionReviewMerge:        {"merged", "merge"},
		"review":                 {"reviewed", "review"}, // a decision of which too little could be read
		"review.approve":         {"approved", "approve"},
		"review.close":           {"closed", "close"},
		"review.comment":         {"commented on", "comment on"},
		"review.request-changes": {"asked for changes to", "ask for changes to"},
		"review.lift-cooldown":   {"lifted the cooldown of", "lift the cooldown of"},
		ActionStartSession:       {"started a session", "start a session"},
		"session.stop":           {"stopped a session", "stop a session"},
		"token.create":           {"made a token", "make a token"},
		"token.revoke":           {"revoked a token", "revoke a token"},
		"connection.cut":         {"cut off an agent", "cut off an agent"},
		"connect":                {"connected", "connect"},
		"sign-in":                {"signed in", "sign in"},
		"sign-in.end":            {"was signed out", "end a login"},
		"oauth.register":         {"registered a program", "register a program"},
		"oauth.allow":            {"let a program in", "let a program in"},
		"oauth.deny":             {"turned a program away", "turn a program away"},
		"oauth.grant":            {"gave a program its tokens", "give a program tokens"},
		"oauth.revoke":           {"gave the tokens of a program back", "give the tokens of a program back"},
		"oauth.reuse":            {"showed a code or token a second time", "show a code or token a second time"},
		"oauth.refuse":           {"asked wrongly to be let in", "be let in"},
		"source.allow":           {"allowed a source", "allow a source"},
		"source.remove":          {"removed a source", "remove a source"},
		"deploy.rollback":        {"rolled back a deployment", "roll back a deployment"},
		"packages.registry_init": {"made a registry", "make a registry"},
		"prune":                  {"removed what was old", "remove what was old"},
		"pause":                  {"paused", "pause"},
		"resume":                 {"resumed", "resume"},
		"read_file":              {"read a file", "read a file"},
		"read_pr_diff":           {"read the difference of", "read the difference of"},
	}
}

// Refusal says why an attempt was refused or failed: its code, refined by the first rule that was broken.
func (a Attempt) Refusal() string {
	for _, verdict := range a.Verdicts {
		for _, v := range verdict.Violations {
			if v.Code == a.Code {
				return ViolationText(v)
			}
		}
	}
	return CodeText(a.Code)
}

// ViolationText returns the code of a broken rule as a heading, refined by the rule.
func ViolationText(v fault.Violation) string {
	if v.Code != fault.ContentDenied {
		return CodeText(v.Code)
	}
	switch {
	case strings.HasSuffix(v.Rule, "-size"):
		return "Too large"
	case v.Rule == "hidden-character":
		return "Hidden characters"
	case v.Rule == "binary":
		return "Not text"
	case strings.HasPrefix(v.Rule, "kind:"):
		return "Not a valid file of its kind"
	}
	return CodeText(v.Code)
}

// CodeText says why something was refused or failed, as a heading; "" for "".
func CodeText(c fault.Code) string {
	return cmp.Or(codes()[c], strings.ReplaceAll(string(c), "_", " "))
}

func codes() map[fault.Code]string {
	return map[fault.Code]string{
		"":                       "",
		fault.InvalidArgument:    "Not understood",
		fault.Unauthenticated:    "Not signed in",
		fault.Forbidden:          "Not permitted",
		fault.TierDenied:         "Tier too low",
		fault.ScopeDenied:        "File is protected",
		fault.ContentDenied:      "Looks like a secret",
		fault.RepoNotAllowed:     "Repository not allowed",
		fault.ReadOnly:           "Read-only",
		fault.Paused:             "Paused by a person",
		fault.NotFound:           "Does not exist",
		fault.ProviderUnresolved: "No forge fits",
		fault.DuplicatePR:        "Already open",
		fault.Conflict:           "The file has changed",
		fault.NoChange:           "Nothing would change",
		fault.CooldownActive:     "Cooling down",
		fault.LimitReached:       "Limit reached",
		fault.RateLimited:        "The forge asks to wait",
		fault.ProviderDisabled:   "Forge is off",
		fault.Misconfigured:      "Wrong settings",
		fault.UpstreamError:      "The forge failed",
		fault.Timeout:            "No answer in time",
		fault.Internal:           "Internal error",
	}
}
