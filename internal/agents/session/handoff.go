package session

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/claudeops/claudeops/internal/records/sessions"
)

// Bounds of a handoff; handoff.schema.json says the same.
const (
	maxHandoff       = 64 << 10 // bytes of the file
	handoffVersion   = 1
	maxServices      = 20
	maxService       = 100 // runes, as all below
	maxFindings      = 20
	maxResolved      = 20
	maxKey           = 80
	maxFinding       = 2000
	maxWantedFile    = 256
	maxWantedProof   = 4000
	maxWantedContent = 16000
)

// handoffName is the file that an agent leaves.
const handoffName = "handoff.json"

// mapTexts returns the handoff with each text replaced by what f makes of it.
func mapTexts(h sessions.Handoff, f func(string) string) sessions.Handoff {
	out := h
	out.Services, out.Findings, out.Resolved = nil, nil, nil
	for _, s := range h.Services {
		out.Services = append(out.Services, f(s))
	}
	for _, s := range h.Findings {
		out.Findings = append(out.Findings, sessions.Found{Key: f(s.Key), Text: f(s.Text)})
	}
	for _, s := range h.Resolved {
		out.Resolved = append(out.Resolved, f(s))
	}
	out.WantedChange = sessions.Wanted{File: f(h.WantedChange.File), Evidence: f(h.WantedChange.Evidence),
		Text: f(h.WantedChange.Text)}
	return out
}

// keyOf returns a key as findings are compared by it: lower case, with one hyphen for each run of what is neither
// letter nor digit.
func keyOf(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	key := []rune(strings.Join(words, "-"))
	return strings.Trim(string(key[:min(len(key), maxKey)]), "-")
}

// giveKeys names the findings whose agent gave them no key: by the services and the file that the handoff is about, or
// else by the first words that hold no digit, since figures and times change from session to session.
func giveKeys(h *sessions.Handoff) {
	services := slices.Clone(h.Services)
	slices.Sort(services)
	about := keyOf(strings.Join(append(services, h.WantedChange.File), " "))
	for i := range h.Findings {
		f := &h.Findings[i]
		if f.Key = keyOf(f.Key); f.Key == "" {
			f.Key = about
		}
		if f.Key == "" {
			f.Key = firstWords(f.Text)
		}
	}
	for i := range h.Resolved {
		h.Resolved[i] = keyOf(h.Resolved[i])
	}
}

func firstWords(text string) string {
	const most = 8
	words := slices.DeleteFunc(strings.Fields(text),
		func(w string) bool { return strings.ContainsFunc(w, unicode.IsDigit) })
	if key := keyOf(strings.Join(words[:min(len(words), most)], " ")); key != "" {
		return key
	}
	return "finding-" + strconv.Itoa(len([]rune(text))) // of figures alone
}
