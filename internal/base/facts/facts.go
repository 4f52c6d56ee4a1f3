// Package facts reads what the lines of a change name and would make an agent do: data that leave, files that are
// deleted, credentials, text that speaks to the model. It gives facts with their lines and no verdict: a person
// decides.
//
// A fact is taken from lines that the change adds or alters, and from removed lines where a safeguard goes. What the
// old text had already is not a fact of the change. Reading is pure and deterministic, and takes time linear in the
// size of the texts.
package facts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Class says what a fact is about.
type Class string

// The classes.
const (
	Destroy     Class = "destroy"      // deletes, overwrites, stops, drops
	Outbound    Class = "outbound"     // data that leave
	Credential  Class = "credential"   // a place or name of secrets
	Override    Class = "override"     // text that speaks to the model above the procedure
	Conceal     Class = "conceal"      // something is to be hidden from people or logs
	Weakens     Class = "weakens"      // a safeguard is removed or made optional
	Rights      Class = "rights"       // more power: sudo, wide modes, security off, front matter that widens
	Persist     Class = "persist"      // stays after the task: cron, services, profiles, hooks
	Opaque      Class = "opaque"       // cannot be read: encoded, hidden in comments, far to the right
	DownloadRun Class = "download-run" // fetched and run, or installed
	RunsCode    Class = "runs-code"    // a script that the change or the repository holds, or that the format runs
	Address     Class = "address"      // a host or mailbox that no other file names
)

// Classes lists the classes, gravest first.
func Classes() []Class {
	return []Class{Destroy, Outbound, Credential, Override, Conceal, Weakens, Rights, Persist, Opaque, DownloadRun,
		RunsCode,
		Address}
}

// Grave says whether facts of the class stand in tags, notices and the first lines. Most new skills rightly have plain
// ones.
func (c Class) Grave() bool { return c != DownloadRun && c != RunsCode && c != Address }

// Words is the class as a short tag that follows the change as its subject, such as "deletes". For a class of a
// checker's own it is the class's name.
func (c Class) Words() string {
	switch c {
	case Destroy:
		return "deletes"
	case Outbound:
		return "sends data out"
	case Credential:
		return "names secrets"
	case Override:
		return "instructs the model"
	case Conceal:
		return "hides something"
	case Weakens:
		return "drops a safeguard"
	case Rights:
		return "takes more rights"
	case Persist:
		return "stays after the task"
	case Opaque:
		return "cannot be read"
	case DownloadRun:
		return "downloads programs"
	case RunsCode:
		return "runs code"
	case Address:
		return "names new addresses"
	}
	return string(c)
}

// Where is the kind of text that a fact stands in.
type Where string

// The kinds of text.
const (
	Prose       Where = "prose"
	Code        Where = "code"         // a block of code, inline code, or a file that is not Markdown
	Comment     Where = "comment"      // a comment of HTML, which no page shows
	FrontMatter Where = "front matter" // the header of a Markdown file
)

const (
	// MaxFacts is the most facts that Read returns.
	MaxFacts = 200
	// MaxWords is the length of Fact.Words, in runes.
	MaxWords = 80
)

// Fact is one thing that a change names or does.
type Fact struct {
	Class Class  `json:"class"`
	Path  string `json:"path"`
	Line  int    `json:"line"` // 1-based, in the new text; in the old text if Removed
	// Removed says that the fact is about a line of the old text that the change removes.
	Removed bool  `json:"removed,omitempty"`
	Where   Where `json:"where"`
	// Words are the words of the text that the fact was read from, on one line, without characters that are hidden or
	// control a terminal; at most MaxWords runes. They are untrusted, and may hold a secret, which the caller redacts.
	Words string `json:"words"`
	// Sentence says what the fact is, for people, with Words as far as they fit: "Deletes files: rm -rf /srv/data". It is
	// as untrusted as Words and at most MaxWords+80 runes long.
	Sentence string `json:"sentence"`
}

// Alike groups facts that say the same, in the same words, of several lines. The order stays, by the first of each
// group.
func Alike(all []Fact) (groups [][]Fact) {
	type saying struct {
		class           Class
		words, sentence string
	}
	places := map[saying]int{}
	for _, f := range all {
		key := saying{f.Class, f.Words, f.Sentence}
		at, found := places[key]
		if !found {
			at, places[key] = len(groups), len(groups)
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], f)
	}
	return groups
}

// NextTo says whether a fact stands in the same file and on the same side of the change as another one.
func (f Fact) NextTo(other Fact) bool {
	return f.Path == other.Path && f.Removed == other.Removed && f.Where == other.Where
}

