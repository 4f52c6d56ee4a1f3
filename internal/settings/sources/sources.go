// Package sources holds the places that the operator admits beside those of their own configuration: registries, git
// repositories and folders. A file of a project, a repository or a package may choose among them; it never adds one
// (docs/guides/sources.md).
package sources

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/base/weborigin"
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
		return fmt.Errorf("token_env: %q is no name of a variable", s.TokenEnv)
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
	return err == nil && weborigin.Confidential(u)
}

// List is the sources that the operator admits.
type List []Source

// Find returns the source that admits an address: an https, http, ssh, git or file URL, git's short form of ssh
// (user@host:path) or an absolute path. Scheme, user, host and port are equal to those of the origin, and the path is
// that of the origin or lies below it. Of several sources the one with the longest origin is found. Addresses are
// compared as texts: nothing is looked up, and no link is followed.
func (l List) Find(address string) (found Source, ok bool) {
	p, err := parse(address)
	if err != nil {
		return Source{}, false
	}
	for _, s := range l {
		origin, err := parse(s.Origin)
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
	p, err := parse(address)
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
		quoted(origin))
}

func clip(text string) string { return text[:min(len(text), 200)] }

// quoted returns a text as one word of a shell's command line.
func quoted(text string) string {
	if regexp.MustCompile(`^[A-Za-z0-9@%_+=:,./-]+$`).MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// place is an address, taken apart.
type place struct {
	scheme, user, host string // host with its port, if it is not the scheme's own
	path               string // "" or one that begins with a slash and does not end with one
	more               bool   // there is a query or a fragment
}

func (p place) String() string {
	if p.user != "" {
		return p.scheme + "://" + p.user + "@" + p.host + p.path
	}
	return p.scheme + "://" + p.host + p.path
}

// admits reports whether another place is this one or lies below it. A repository may be written with and without
// ".git" at its end.
func (p place) admits(other place) bool {
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

func parse(address string) (place, error) {
	switch {
	case address == "" || len(address) > MaxAddress:
		return place{}, fmt.Errorf("must have 1 to %d bytes", MaxAddress)
	case strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }):
		return place{}, errors.New("has characters that no address has")
	case strings.HasPrefix(address, "/"):
		address = (&url.URL{Scheme: "file", Path: address}).String()
	}
	if m := shortSSH().FindStringSubmatch(address); m != nil && !strings.Contains(address, "://") {
		address = "ssh://" + m[1] + "@" + m[2] + "/" + strings.TrimPrefix(m[3], "/")
	}
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" || u.Scheme == "" {
		return place{}, errors.New("is no URL, no address of git and no absolute path")
	}
	port, known := defaultPorts()[u.Scheme]
	p := place{scheme: u.Scheme, host: strings.ToLower(u.Host), path: strings.TrimSuffix(u.Path, "/"),
		more: u.RawQuery != "" || u.ForceQuery || u.Fragment != ""}
	if u.Port() == port && port != "" {
		p.host = strings.TrimSuffix(p.host, ":"+port)
	}
	if _, has := u.User.Password(); has {
		return place{}, errors.New("holds a password, which no address does")
	}
	p.user = u.User.Username()
	switch {
	case !known:
		return place{}, fmt.Errorf("has the scheme %q; there are https, http, ssh, git and file", u.Scheme)
	case p.user != "" && p.scheme != "ssh":
		return place{}, errors.New("names a user, which only an address over ssh does")
	case p.scheme == "file" && (p.host != "" || p.path == ""):
		return place{}, errors.New("names a host, or no folder")
	case p.scheme != "file" && (u.Hostname() == "" || strings.HasSuffix(p.host, ":")):
		return place{}, errors.New("names no host")
	case !canonical(u):
		return place{}, errors.New("has a path with empty, . or .. parts, or with encoded slashes or dots")
	}
	return p, nil
}

// canonical reports whether the path of an address is written in the one way that all programs understand alike.
func canonical(u *url.URL) bool {
	raw, clean := strings.ToLower(u.EscapedPath()), strings.TrimSuffix(u.Path, "/")
	hidden := slices.ContainsFunc([]string{"%2f", "%5c", "%2e", "%25", "%00"},
		func(s string) bool { return strings.Contains(raw, s) })
	return !hidden && !strings.ContainsFunc(u.Path, func(r rune) bool { return r < ' ' || r == 0x7f }) &&
		(clean == "" || path.Clean(clean) == clean && clean[0] == '/')
}
