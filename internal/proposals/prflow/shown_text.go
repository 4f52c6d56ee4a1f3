package prflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// MaxShownFile bounds, in bytes, a file that is read for an agent.
const MaxShownFile = 256 << 10

// redactedLine stands in place of a line that looks like it holds a secret.
const redactedLine = "[redacted]"

// shownText is the text of a file as an answer may have it. It has as many lines as the file.
type shownText struct {
	text  string
	lacks []string // what was taken out, a sentence each; empty if text is the whole file
}

// textShower makes the texts of files fit to be shown.
type textShower struct{ secrets Secrets }

// show removes from a file what a reader cannot see and what looks like a secret. A line with a secret is replaced as a
// whole. content_denied for a file that is not text, for one of more than MaxShownFile bytes, and where secrets cannot
// be separated from the rest. known is false if the host left out the content because the file is too large.
func (s textShower) show(ctx context.Context, path string, file []byte, known bool) (shownText, error) {
	why := ""
	switch {
	case !known || len(file) > MaxShownFile:
		return shownText{}, notShown(path, "file-size", fmt.Sprintf("has more than %d bytes", MaxShownFile))
	case !utf8.Valid(file):
		why = "is no text in UTF-8"
	case slices.Contains(file, 0):
		why = "has a NUL byte, so that it is no text"
	}
	if why != "" {
		return shownText{}, notShown(path, "binary", why)
	}
	var out shownText
	out.text = clean(string(file), len(file))
	if out.text != string(file) {
		out.lacks = append(out.lacks, "characters that a reader cannot see were taken out of "+path)
	}
	return out, s.redact(ctx, path, &out)
}

// notShown refuses to show a file.
func notShown(path, rule, why string) error {
	return fault.Refusal([]fault.Violation{{
		Code: fault.ContentDenied, Path: path, Rule: rule, Final: true, Message: path + " is not shown: it " + why,
		Suggestion: "report what should change in it, for a person",
	}})
}

// maxRedactions limits how often a text is searched for secrets: the remainder of one may look like another.
const maxRedactions = 5

// redact replaces the lines that look like they hold a secret, until none does.
func (s textShower) redact(ctx context.Context, path string, out *shownText) error {
	ctx, cancel := context.WithTimeout(ctx, contentTimeout)
	defer cancel()
	whole := s.secrets.Redact(out.text)
	took := whole != out.text
	for range maxRedactions {
		found, err := s.secrets.Secrets(ctx, path, whole)
		switch {
		case err != nil && ctx.Err() != nil:
			return fault.From(ctx.Err())
		case err != nil:
			return fault.Wrap(err, fault.Internal, "the search for secrets could not run, so nothing is shown")
		case len(found) == 0 && s.secrets.Spread([]string{whole}) != nil:
			return notShown(path, "secret:spread", "holds a credential of this server in parts")
		case len(found) == 0:
			out.text = whole
			if took {
				out.lacks = append(out.lacks, "what looks like a secret in "+path+" was replaced by "+redactedLine)
			}
			return nil
		}
		lines := strings.SplitAfter(whole, "\n")
		for _, secret := range found {
			end := min(max(secret.LastLine, secret.Line), len(lines))
			for end < len(lines) && goesOn(lines[end]) { // what a rule does not take with it
				end++
			}
			blank(lines[secret.Line-1 : end])
		}
		whole, took = strings.Join(lines, ""), true
	}
	return notShown(path, "secret", "holds what looks like secrets, which cannot be told from the rest")
}

// goesOn reports whether a line may be the rest of a secret that was broken into lines: it is one word with a digit.
func goesOn(line string) bool {
	const least = 8 // characters
	word := strings.Trim(line, " \t\r\n\"'`+.>#*|(),;\\")
	isPart := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+/=_-", r)
	}
	return len(word) >= least && strings.ContainsAny(word, "0123456789") &&
		!strings.ContainsFunc(word, func(r rune) bool { return !isPart(r) })
}

// blank replaces lines and keeps their ends, so that those that follow keep their numbers.
func blank(lines []string) {
	for i, line := range lines {
		lines[i] = blankLine(line)
	}
}

func blankLine(line string) string {
	if strings.HasSuffix(line, "\n") {
		return redactedLine + "\n"
	}
	return redactedLine
}

// jsonLength returns the size of a text in an answer, in bytes of JSON.
func jsonLength(text string) int {
	encoded, err := json.Marshal(text)
	if err != nil {
		return len(text)
	}
	return len(encoded)
}
