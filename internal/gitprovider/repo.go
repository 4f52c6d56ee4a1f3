package gitprovider

import (
	"fmt"
	"net/url"
	"strings"
)

// RepoRef names a repository: by owner and name, and, if the caller knows it, by clone URL.
type RepoRef struct {
	Owner string
	Name  string
	// Remote is the parsed clone URL, or nil.
	Remote *Remote
}

// String returns owner/name.
func (r RepoRef) String() string { return r.Owner + "/" + r.Name }

// maxRepoPart is the longest owner or repository name, in bytes; GitHub allows 39 and 100, Gitea 40 and 100.
const maxRepoPart = 100

// CheckRepoPart reports why s cannot be the owner or the name of a repository, or nil. The accepted form holds for
// every provider, and is a plain folder name for the local one.
func CheckRepoPart(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("is empty")
	case len(s) > maxRepoPart:
		return fmt.Errorf("is longer than %d bytes", maxRepoPart)
	case s[0] == '.' || s[0] == '-' || s[len(s)-1] == '.':
		return fmt.Errorf("begins with a dot or a hyphen, or ends with a dot")
	case strings.HasSuffix(strings.ToLower(s), ".git"):
		return fmt.Errorf("ends with .git; give the name without it")
	}
	for _, r := range s {
		if !isPathRune(r) {
			return fmt.Errorf("has the character %s; letters, digits, '.', '_' and '-' are accepted", runeName(r))
		}
	}
	return nil
}

// Remote is a parsed clone URL.
type Remote struct {
	// Host is the lower-case host, with the port when the URL names one. HostLocal for file:// URLs.
	Host string
	// Path is the part after the host, without a leading slash, a trailing slash and a .git ending; for file:// URLs the
	// absolute path with its leading slash.
	Path string
}

// HostLocal stands for the host of file:// URLs.
const HostLocal = "file://"

// ParseRemote understands https, http, ssh and git URLs, the scp form git@host:owner/name, and file:// URLs. A URL that
// carries a password or a token is refused: it would be recorded.
func ParseRemote(s string) (*Remote, error) {
	if !strings.Contains(s, "://") {
		return parseScpForm(s)
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("is not a URL")
	}
	if _, hasPassword := u.User.Password(); hasPassword {
		return nil, fmt.Errorf("carries a password; give it without")
	}
	if u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return nil, fmt.Errorf("has a query or a fragment; give the plain clone URL")
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" && u.Host != "localhost" {
			return nil, fmt.Errorf("names a host in a file:// URL")
		}
		return &Remote{Host: HostLocal, Path: trimRepoPath(u.Path)}, nil
	case "https", "http", "git":
		if u.User != nil {
			return nil, fmt.Errorf("carries a user name, which may be a token; give it without")
		}
	case "ssh":
	default:
		return nil, fmt.Errorf("has the scheme %s; https, ssh and file are understood", printable(u.Scheme))
	}
	if u.Host == "" {
		return nil, fmt.Errorf("names no host")
	}
	return &Remote{Host: strings.ToLower(u.Host), Path: strings.TrimPrefix(trimRepoPath(u.Path), "/")}, nil
}

func parseScpForm(s string) (*Remote, error) {
	userHost, repoPath, ok := strings.Cut(s, ":")
	_, host, hasUser := strings.Cut(userHost, "@")
	if !hasUser {
		host = userHost
	}
	if !ok || host == "" || repoPath == "" || strings.ContainsAny(host, "/\\ ") || strings.HasPrefix(s, "-") ||
		strings.HasPrefix(repoPath, ":") {
		return nil, fmt.Errorf("is not a clone URL; give one such as https://git.example.org/owner/name.git")
	}
	return &Remote{Host: strings.ToLower(host), Path: strings.TrimPrefix(trimRepoPath(repoPath), "/")}, nil
}

func trimRepoPath(p string) string {
	return strings.TrimSuffix(strings.TrimSuffix(p, "/"), ".git")
}

// Names reports whether the remote's path ends in owner/name, letter case aside: a clone URL that names another
// repository than the request's must not decide where a change goes.
func (r *Remote) Names(owner, name string) bool {
	want := strings.ToLower(owner + "/" + name)
	have := strings.ToLower(r.Path)
	return have == want || strings.HasSuffix(have, "/"+want)
}

// NewRepoRef checks and parses a repository given by a caller. The errors map the argument's name to what is wrong
// with it; nil when all is well.
func NewRepoRef(owner, name, cloneURL string) (RepoRef, map[string]error) {
	problems := map[string]error{}
	ref := RepoRef{Owner: owner, Name: name}
	if err := CheckRepoPart(owner); err != nil {
		problems["repo_owner"] = err
	}
	if err := CheckRepoPart(name); err != nil {
		problems["repo_name"] = err
	}
	if cloneURL != "" {
		remote, err := ParseRemote(cloneURL)
		switch {
		case err != nil:
			problems["clone_url"] = err
		case len(problems) == 0 && !remote.Names(owner, name):
			problems["clone_url"] = fmt.Errorf("names another repository than repo_owner and repo_name")
		default:
			ref.Remote = remote
		}
	}
	if len(problems) == 0 {
		return ref, nil
	}
	return ref, problems
}
