package prflow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// contentTimeout bounds the search for secrets, which takes about a second a MiB at most.
const contentTimeout = 60 * time.Second

// maxSearched bounds a title or a path that is searched for secrets, in bytes. What is longer is refused anyway (see
// MaxTitleRunes and gitprovider.ParsePath), costs nothing more, and is withheld from the record.
const maxSearched = 8 << 10

// contentGate denies texts that must not be published.
func contentGate() gate {
	return gate{
		Name: record.GateContent, Phase: phaseRequest,
		Asks: "sizes, hidden characters, secrets in files, title, body, replies and paths, and whether files of a kind " +
			"that the policy names are sound",
		Judge: judgeContent,
	}
}

// judgeContent fails if the search for secrets cannot work.
func judgeContent(ctx context.Context, on rules, r *createRequest, e *evidence) (ruling, error) {
	judged := r.judged()
	out := ruling{violations: checkSizes(judged.Files, on.Policy.Limits.MaxFileBytes, on.Policy.Limits.MaxTotalBytes)}
	out.violations = append(out.violations, checkKinds(on.Policy.Scope, judged.Files, e, out.violations)...)
	texts, skipped := searchable(judged, out.violations)
	out.withhold = skipped
	kept := newKeptTexts(texts)
	search, cancel := context.WithTimeout(ctx, contentTimeout)
	defer cancel()
	stood := e.textsBefore(r)
	for _, t := range texts {
		characters, found, old, err := newIn(search, on.secrets, t, stood)
		switch {
		case err != nil && ctx.Err() != nil:
			return ruling{}, fault.From(ctx.Err())
		case err != nil:
			return ruling{}, fault.Wrap(err, fault.Internal, "the search for secrets could not run, so nothing is proposed")
		}
		out.violations = append(out.violations, characters...)
		for _, v := range old {
			kept.withhold(t, textscan.Secret{Rule: "on-the-base"})
			out.warnings = append(out.warnings, v)
		}
		for _, secret := range found {
			out.violations = append(out.violations, secretViolation(t, secret))
			kept.withhold(t, secret)
			out.withhold = out.withhold || t.isPath || t.label == "title"
			r.secretName = r.secretName || isName(t)
		}
	}
	isOwn := func(v fault.Violation) bool { return v.Rule == "secret:"+textscan.OwnTokenRule }
	if v := checkSpread(on.secrets, texts); v != nil && !slices.ContainsFunc(out.violations, isOwn) {
		out.violations = append(out.violations, *v)
		out.withhold = true // which part is where is not known
	}
	if !out.withhold && !slices.ContainsFunc(out.violations, isOwn) {
		out.wanted = kept.requestedChange(r)
	}
	return out, nil
}

// textsBefore returns the texts of the files that the request changes or deletes as they were before; none before the
// repository is read.
func (e *evidence) textsBefore(r *createRequest) (out []string) {
	for _, f := range r.asked.Files {
		if before := e.textBefore(f.Path); before != "" {
			out = append(out, before)
		}
	}
	return out
}

// textBefore returns the text that a file has on the branch that the change goes to; "" for a file that is not there,
// and before the repository is read.
func (e *evidence) textBefore(name string) string {
	path, err := gitprovider.ParsePath(name)
	if target := e.comparedSnapshot(); target != nil && err == nil {
		return string(target.Contents[path])
	}
	return ""
}

