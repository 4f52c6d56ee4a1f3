package transport

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Credential gives the tokens that requests carry. It must be safe for concurrent use.
type Credential interface {
	// Token returns the token for a request of this use. Its error is a *fault.Error, and the request is not sent then.
	Token(ctx context.Context, use Use) (string, error)
	// Refused is called when the forge answered 401 to a token that Token gave for the use. It reports whether Token may
	// give another one now.
	Refused(use Use, token string) bool
}

// Use says what a request is for. A credential that makes its tokens to measure (githubapp) reads it; a token that is
// given in the configuration is the same for every use.
type Use struct {
	Owner, Repo string // the repository that the request is about
	Write       bool   // the request may change something
	Members     bool   // the request names teams of the owner
}

type useKey struct{}

// For notes in the context what the requests made with it are for.
func For(ctx context.Context, use Use) context.Context { return context.WithValue(ctx, useKey{}, use) }

// ForWrite notes that the requests made with the context may change something, beside what For has noted.
func ForWrite(ctx context.Context) context.Context {
	use := UseOf(ctx)
	use.Write = true
	return For(ctx, use)
}

// ForMembers notes that the requests made with the context name teams, beside what For has noted.
func ForMembers(ctx context.Context) context.Context {
	use := UseOf(ctx)
	use.Members = true
	return For(ctx, use)
}

// UseOf returns the use noted by For, ForWrite and ForMembers.
func UseOf(ctx context.Context) Use {
	use, _ := ctx.Value(useKey{}).(Use)
	return use
}

// fixed is a token that stays the same.
type fixed string

// Token implements Credential.
func (f fixed) Token(context.Context, Use) (string, error) { return string(f), nil }

// Refused implements Credential.
func (fixed) Refused(Use, string) bool { return false }

// Source is a secret that may be replaced while the process runs, such as a file (package secretfile).
type Source interface {
	// Value is the secret as it is now.
	Value() string
	// Reread looks again, also if nothing seems to have changed.
	Reread() string
}

// Replaceable returns the Credential of a token that may be replaced while the process runs.
func Replaceable(source Source) Credential { return replaceable{source} }

type replaceable struct{ source Source }

// Token implements Credential.
func (r replaceable) Token(context.Context, Use) (string, error) { return r.source.Value(), nil }

// Refused implements Credential.
func (r replaceable) Refused(_ Use, token string) bool { return r.source.Reread() != token }

// requestToken returns the token for a request, "" for one that goes without.
func (t *Transport) requestToken(c *call) (string, *tryFailure) {
	if !c.toForge || t.opt.Credential == nil {
		return "", nil
	}
	ctx := c.req.Context()
	token, err := t.opt.Credential.Token(ctx, UseOf(ctx))
	if err != nil {
		return "", &tryFailure{fault: t.Failure(err)}
	}
	if badToken(token) {
		return "", &tryFailure{fault: malformedToken(t.opt.Variables.Token)}
	}
	t.scrub.learn(token)
	return token, nil
}

