// Package sources holds the places that the operator admits beside those of their own configuration: registries, git
// repositories and folders. A file of a project, a repository or a package may choose among them; it never adds one
// (docs/guides/sources.md).
package sources

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// MaxAddress bounds an address, in bytes.
const MaxAddress = 2048

// Source is a place that the operator admits.
type Source struct {
	// Origin is the address that admits itself and everything below it, in the form of OriginOf.
	Origin string `yaml:"origin" json:"origin"`
	// TokenEnv names the variable of the environment whose value is sent to the origin's host; "" for none.
	TokenEnv string `yaml:"token_env,omitempty" json:"token_env,omitempty"`
	// Private admits that the host has an address of this machine or of a private network.
	Private bool `yaml:"private,omitempty" json:"private,omitempty"`
}

// Check says what is wrong with a source, and nil if nothing is. It brings no origin into another form.
func (s Source) Check() error {
	origin, err := OriginOf(s.Origin)
	switch {
	case err != nil:
		return fmt.Errorf("the origin %q %w", s.Origin, err)
	case origin != s.Origin:
		return fmt.Errorf("the origin %q is written %q", s.Origin, origin)
	case s.TokenEnv == "":
		return nil
	case !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`).MatchString(s.TokenEnv):
		return fmt.Errorf("token_env: %q is not a valid variable name", s.TokenEnv)
	case Reserved(s.TokenEnv):
		return fmt.Errorf(
			"token_env: %s holds a secret of Claude Ops or of the model, which is sent to no source; use a variable of its own",
			s.TokenEnv)
	case !confidential(s.Origin):
		return fmt.Errorf("token_env: a token is sent over https only, and to this machine; %s is neither", s.Origin)
	}
	return nil
}

func confidential(address string) bool {
	u, err := url.Parse(address)
	return err == nil && transport.IsConfidential(u)
}

// List is the sources that the operator admits.
type List []Source

// Find returns the source that admits an address: an https, http, ssh, git or file URL, git's short form of ssh
// (user@host:path) or an absolute path. Scheme, user, host and port are equal to those of the origin, and the path is
// that of the origin or lies below it. Of several sources the one with the longest origin is found. Addresses are
// compared as texts: nothing is looked up, and no link is followed.
func (l List) Find(address string) (found Source, ok bool) {
	p, err := parseAddress(address)
	if err != nil {
		return Source{}, false
	}
	for _, s := range l {
		origin, err := parseAddress(s.Origin)
		if err == nil && origin.admits(p) && (!ok || len(s.Origin) > len(found.Origin)) {
			found, ok = s, true
		}
	}
	return found, ok
}

// Pick lets somebody who is not the operator choose an address: one that a source admits is the operator's word.
func (l List) Pick(wanted trust.Wish[string]) (chosen trust.Operator[string], by Source, ok bool) {
	if by, ok = l.Find(wanted.Wanted()); !ok {
		return chosen, by, false
	}
	return trust.Said(wanted.Wanted()), by, true
}

// OriginOf returns an address in the form in which the operator admits it: scheme and host in small letters, without
// the scheme's default port, no slash at the end. It returns an error for a malformed address, and for one with a
// password, a query, a fragment, or a path that is not canonical.
func OriginOf(address string) (string, error) {
	p, err := parseAddress(address)
	if err != nil {
		return "", err
	}
	if p.more {
		return "", errors.New("has a query or a fragment, which no source has")
	}
	return p.String(), nil
}

// Refusal says that only a file of a project names an address, and how a person admits it.
func Refusal(address string) string {
	origin, err := OriginOf(address)
	if err != nil {
		return fmt.Sprintf("not used: only a file of the project names %q, which %s", clip(address), err)
	}
	return fmt.Sprintf(
		"not used: only a file of the project names %s; a person who trusts it runs: claudeops sources allow %s", origin,
		shellQuote(origin))
}

func clip(text string) string { return text[:min(len(text), 200)] }

// shellQuote returns a text as one word of a shell's command line.
func shellQuote(text string) string {
	if regexp.MustCompile(`^[A-Za-z0-9@%_+=:,./-]+$`).MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// parsedAddress is an address, taken apart.
type parsedAddress struct {
	scheme, user, host string // host with its port, if it is not the scheme's own
	path               string // "" or one that begins with a slash and does not end with one
	more               bool   // there is a query or a fragment
}

func (p parsedAddress) String() string {
	if p.user != "" {
		return p.scheme + "://" + p.user + "@" + p.host + p.path
	}
	return p.scheme + "://" + p.host + p.path
}

// admits reports whether another place is this one or lies below it. A repository may be written with and without
// ".git" at its end.
func (p parsedAddress) admits(other parsedAddress) bool {
	if p.scheme != other.scheme || p.user != other.user || p.host != other.host {
		return false
	}
	return other.path == p.path || other.path == p.path+".git" || strings.HasPrefix(other.path, p.path+"/")
}

// defaultPorts returns the ports that an address need not name.
func defaultPorts() map[string]string {
	return map[string]string{"https": "443", "http": "80", "ssh": "22", "git": "9418", "file": ""}
}

// shortSSH matches git's short form of an address over ssh.
func shortSSH() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z0-9._-]+)@([A-Za-z0-9.-]+):([^/].*|/.*)$`)
}

