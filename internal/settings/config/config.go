// Package config turns environment and flags into one immutable Config. It is the only package that reads the
// environment.
package config

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/driver"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/system/secretfile"
)

// Config is everything that the operator decides.
type Config struct {
	Permissions   Permissions
	Forges        Forges
	Mounted       Mounted
	Records       Records
	Notifications Notifications
	Web           Web
	Sessions      Sessions
	Tools         Tools
	// EnvironmentFile is the file of settings and tokens that the environment lacks, whether it exists or not; "" for
	// none. Load does not know it.
	EnvironmentFile string

	SessionID string // agent's session that this process serves, "" for none; set by the program that starts it
	// Person is the token of the person at the command line; none where they are the user of the operating system.
	Person  driver.Secret
	Secrets []string // values that must never appear in a text
	// each names a value that was not understood and what was taken instead: the more careful choice
	Warnings []string
}

// Tools are settings of the toolsets beside that of pull requests, in the words of their contracts.
type Tools struct {
	Definitions Definitions
	Deploy      Deploy
}

// Permissions are the permissions of agents that are fixed while the process runs. Dry run, read-only and the
// repositories are in Rules.
type Permissions struct {
	Tier        gitprovider.Tier
	PolicyFile  string   // where it is; Rules say what holds
	Toolsets    []string // that are enabled, as they were named; never empty
	AllowWrite  bool     // tools beside create_pr may write beyond the program's own folders
	Confinement Confinement
}

// Notifications lists the targets of notifications.
type Notifications struct {
	AppriseURLs    string
	WebhookURL     string
	WebhookSecret  string
	AllowPlainHTTP bool // to other machines
}

// Load reads the settings; drivers are the forges that there are. It never fails: a value that cannot be understood is
// taken as the most careful choice, with a warning.
func Load(s Sources, drivers []driver.Driver) Config {
	e := env{lookup: s.Lookup, sources: s, drivers: drivers}
	c := Config{
		Permissions: e.permissions(), Forges: e.forges(), Mounted: e.mounted(), Records: e.records(),
		Notifications: e.notifications(), Web: e.web(), SessionID: e.sessionID(),
		Person: driver.Secret{Text: e.secret("CLAUDEOPS_TOKEN"), File: e.secretFile("CLAUDEOPS_TOKEN")},
		Tools:  Tools{Definitions: definitions(&e), Deploy: deploySettings(&e)},
	}
	e.remember(OperatorToken(c.Records.Dir))
	// The last, since agents get nothing that is remembered as a secret until then.
	c.Sessions = e.sessions(c)
	// these agents do get
	for _, address := range []string{e.get("HTTP_PROXY"), e.get("HTTPS_PROXY"), e.get("http_proxy"),
		e.get("https_proxy")} {
		if !strings.Contains(address, "://") {
			address = "http://" + address
		}
		e.rememberWhole(secretfile.InAddresses(address)...)
	}
	c.Secrets, c.Warnings = e.secrets, e.warnings
	return c
}

func (e *env) permissions() Permissions {
	p := Permissions{
		Tier:       e.tier("CLAUDEOPS_TIER"),
		PolicyFile: e.get("CLAUDEOPS_POLICY"), Toolsets: splitList(e.get("CLAUDEOPS_TOOLSETS")),
		AllowWrite: e.permission("CLAUDEOPS_ALLOW_WRITE"), Confinement: confinement(e),
	}
	if len(p.Toolsets) == 0 {
		p.Toolsets = []string{"pr"}
	}
	e.anySource("CLAUDEOPS_DRY_RUN") // for the warnings; LoadRules reads them
	e.anySource("CLAUDEOPS_READ_ONLY")
	return p
}

func parseRepos(raw string) (patterns []policy.RepoPattern, problem string) {
	for _, entry := range splitList(raw) {
		pattern, err := policy.ParseRepoPattern(entry)
		if err != nil {
			return nil, fmt.Sprintf("CLAUDEOPS_REPOS is malformed: %s", err)
		}
		patterns = append(patterns, pattern)
	}
	if raw != "" && len(patterns) == 0 {
		return nil, "CLAUDEOPS_REPOS names no repository"
	}
	return patterns, ""
}

func (e *env) notifications() Notifications {
	return Notifications{
		AppriseURLs: e.secret("CLAUDEOPS_APPRISE_URLS"), WebhookURL: e.secret("CLAUDEOPS_WEBHOOK_URL"),
		WebhookSecret: e.secret("CLAUDEOPS_WEBHOOK_SECRET"), AllowPlainHTTP: e.permission("CLAUDEOPS_NOTIFY_PLAIN_HTTP"),
	}
}
