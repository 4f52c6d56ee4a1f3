package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/git"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// found holds the defaults that init offers: the repository that the working folder was cloned from, and logins of
// other programs for the forges.
type found struct {
	forge   string // "github", "gitea"; "" if nothing was found
	address string // of Gitea or Forgejo; the scheme is a guess
	repo    string // owner/name

	gh  string            // the path of GitHub's command line; "" if it is not installed
	tea map[string]string // tokens of Gitea's command line by host
	env func(string) (string, bool)
}

// Bounds of looking around.
const (
	lookTime    = 5 * time.Second
	maxTeaFile  = 64 << 10
	maxGHAnswer = 4 << 10
)

// lookAround never fails: what cannot be read is not offered. No token is asked for here.
func lookAround(ctx context.Context, a *commandLine) found {
	f := found{env: a.process, tea: map[string]string{}}
	path, _ := a.process("PATH")
	runner := &git.Runner{Env: []string{"PATH=" + path}}
	result, err := runner.Run(ctx, git.Call{Dir: ".", Args: []string{"config", "--get", "remote.origin.url"}},
		git.Limits{Time: lookTime, Output: 4 << 10})
	if err == nil && result.Code == 0 {
		f.clonedFrom(strings.TrimSpace(string(result.Out)))
	}
	f.gh, _ = processtree.Find("gh")
	f.readTea()
	return f
}

// clonedFrom takes forge and repository from a clone URL. A user name or token in it is left out.
func (f *found) clonedFrom(address string) {
	if u, err := url.Parse(address); err == nil && u.User != nil && u.Scheme != "ssh" {
		u.User = nil
		address = u.String()
	}
	remote, err := gitprovider.ParseRemote(address)
	if err != nil || remote.Host == gitprovider.HostLocal {
		return
	}
	parts := strings.Split(remote.Path, "/")
	if len(parts) < 2 {
		return
	}
	f.forge, f.repo = "gitea", strings.Join(parts[len(parts)-2:], "/")
	if remote.Host == "github.com" {
		f.forge = "github"
		return
	}
	host, _, _ := strings.Cut(remote.Host, ":") // a port of ssh is not that of the pages
	scheme := "https"
	if strings.HasPrefix(address, "http") {
		host = remote.Host
		scheme, _, _ = strings.Cut(address, ":")
	}
	f.address = scheme + "://" + strings.Join(append([]string{host}, parts[:len(parts)-2]...), "/")
}

func (f *found) describe(w io.Writer) {
	if f.repo == "" {
		return
	}
	where := f.address
	if f.forge == "github" {
		where = "https://github.com"
	}
	fmt.Fprintf(w, "This folder was cloned from %s at %s: Enter takes what it says.\n\n", f.repo, where)
}

// teaConfig is the file of Gitea's command line, as far as it is read here.
type teaConfig struct {
	Logins []struct {
		URL   string `yaml:"url"`
		Token string `yaml:"token"`
	} `yaml:"logins"`
}

func (f *found) readTea() {
	folder, _ := f.env("XDG_CONFIG_HOME")
	if folder == "" {
		home, _ := f.env("HOME")
		folder = filepath.Join(home, ".config")
	}
	text, _, err := files.ReadPath(filepath.Join(folder, "tea", "config.yml"), maxTeaFile)
	var config teaConfig
	if err != nil || yaml.Unmarshal(text, &config) != nil {
		return
	}
	for _, login := range config.Logins {
		if u, err := url.Parse(login.URL); err == nil && login.Token != "" {
			f.tea[u.Host] = login.Token
		}
	}
}

// token offers the login of tea; "" if there is none, or the person would rather give another one.
func (f *found) token(ctx context.Context, ask questions, forge, address string) (string, error) {
	u, err := url.Parse(address)
	if forge != "gitea" || err != nil || f.tea[u.Host] == "" {
		return "", nil
	}
	yes, err := ask.agree(ctx, "Use the token that tea, Gitea's command line, has for "+u.Host+
		"? Pull requests are then opened in your own name, and you cannot approve them.", false)
	if err != nil || !yes {
		return "", err
	}
	return f.tea[u.Host], nil
}

func (f *found) ghToken(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	cmd := processtree.Cmd(ctx, processtree.Command{Path: f.gh, Args: []string{"gh", "auth", "token"}})
	for _, name := range []string{"HOME", "PATH", "XDG_CONFIG_HOME", "GH_CONFIG_DIR", "DBUS_SESSION_BUS_ADDRESS"} {
		if value, ok := f.env(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("run gh auth login first (%w)", err)
	}
	return strings.TrimSpace(string(out[:min(len(out), maxGHAnswer)])), nil
}