func parseAddress(address string) (parsedAddress, error) {
	switch {
	case address == "" || len(address) > MaxAddress:
		return parsedAddress{}, fmt.Errorf("must have 1 to %d bytes", MaxAddress)
	case strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }):
		return parsedAddress{}, errors.New("has characters that no address has")
	case strings.HasPrefix(address, "/"):
		address = (&url.URL{Scheme: "file", Path: address}).String()
	}
	if m := shortSSH().FindStringSubmatch(address); m != nil && !strings.Contains(address, "://") {
		address = "ssh://" + m[1] + "@" + m[2] + "/" + strings.TrimPrefix(m[3], "/")
	}
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" || u.Scheme == "" {
		return parsedAddress{}, errors.New("is not a URL, a git address or an absolute path")
	}
	port, known := defaultPorts()[u.Scheme]
	p := parsedAddress{scheme: u.Scheme, host: strings.ToLower(u.Host), path: strings.TrimSuffix(u.Path, "/"),
		more: u.RawQuery != "" || u.ForceQuery || u.Fragment != ""}
	if u.Port() == port && port != "" {
		p.host = strings.TrimSuffix(p.host, ":"+port)
	}
	if _, has := u.User.Password(); has {
		return parsedAddress{}, errors.New("holds a password, which no address does")
	}
	p.user = u.User.Username()
	switch {
	case !known:
		return parsedAddress{}, fmt.Errorf("has the scheme %q; there are https, http, ssh, git and file", u.Scheme)
	case p.user != "" && p.scheme != "ssh":
		return parsedAddress{}, errors.New("names a user, which only an address over ssh does")
	case p.scheme == "file" && (p.host != "" || p.path == ""):
		return parsedAddress{}, errors.New("names a host, or no folder")
	case p.scheme != "file" && (u.Hostname() == "" || strings.HasSuffix(p.host, ":")):
		return parsedAddress{}, errors.New("names no host")
	case !isCanonicalURL(u):
		return parsedAddress{}, errors.New("has a path with empty, . or .. parts, or with encoded slashes or dots")
	}
	return p, nil
}

// isCanonicalURL reports whether the path of an address is written in the one way that all programs understand alike.
func isCanonicalURL(u *url.URL) bool {
	raw, clean := strings.ToLower(u.EscapedPath()), strings.TrimSuffix(u.Path, "/")
	hidden := slices.ContainsFunc([]string{"%2f", "%5c", "%2e", "%25", "%00"},
		func(s string) bool { return strings.Contains(raw, s) })
	return !hidden && !strings.ContainsFunc(u.Path, func(r rune) bool { return r < ' ' || r == 0x7f }) &&
		(clean == "" || path.Clean(clean) == clean && clean[0] == '/')
}

// Bounds of a list.
const (
	maxSources   = 1000
	maxFileBytes = 1 << 20
)

// ErrListed and ErrNotListed say that a file has a source already, or does not have it.
var (
	ErrListed    = errors.New("is on the list already")
	ErrNotListed = errors.New("is not on the list")
)

