package session

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
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

// parseHandoff reads what an agent left as its handoff. Unambiguous deviations are accepted, and notes lists what was
// left out or cut. The error is one line for people and agents and quotes little of the text. redact is applied to each
// text before it is cut, since half a token would not be recognised.
func parseHandoff(raw []byte, redact func(string) string) (h sessions.Handoff, notes []string, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return sessions.Handoff{}, nil, errors.New("the handoff is empty")
	}
	var members map[string]any
	if err := json.Unmarshal(unfenced(raw), &members); err != nil {
		return sessions.Handoff{}, nil, fmt.Errorf("the handoff is not a JSON object: %s", textscan.Clean(err.Error(), 200))
	}
	r := &handoffReader{redact: redact}
	h = r.readMembers(members)
	if len(r.wrong) == 0 {
		r.wrong = problems(h)
	}
	if len(r.wrong) > 0 {
		const most = 5
		if n := len(r.wrong); n > most {
			r.wrong = append(r.wrong[:most], fmt.Sprintf("and %d more", n-most))
		}
		return sessions.Handoff{}, nil, errors.New(textscan.Clean(strings.Join(r.wrong, "; "), 800))
	}
	return h, r.notes, nil
}

// unfenced returns the text inside of a code fence, if it is all in one.
func unfenced(raw []byte) []byte {
	text := bytes.TrimSpace(bytes.TrimPrefix(raw, []byte("\ufeff")))
	fence := []byte("```")
	if !bytes.HasPrefix(text, fence) || !bytes.HasSuffix(text, fence) {
		return text
	}
	_, inner, found := bytes.Cut(text, []byte("\n"))
	if !found {
		return text
	}
	return bytes.TrimSuffix(inner, fence)
}

func problems(h sessions.Handoff) (out []string) {
	if h.Version != handoffVersion {
		out = append(out, fmt.Sprintf("`version` is %d, and only %d is known", h.Version, handoffVersion))
	}
	if len(h.Findings) == 0 && len(h.Resolved) == 0 {
		out = append(out, "`findings` has no entry: say what you saw, each with its proof")
	}
	escalates := len(h.Findings) > 0 || h.RecommendedTier != 0
	if escalates && (h.RecommendedTier < int(gitprovider.TierObserve) ||
		h.RecommendedTier > int(gitprovider.TierRemediate)) {
		out = append(out, "`recommended_tier` must be 1, 2 or 3: the tier of the session that shall follow")
	}
	return out
}

// handoffReader turns the members of a JSON object into a handoff.
type handoffReader struct {
	redact       func(string) string
	wrong, notes []string
}

func (r *handoffReader) addNote(format string, args ...any) {
	r.notes = append(r.notes, textscan.Clean(fmt.Sprintf(format, args...), 200))
}

func (r *handoffReader) readMembers(members map[string]any) sessions.Handoff {
	h := sessions.Handoff{Version: handoffVersion}
	if given := members["version"]; given != nil {
		h.Version = r.wholeNumber("version", given)
	}
	if given := members["recommended_tier"]; given != nil {
		h.RecommendedTier = r.wholeNumber("recommended_tier", given)
	}
	h.Services = r.texts("services", members["services"], maxServices, maxService)
	h.Resolved = r.texts("resolved", members["resolved"], maxResolved, maxFinding)
	for _, given := range r.convertList("findings", members["findings"], maxFindings) {
		if f := r.finding(given); f.Text != "" {
			h.Findings = append(h.Findings, f)
		}
	}
	h.WantedChange = r.readWanted(members["wanted_change"])
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains([]string{"version", "recommended_tier", "services", "resolved", "findings", "wanted_change"},
			name) {
			r.addNote("`%s` is not a member of a handoff and was left out", name)
		}
	}
	return h
}

// wholeNumber returns a whole number, also one in quotes.
func (r *handoffReader) wholeNumber(name string, given any) int {
	text := fmt.Sprint(given)
	if s, isText := given.(string); isText {
		text = strings.TrimSpace(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(s)), "tier"))
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n != float64(int(n)) {
		r.wrong = append(r.wrong, fmt.Sprintf("`%s` must be a whole number", name))
	}
	return int(n)
}

// convertList returns a list of at most most items; a single value is a list of one.
func (r *handoffReader) convertList(name string, given any, most int) []any {
	if given == nil {
		return nil
	}
	all, isList := given.([]any)
	if !isList {
		all = []any{given}
	}
	if len(all) > most {
		r.addNote("`%s` has %d entries; the first %d were kept", name, len(all), most)
		all = all[:most]
	}
	return all
}

func (r *handoffReader) texts(name string, given any, most, limit int) (out []string) {
	for _, one := range r.convertList(name, given, most) {
		if text := r.convertText("an entry of `"+name+"`", one, limit); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// convertText converts a value to a text of at most limit characters; objectText converts objects.
func (r *handoffReader) convertText(name string, given any, limit int) string {
	text := ""
	switch v := given.(type) {
	case nil:
	case string:
		text = v
	case bool, float64:
		text = fmt.Sprint(v)
	case map[string]any:
		text = objectText(v)
	default:
		r.wrong = append(r.wrong, name+" must be a text")
	}
	text = r.redact(strings.TrimSpace(text))
	if n := utf8.RuneCountInString(text); n > limit {
		r.addNote("%s has %d characters and was cut to %d", name, n, limit)
		text = string([]rune(text)[:limit-1]) + "…"
	}
	return text
}

// finding returns a text, or an object with one and perhaps a key and a proof.
func (r *handoffReader) finding(given any) sessions.Found {
	members, isObject := given.(map[string]any)
	if !isObject {
		return sessions.Found{Text: r.convertText("a finding", given, maxFinding)}
	}
	members = maps.Clone(members)
	key, isText := members["key"].(string)
	key = r.redact(key)
	if isText || members["key"] == nil {
		delete(members, "key")
	}
	f := sessions.Found{Key: key, Text: r.convertText("a finding", members, maxFinding)}
	if f.Text == "" {
		r.wrong = append(r.wrong, "a finding has no `text`")
	}
	return f
}

// objectText returns the text of an object whose members are texts: that of the member that is named so, then the
// others with their names.
func objectText(members map[string]any) string {
	var lines []string
	main := ""
	for _, name := range []string{"text", "finding", "name", "summary", "description"} {
		if text, isText := members[name].(string); isText {
			main, lines = name, append(lines, text)
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name == main {
			continue
		}
		switch v := members[name].(type) {
		case string, float64, bool:
			lines = append(lines, fmt.Sprintf("%s: %v", name, v))
		}
	}
	return strings.Join(lines, "\n")
}

// readWanted returns the change that is wanted: an object, a list of one, or its text alone.
func (r *handoffReader) readWanted(given any) sessions.Wanted {
	if all, isList := given.([]any); isList {
		given = nil
		if len(all) > 0 {
			given = r.convertList("wanted_change", all, 1)[0]
		}
	}
	members, isObject := given.(map[string]any)
	if !isObject {
		return sessions.Wanted{Text: r.convertText("`wanted_change`", given, maxWantedContent)}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains([]string{"file", "evidence", "text"}, name) {
			r.addNote("`wanted_change.%s` is unknown and was left out", name)
		}
	}
	return sessions.Wanted{
		File:     r.convertText("`wanted_change.file`", members["file"], maxWantedFile),
		Evidence: r.convertText("`wanted_change.evidence`", members["evidence"], maxWantedProof),
		Text:     r.convertText("`wanted_change.text`", members["text"], maxWantedContent),
	}
}
