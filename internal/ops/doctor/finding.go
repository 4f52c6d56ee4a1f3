package doctor

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Finding describes the state of one part: since when, what it stops, and what to do. Doctor, pages, REST, probes and
// metrics show this value; none of them judges a part by itself.
type Finding struct {
	Name   string     `json:"name"`
	Status string     `json:"status"          enum:"ok,warning,off,held,problem" doc:"off: not configured, which is no mistake; held: the operator has chosen that it stops something"`
	Title  string     `json:"title,omitempty"                                    doc:"What is wrong, in a few words"`
	Detail string     `json:"detail"`
	Since  *time.Time `json:"since,omitempty"                                    doc:"Since when its status is so, as far as the server that answers has seen"`
	Stops  string     `json:"stops,omitempty"                                    doc:"What it stops"`
	Do     string     `json:"do,omitempty"                                       doc:"What an operator does about it"`
	Blocks bool       `json:"blocks"                                             doc:"Stops every pull request, or every one at the provider or to the repository that it names"`
}

// The values of Finding.Status.
const (
	OK      = "ok"
	Off     = "off"     // not configured, which is not a mistake
	Warning = "warning" // works, and is not as it should be
	Held    = "held"    // stops something because the operator has chosen so
	Problem = "problem" // does not work
)

// What parts stop.
const (
	stopsProposals = "every proposal"
	stopsSessions  = "agents' sessions"
)

// blocks returns a problem that stops pull requests. do says what to do about it; "" where the detail is all there is.
func blocks(name, detail, do string) Finding {
	return Finding{Name: name, Status: Problem, Detail: detail, Do: do, Stops: proposalsOf(name), Blocks: true}
}

// proposalsOf says which proposals a part stops that is broken.
func proposalsOf(name string) string {
	switch kind, of, _ := strings.Cut(name, " "); kind {
	case "provider":
		return "proposals at " + of
	case "repository":
		return "proposals to " + of
	case "local":
		return "proposals at local"
	case "allowlist":
		return "proposals to what that entry names"
	}
	return stopsProposals
}

// Headline says in a few words what is wrong with a part.
func (f Finding) Headline() string {
	first, size := utf8.DecodeRuneInString(f.Name)
	name := string(unicode.ToUpper(first)) + f.Name[size:]
	if f.Stops != "" {
		return cmp.Or(f.Title, name+" stops "+f.Stops)
	}
	return cmp.Or(f.Title, name+" needs a look")
}

// Told returns the part's state and what to do about it, on one line.
func (f Finding) Told() string { return joined(f.Detail, f.Do) }

// weight orders statuses: the heavier one decides where a part has two.
func (f Finding) weight() int {
	return slices.Index([]string{Off, OK, Warning, Held, Problem}, f.Status)
}

// Merge makes one finding of all that have a name, in the order of the names. The worst decides, and comes first.
func Merge(findings []Finding) (out []Finding) {
	for _, f := range findings {
		at := slices.IndexFunc(out, func(o Finding) bool { return o.Name == f.Name })
		if at < 0 {
			out = append(out, f)
			continue
		}
		worse, better := out[at], f
		if better.weight() > worse.weight() {
			worse, better = better, worse
		}
		worse.Title, worse.Stops = cmp.Or(worse.Title, better.Title), cmp.Or(worse.Stops, better.Stops)
		worse.Detail, worse.Do = joined(worse.Detail, better.Detail), joined(worse.Do, better.Do)
		worse.Blocks = worse.Blocks || better.Blocks
		out[at] = worse
	}
	return out
}

func joined(first, second string) string {
	if first == "" || second == "" || first == second {
		return cmp.Or(first, second)
	}
	return first + "; " + second
}

// Blocking names, once each, what stops pull requests.
func Blocking(findings []Finding) []string {
	out := []string{}
	for _, f := range findings {
		if f.Blocks && !slices.Contains(out, f.Name) {
			out = append(out, f.Name)
		}
	}
	return out
}