// File is the sources that persons have allowed by a command: a YAML file with one key, sources. It is safe for
// concurrent use, by several processes too.
type File struct{ Path string }

// fileContent is the content of a File.
type fileContent struct {
	Sources List `yaml:"sources"`
}

// Load reads the list. A file that does not exist is an empty one; one that is broken is an error, and no list.
func (f File) Load() (List, error) {
	if f.Path == "" {
		return nil, nil
	}
	text, _, err := files.ReadPath(f.Path, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the list of sources cannot be read: %w", err)
	}
	var read fileContent
	if _, err := strictyaml.Decode(text, &read, strictyaml.Options{}); err != nil {
		return nil, fmt.Errorf("the list of sources %s is not YAML with the key sources, and in it origin, token_env and "+
			"private alone: %w", f.Path, err)
	}
	if err := read.Sources.Check(); err != nil {
		return nil, fmt.Errorf("the list of sources %s is broken: %w", f.Path, err)
	}
	return read.Sources, nil
}

// Check says what is wrong with a list: a source that is none, one that is there twice, too many.
func (l List) Check() error {
	if len(l) > maxSources {
		return fmt.Errorf("there are %d sources; %d is the most", len(l), maxSources)
	}
	seen := map[string]bool{}
	for i, s := range l {
		if err := s.Check(); err != nil {
			return fmt.Errorf("sources[%d]: %w", i, err)
		}
		if seen[s.Origin] {
			return fmt.Errorf("sources[%d]: %s is there twice", i, s.Origin)
		}
		seen[s.Origin] = true
	}
	return nil
}

// Add puts a source on the list; ErrListed if its origin is there with the same settings. Other settings replace those
// that were there.
func (f File) Add(s Source) error {
	if err := s.Check(); err != nil {
		return err
	}
	return f.rewrite(func(l List) (List, error) {
		at := slices.IndexFunc(l, func(o Source) bool { return o.Origin == s.Origin })
		switch {
		case at < 0:
			return append(l, s), nil
		case l[at] == s:
			return nil, fmt.Errorf("%s %w", s.Origin, ErrListed)
		}
		l[at] = s
		return l, nil
	})
}

// Remove takes a source off the list; ErrNotListed if it is not there.
func (f File) Remove(origin string) error {
	return f.rewrite(func(l List) (List, error) {
		at := slices.IndexFunc(l, func(o Source) bool { return o.Origin == origin })
		if at < 0 {
			return nil, fmt.Errorf("%s %w", origin, ErrNotListed)
		}
		return slices.Delete(l, at, at+1), nil
	})
}

// rewrite replaces the file at once, while no other process changes it. The folder must exist.
func (f File) rewrite(edit func(List) (List, error)) error {
	lock, err := files.OpenLock(f.Path + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	if taken, err := files.TryLock(lock, true); err != nil || !taken {
		return errors.Join(err, errors.New("another process changes the list of sources; try again"))
	}
	l, err := f.Load()
	if err != nil {
		return err
	}
	if l, err = edit(l); err != nil {
		return err
	}
	if err := l.Check(); err != nil {
		return err
	}
	text, err := yaml.Marshal(fileContent{l})
	if err != nil {
		return err
	}
	return files.Replace(f.Path, text, 0o600)
}

// Reserved reports whether a variable of the environment holds or may hold a secret of Claude Ops, of a forge or of the
// model: it is never sent to a registry, even if a source names it. Letter case does not count, as on Windows.
func Reserved(variable string) bool {
	name := strings.ToUpper(variable)
	prefixed := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	return slices.ContainsFunc([]string{
		"CLAUDEOPS_", "ANTHROPIC_", "CLAUDE_", "GITHUB_", "GH_", "GITEA_", "FORGEJO_", "AWS_", "GOOGLE_", "AZURE_", "OPENAI_",
		"SSH_",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", // their addresses may hold a password
		"FRACTARY_REGISTRY_TOKEN_FILE",
	}, prefixed) || slices.Contains([]string{"PGPASSWORD", "DATABASE_URL"}, name)
}