// newIn returns the content gate's objections to a text, as far as the proposal adds or changes it: lines that stood in
// one of the files before, in this order, are published already. old describes findings in those lines that people
// should know of.
func newIn(ctx context.Context, secrets Secrets, t requestText, stood []string) (characters []fault.Violation,
	found []textscan.Secret, old []string, err error) {
	isFile := !t.isPath && t.what != "title" && t.what != "body" && !isReply(t)
	for range maxRedactions {
		characters = nil
		if !t.isPath {
			characters = checkCharacters(t)
		}
		if found, err = secrets.Secrets(ctx, t.label, t.value); err != nil || !isFile || len(stood) == 0 {
			return characters, found, old, err
		}
		lines := strings.SplitAfter(t.value, "\n")
		blanked := false
		was := slices.Clone(lines)
		for _, h := range slices.Backward(textscan.Hidden(t.value)) { // so that the columns before stay
			whole := stoodBefore(was, h.Line, h.Line, stood)
			if !whole && !wordStoodBefore(was, h, stood) {
				continue
			}
			if blanked = true; whole {
				blank(lines[h.Line-1 : h.Line])
			} else {
				line := []rune(lines[h.Line-1])
				lines[h.Line-1] = string(slices.Delete(line, h.Column-1, h.Column))
			}
			note := fmt.Sprintf("the %s has a character that a reviewer cannot see, %s, at line %d; it stood there before",
				t.what, h.Name, h.Line)
			if !slices.Contains(old, note) {
				old = append(old, note)
			}
		}
		for _, s := range found {
			if s.Rule != textscan.OwnTokenRule && stoodBefore(lines, s.Line, s.LastLine, stood) {
				old = append(old, fmt.Sprintf("the %s has what looks like a secret (%s) at line %d; it stood there before: tell a "+
					"person", t.what, s.Rule, s.Line))
				blank(lines[s.Line-1 : s.LastLine])
				blanked = true
			}
		}
		if !blanked {
			return characters, found, old, nil
		}
		t.value = strings.Join(lines, "") // what is left is judged again: no more than some findings are listed
	}
	return characters, found, old, nil
}

// wordStoodBefore reports whether the word that a hidden character is in stood in one of the texts: then the change has
// only left it as it was.
func wordStoodBefore(lines []string, h textscan.HiddenChar, texts []string) bool {
	line := []rune(lines[h.Line-1])
	from, to := h.Column-1, h.Column
	for from > 0 && !unicode.IsSpace(line[from-1]) {
		from--
	}
	for to < len(line) && !unicode.IsSpace(line[to]) {
		to++
	}
	word := string(line[from:to])
	return to-from > 1 && slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, word) })
}

// stoodBefore reports whether lines from first to last, from 1, stood together in one of the texts.
func stoodBefore(lines []string, first, last int, texts []string) bool {
	if first < 1 || last < first || last > len(lines) {
		return false
	}
	block := "\n" + strings.TrimSuffix(strings.Join(lines[first-1:last], ""), "\n") + "\n"
	return strings.Trim(block, "\n") != "" && !strings.Contains(block, redactedLine) &&
		slices.ContainsFunc(texts, func(text string) bool { return strings.Contains("\n"+text+"\n", block) })
}

// searchable returns the texts that are worth a search: those that are not refused for their size already. skipped says
// that a title or a path is not among them.
func searchable(asked CreateRequest, sizes []fault.Violation) (out []requestText, skipped bool) {
	for _, t := range asked.texts() {
		tooLong := false
		switch {
		case t.isPath || t.what == "title":
			tooLong = len(t.value) > maxSearched
			skipped = skipped || tooLong
		case t.what == "body":
			tooLong = len(t.value) > MaxBodyBytes()
		case isReply(t):
			tooLong = len(t.value) > maxReplyBytes()
		default:
			tooLong = slices.ContainsFunc(sizes, func(v fault.Violation) bool {
				return v.Path == t.label ||
					v.Rule == "total-size"
			})
		}
		if !tooLong {
			out = append(out, t)
		}
	}
	return out, skipped
}

// checkSpread looks for one of our own credentials in parts that stand in several texts of a request.
func checkSpread(secrets Secrets, all []requestText) *fault.Violation {
	values := make([]string, len(all))
	for i, t := range all {
		values[i] = t.value
	}
	holders := secrets.Spread(values)
	if len(holders) == 0 {
		return nil
	}
	var where []string
	for _, i := range holders {
		if i < len(all) {
			where = append(where, all[i].what)
		}
	}
	if len(where) == 0 {
		where = []string{"texts, read one after the other"}
	}
	return &fault.Violation{
		Code: fault.ContentDenied, Rule: "secret:" + textscan.OwnTokenRule,
		Message:    "parts of a credential of this server stand in the " + strings.Join(where, ", the "),
		Suggestion: "remove them; tell a person to revoke the credential",
	}
}

