package prflow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/content"
	"github.com/claudeops/claudeops/internal/fault"
)

// maxSearched bounds a title or a path that is searched for secrets, in bytes. What is longer is refused anyway (see
// MaxTitleRunes and gitprovider.ParsePath), costs nothing more, and is withheld from the record.
const maxSearched = 8 << 10

// text is something of a request that will be read by others: a file's content, the title, the body, a path.
type text struct {
	label  string // a file's path, "title" or "body"
	what   string // for messages
	value  string
	isPath bool // its characters are the scope gate's business
}

// texts lists all texts of a request, title and body first.
func (r *CreateRequest) texts() []text {
	out := []text{{label: "title", what: "title", value: r.Title}, {label: "body", what: "body", value: r.Body}}
	for i, f := range r.Files {
		if f.Content != nil {
			out = append(out, text{label: f.Path, what: "content of " + quote(f.Path), value: *f.Content})
		}
		at := fmt.Sprintf("files[%d].path", i)
		out = append(out, text{label: at, what: at, value: f.Path, isPath: true})
	}
	return out
}

// quote renders an untrusted name as printable ASCII, cut at 120 bytes.
func quote(s string) string {
	return fmt.Sprintf("%+q", s[:min(len(s), 120)])
}

// searchable are the texts that are worth a search: those that are not refused for their size already.
func (r *CreateRequest) searchable(sizes []fault.Violation) (out []text) {
	for _, t := range r.texts() {
		tooLong := false
		switch {
		case t.isPath || t.what == "title":
			tooLong = len(t.value) > maxSearched
			r.withheld = r.withheld || tooLong
		case t.what == "body":
			tooLong = len(t.value) > MaxBodyBytes()
		default:
			tooLong = slices.ContainsFunc(sizes, func(v fault.Violation) bool { return v.Path == t.label || v.Rule == "total-size" })
		}
		if !tooLong {
			out = append(out, t)
		}
	}
	return out
}

// checkContent is gate 5. The error is for a scanner that cannot work: the caller must then refuse.
func (s *Service) checkContent(ctx context.Context, r *CreateRequest) ([]fault.Violation, error) {
	out := checkSizes(r, s.Policy.Limits.MaxFileBytes, s.Policy.Limits.MaxTotalBytes)
	searchable := r.searchable(out)
	for _, t := range searchable {
		if !t.isPath {
			out = append(out, checkCharacters(t)...)
		}
		found, err := s.Secrets.Secrets(ctx, t.label, t.value)
		if err != nil {
			return nil, err
		}
		for _, secret := range found {
			out = append(out, secretViolation(t, secret))
			r.withheld = r.withheld || t.isPath || t.label == "title"
		}
	}
	found := func(v fault.Violation) bool { return v.Rule == "secret:"+content.OwnTokenRule }
	if v := s.checkSpread(searchable); v != nil && !slices.ContainsFunc(out, found) {
		out = append(out, *v)
		r.withheld = true // which part is where cannot be told
	}
	return out, nil
}

// checkSpread looks for one of our own credentials in parts that stand in several texts of a request.
func (s *Service) checkSpread(all []text) *fault.Violation {
	values := make([]string, len(all))
	for i, t := range all {
		values[i] = t.value
	}
	holders := s.Secrets.Spread(values)
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
		Code: fault.ContentDenied, Rule: "secret:" + content.OwnTokenRule,
		Message:    "parts of a credential of this server stand in the " + strings.Join(where, ", the "),
		Suggestion: "remove them; tell a person to revoke the credential",
	}
}

func checkSizes(r *CreateRequest, maxFile, maxTotal int) []fault.Violation {
	var out []fault.Violation
	total := 0
	for _, f := range r.Files {
		if f.Content == nil {
			continue
		}
		total += len(*f.Content)
		if len(*f.Content) > maxFile {
			out = append(out, fault.Violation{
				Code: fault.ContentDenied, Path: f.Path, Rule: "file-size",
				Message:    fmt.Sprintf("the content of %s has %d bytes; at most %d are accepted", quote(f.Path), len(*f.Content), maxFile),
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

func checkCharacters(t text) []fault.Violation {
	var out []fault.Violation
	if at := strings.IndexByte(t.value, 0); at >= 0 {
		out = append(out, fault.Violation{
			Code: fault.ContentDenied, Path: t.label, Rule: "binary",
			Message:    fmt.Sprintf("the %s has a NUL byte (byte %d): binary content is not accepted", t.what, at),
			Suggestion: "propose text",
		})
		return out
	}
	for _, h := range content.Hidden(t.value) {
		out = append(out, fault.Violation{
			Code: fault.ContentDenied, Path: t.label, Rule: "hidden-character",
			Message: fmt.Sprintf("the %s has a character that a reviewer cannot see, %s, at line %d, column %d",
				t.what, h.Name, h.Line, h.Column),
			Suggestion: "remove the character",
		})
	}
	return out
}

func secretViolation(t text, secret content.Secret) fault.Violation {
	if secret.Rule == content.EncodedRule {
		return fault.Violation{
			Code: fault.ContentDenied, Path: t.label, Rule: "secret:" + secret.Rule,
			Message: fmt.Sprintf("the %s has encoded text at line %d that cannot be searched for secrets: it is encoded too often, "+
				"or unpacks to too much", t.what, secret.Line),
			Suggestion: "propose it as plain text",
		}
	}
	return fault.Violation{
		Code: fault.ContentDenied, Path: t.label, Rule: "secret:" + secret.Rule,
		Message: fmt.Sprintf("the %s has what looks like a secret (%s) at line %d; a pull request would publish it",
			t.what, secret.Rule, secret.Line),
		Suggestion: "remove it and refer to where the secret is kept; if it was real, tell a person to revoke it",
	}
}