// badToken reports whether a token holds what no header may have.
func badToken(token string) bool {
	return strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

func malformedToken(name string) *fault.Error {
	return fault.New(fault.ProviderDisabled,
		"%s holds a space, a line break or another character that no token has; correct it", name)
}

// renewToken reports whether a refused request is worth another try since the credential may give another token now. A
// request that was answered 401 has changed nothing, so this holds for writes, too.
func (t *Transport) renewToken(c *call) bool {
	if c.renewed || c.token == "" || t.opt.Credential == nil {
		return false
	}
	c.renewed = true
	return t.opt.Credential.Refused(UseOf(c.req.Context()), c.token)
}

// redacted stands where a secret stood.
const redacted = "[redacted]"

// scrubber takes the tokens, and what may hold secrets besides, out of texts. It is safe for concurrent use.
type scrubber struct {
	userinfo *regexp.Regexp
	query    *regexp.Regexp

	mu     sync.RWMutex
	tokens []*tokenForms // the last used in front
}

// tokenForms holds the forms in which a token may be written.
type tokenForms struct {
	token string
	plain func() *regexp.Regexp // in any escaping, compiled for the first text. Tokens are ASCII, see badToken
	cores []string              // what it looks like inside base64, at each of the three alignments
}

// maxTokens bounds how many tokens are looked for: those of requests under way and of many before. Tokens of the
// configuration and of installations are looked for in everything that leaves the process besides (content.Scanner).
const maxTokens = 64

// minCore is the number of base64 characters that identify the token with certainty.
const minCore = 6

func newScrubber() *scrubber {
	return &scrubber{
		userinfo: regexp.MustCompile(`://[^/?#\s"]*@`),
		query:    regexp.MustCompile(`(https?://[^\s"?]*)\?[^\s"]*`),
	}
}

// learn adds a token to those that are taken out.
func (s *scrubber) learn(token string) {
	if token == "" {
		return
	}
	same := func(f *tokenForms) bool { return f.token == token }
	s.mu.RLock()
	first := len(s.tokens) > 0 && same(s.tokens[0])
	s.mu.RUnlock()
	if first {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var forms *tokenForms
	if at := slices.IndexFunc(s.tokens, same); at >= 0 {
		forms = s.tokens[at]
	} else {
		forms = formsOf(token)
	}
	others := slices.DeleteFunc(slices.Clone(s.tokens), same)
	s.tokens = append([]*tokenForms{forms}, others[:min(len(others), maxTokens-1)]...)
}

func (s *scrubber) tokenList() []*tokenForms {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.tokens
}

func formsOf(token string) *tokenForms {
	f := &tokenForms{token: token, plain: sync.OnceValue(func() *regexp.Regexp { return anyEscaping(token) })}
	for shift := range 3 {
		core := coreOf(token, shift)
		if len(core) >= minCore {
			f.cores = append(f.cores, core, strings.NewReplacer("+", "-", "/", "_").Replace(core))
		}
	}
	return f
}

// coreOf returns the base64 of the token after shift bytes of something else, without the characters at both ends that
// depend on the neighbours too.
func coreOf(token string, shift int) string {
	encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + token))
	begin, end := (shift*8+5)/6, (shift+len(token))*8/6
	return encoded[begin:max(begin, end)]
}

// anyEscaping matches the token however a URL or a JSON string writes its characters: as they are, percent-encoded in
// either case, once or repeatedly, or as \u00xx.
func anyEscaping(token string) *regexp.Regexp {
	var pattern strings.Builder
	for i := range len(token) {
		fmt.Fprintf(&pattern, `(?:%s|(?i:(?:%%(?:25)*|\\u00)%02x))`, regexp.QuoteMeta(token[i:i+1]), token[i])
	}
	return regexp.MustCompile(pattern.String())
}

// scrub returns s without the tokens in any of its forms, without user information in addresses and without the queries
// of web addresses.
func (s *scrubber) scrub(in string) string {
	for _, token := range s.tokenList() {
		if strings.ContainsAny(in, `%\`) {
			in = token.plain().ReplaceAllString(in, redacted)
		} else { // nothing is escaped
			in = strings.ReplaceAll(in, token.token, redacted)
		}
		for _, core := range token.cores {
			in = cutRuns(in, core)
		}
	}
	in = s.userinfo.ReplaceAllString(in, "://")
	return s.query.ReplaceAllString(in, "$1")
}

// cutRuns replaces each run of base64 characters that holds core.
func cutRuns(in, core string) string {
	var out strings.Builder
	for {
		at := strings.Index(in, core)
		if at < 0 {
			return out.String() + in
		}
		begin, end := at, at+len(core)
		for begin > 0 && base64Char(in[begin-1]) {
			begin--
		}
		for end < len(in) && base64Char(in[end]) {
			end++
		}
		out.WriteString(in[:begin] + redacted)
		in = in[end:]
	}
}

func base64Char(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("+/-_=", c) >= 0
}

// err returns an error with the scrubbed text of e, in which errors.Is finds what it finds in e. e itself, whose text
// is not scrubbed, cannot be reached through it.
func (s *scrubber) err(e error) error {
	if e == nil {
		return nil
	}
	return &scrubbedError{text: s.scrub(e.Error()), of: e}
}

type scrubbedError struct {
	text string
	of   error
}

// Error implements error.
func (e *scrubbedError) Error() string { return e.text }

// Is lets errors.Is look into the original.
func (e *scrubbedError) Is(target error) bool { return errors.Is(e.of, target) }

// GoString keeps the original out of %#v.
func (e *scrubbedError) GoString() string { return e.text }

// Scrub returns text without the token in any common encoding, without passwords in addresses and without the queries
// of web addresses. It is for adapters that show what a forge said.
func (t *Transport) Scrub(text string) string { return t.scrub.scrub(text) }

// Learn registers a secret that is not a token, such as a code in a path, to be removed from texts and logs like one.
func (t *Transport) Learn(secret string) { t.scrub.learn(secret) }