// File is one file of a change. A file that the change adds has an empty Old, one that it deletes an empty New.
type File struct {
	Path     string // with slashes, from the root of the repository
	Old, New string
}

// Reading is what Read found.
type Reading struct {
	Facts  []Fact        `json:"facts"`          // at most MaxFacts: in the order of Classes, then by path and line
	Counts map[Class]int `json:"counts"`         // of all facts, those included that are left out
	More   int           `json:"more,omitempty"` // the number of facts that are left out
}

// WasRead reports whether a change was read. The zero Reading says nothing about one.
func (r Reading) WasRead() bool { return r.Counts != nil }

// Add returns the reading with facts of another reader, such as a checker of the operator, which may have classes of
// its own.
func (r Reading) Add(more []Fact) Reading {
	both := sorted(slices.Concat(r.Facts, more))
	counts := maps.Clone(r.Counts)
	if counts == nil {
		counts = map[Class]int{}
	}
	for _, f := range more {
		counts[f.Class]++
	}
	return Reading{Facts: both.Facts, Counts: counts, More: r.More + both.More}
}

// Found lists the classes of which there are facts: the gravest first, and after them those of checkers, by name.
func (r Reading) Found() []Class {
	found := slices.DeleteFunc(Classes(), func(c Class) bool { return r.Counts[c] == 0 })
	for _, c := range slices.Sorted(maps.Keys(r.Counts)) {
		if !slices.Contains(Classes(), c) && r.Counts[c] > 0 {
			found = append(found, c)
		}
	}
	return found
}

// Tags gives the words of the grave classes that were found, gravest first, at most limit.
func (r Reading) Tags(limit int) []string {
	var tags []string
	for _, class := range r.Found() {
		if class.Grave() && len(tags) < limit {
			tags = append(tags, class.Words())
		}
	}
	return tags
}

// nothingOfNote is the summary of a change without facts.
const nothingOfNote = "nothing of note"

// Summary says how many facts of each class there are, the gravest first, for the record: "destroy 2, address 1".
func (r Reading) Summary() string {
	var out []string
	for _, class := range r.Found() {
		out = append(out, fmt.Sprint(class, " ", r.Counts[class]))
	}
	if out == nil {
		return nothingOfNote
	}
	return strings.Join(out, ", ")
}

// ParseSummary returns the counts that a summary has. What stands behind a semicolon is not part of it. Of a text that
// is none, the Reading was not read.
func ParseSummary(text string) Reading {
	text, _, _ = strings.Cut(text, ";")
	if text == nothingOfNote {
		return Reading{Counts: map[Class]int{}}
	}
	counts := map[Class]int{}
	for part := range strings.SplitSeq(text, ", ") {
		class, number, _ := strings.Cut(part, " ")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || class == "" {
			return Reading{}
		}
		counts[Class(class)] = n
	}
	return Reading{Counts: counts}
}

// Read gives the facts of a change. known says whether another file in scope of the base tree names a host (see Hosts),
// which is then not an Address; it is asked only about hosts that the change adds, in lower case, once for each. nil
// means that none is known. A file that the change moves is compared with what it said before: one that it deletes, and
// one that it adds with most of the same lines and the same ending.
func Read(files []File, known func(host string) bool) Reading {
	var all []Fact
	files, movedFrom := withMoves(files)
	addresses := newAddressBook(files, known)
	for i, f := range files {
		found := readFile(f, addresses)
		for j := range found {
			if from := movedFrom[i]; found[j].Removed && from != "" {
				found[j].Path = from
			}
		}
		if all == nil {
			all = found
		} else {
			all = append(all, found...)
		}
	}
	return sorted(all)
}

// sorted orders facts as Reading has them, and leaves out those beyond MaxFacts.
func sorted(all []Fact) Reading {
	rank := map[Class]int{}
	for i, class := range Classes() {
		rank[class] = i
	}
	counts := map[Class]int{}
	ranked := make([][]int, len(rank)) // the facts of each rank: of many, sorting them all costs more than reading them
	for i := range all {
		class := all[i].Class
		counts[class]++
		ranked[rank[class]] = append(ranked[rank[class]], i)
	}
	shown := []Fact{} // [] as JSON, rather than null
	for _, order := range ranked {
		if len(shown) == MaxFacts {
			break
		}
		slices.SortFunc(order, func(i, j int) int {
			a, b := &all[i], &all[j]
			return cmp.Or(strings.Compare(a.Path, b.Path), a.Line-b.Line, i-j)
		})
		for _, i := range order[:min(len(order), MaxFacts-len(shown))] {
			shown = append(shown, all[i])
		}
	}
	return Reading{Facts: shown, Counts: counts, More: len(all) - len(shown)}
}