func checkSizes(files []FileRequest, maxFile, maxTotal int) []fault.Violation {
	var out []fault.Violation
	total := 0
	for _, f := range files {
		what, size := "content", 0
		if f.Content != nil {
			size = len(*f.Content)
		} else { // of a delete, or the edits could not be made
			what, size = "new text", len(newTexts(f.Edits))
		}
		total += size
		if size > maxFile {
			out = append(out, fault.Violation{
				Code: fault.ContentDenied, Path: f.Path, Rule: "file-size",
				Message:    fmt.Sprintf("the %s of %s has %d bytes; at most %d are accepted", what, quote(f.Path), size, maxFile),
				Suggestion: "keep procedures short, or split the file",
			})
		}
	}
	if total > maxTotal {
		out = append(out, fault.Violation{
			Code: fault.ContentDenied, Rule: "total-size",
			Message:    fmt.Sprintf("all files together have %d bytes; at most %d are accepted", total, maxTotal),
			Suggestion: "split the change by topic",
		})
	}
	return out
}

func checkCharacters(t requestText) []fault.Violation {
	var out []fault.Violation
	if at := strings.IndexByte(t.value, 0); at >= 0 {
		out = append(out, fault.Violation{
			Code: fault.ContentDenied, Path: t.label, Rule: "binary",
			Message:    fmt.Sprintf("the %s has a NUL byte (byte %d): binary content is not accepted", t.what, at),
			Suggestion: "propose text",
		})
		return out
	}
	for _, h := range textscan.Hidden(t.value) {
		out = append(out, fault.Violation{
			Code: fault.ContentDenied, Path: t.label, Rule: "hidden-character",
			Message: fmt.Sprintf("the %s has a character that a reviewer cannot see, %s, at line %d, column %d",
				t.what, h.Name, h.Line, h.Column),
			Suggestion: "remove the character",
		})
	}
	return out
}

func secretViolation(t requestText, secret textscan.Secret) fault.Violation {
	if secret.Rule == textscan.EncodedRule {
		return fault.Violation{
			Code: fault.ContentDenied, Path: t.label, Rule: "secret:" + secret.Rule,
			Message: fmt.Sprintf(
				"the %s has encoded text at line %d that cannot be searched for secrets: it is encoded too often, "+
					"or unpacks to too much", t.what, secret.Line),
			Suggestion: "propose it as plain text",
		}
	}
	if secret.Rule == textscan.CostlyRule {
		return fault.Violation{
			Code: fault.ContentDenied, Path: t.label, Rule: "secret:" + secret.Rule,
			Message: fmt.Sprintf("the %s has so much of what begins like a credential that it cannot be searched for secrets",
				t.what),
			Suggestion: "divide it into smaller files, or leave lists of keys and encoded text out",
		}
	}
	if secret.Rule == textscan.DividedRule {
		return fault.Violation{
			Code: fault.ContentDenied, Path: t.label, Rule: "secret:" + secret.Rule,
			Message: fmt.Sprintf(
				"the %s has, from line %d on, more words that may be parts of secrets than can be put together in all ways",
				t.what, secret.Line),
			Suggestion: "divide it into smaller files, or leave lists of keys out",
		}
	}
	return fault.Violation{
		Code: fault.ContentDenied, Path: t.label, Rule: "secret:" + secret.Rule,
		Message: fmt.Sprintf("the %s has what looks like a secret (%s) at line %d; a pull request would publish it",
			t.what, secret.Rule, secret.Line),
		Suggestion: "remove it and refer to where the secret is kept; if it was real, tell a person to revoke it",
	}
}

// checkKinds lets the validators of kinds of files judge what would be written. tooLarge are the violations so far: a
// file that is too large is not parsed.
func checkKinds(scope gitprovider.Scope, files []FileRequest, e *evidence,
	tooLarge []fault.Violation) []fault.Violation {
	var out []fault.Violation
	for _, f := range files {
		kind := scope.KindOf(f.Path)
		if kind == nil || f.Content == nil || slices.ContainsFunc(tooLarge,
			func(v fault.Violation) bool { return v.Path == f.Path || v.Path == "" }) {
			continue
		}
		for _, p := range kind.Validate(f.Path, e.textBefore(f.Path), *f.Content) {
			where := ""
			if p.Line > 0 {
				where = fmt.Sprintf(" at line %d", p.Line)
				if p.Column > 0 {
					where += fmt.Sprintf(", column %d", p.Column)
				}
			}
			out = append(out, fault.Violation{
				Code: fault.ContentDenied, Path: f.Path, Rule: "kind:" + kind.Name,
				Message: fmt.Sprintf("%s is broken%s: %s", quote(f.Path), where, p.Message), Suggestion: p.Suggestion,
			})
		}
	}
	return out
}
