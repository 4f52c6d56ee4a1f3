package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func load(env map[string]string) config.Config {
	return config.Load(placesOf(env), forges.All())
}

// placesOf are places that settings come from, the strongest first.
func placesOf(places ...map[string]string) (out config.Sources) {
	for i, env := range places {
		out = append(out, config.Source{Name: []string{"the environment", "the file", "elsewhere"}[i],
			Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	}
	return out
}

func TestTheTierIsOneUnlessConfigurationClearlySaysOtherwise(t *testing.T) {
	cases := map[string]struct {
		tier  int
		warns bool
	}{
		"": {1, false}, "1": {1, false}, "2": {2, false}, "3": {3, false},
		"${CLAUDEOPS_TIER}": {1, false}, "${CLAUDEOPS_TIER:-3}": {1, false},
		"4": {1, true}, "0": {1, true}, "two": {1, true}, "3.0": {1, true}, "2;3": {1, true},
	}
	for value, want := range cases {
		c := load(map[string]string{"CLAUDEOPS_TIER": value})
		if int(c.Permissions.Tier) != want.tier || (len(c.Warnings) > 0) != want.warns {
			t.Errorf("CLAUDEOPS_TIER=%q: tier %d, warnings %q", value, c.Permissions.Tier, c.Warnings)
		}
	}
	must.Equal(t, load(nil).Permissions.Tier, 1)
}

func TestASwitchThatCannotBeReadIsOn(t *testing.T) {
	cases := map[string]struct{ on, warns bool }{
		"": {false, false}, "false": {false, false}, "0": {false, false}, "no": {false, false}, "FALSE": {false, false},
		"off":  {false, false},
		"true": {true, false}, "1": {true, false}, "yes": {true, false}, "On": {true, false},
		"${CLAUDEOPS_DRY_RUN}": {false, false},
		"ture":                 {true, true}, "2": {true, true}, "nope": {true, true},
	}
	for value, want := range cases {
		env := map[string]string{"CLAUDEOPS_DRY_RUN": value, "CLAUDEOPS_READ_ONLY": value}
		c, rules := load(env), config.LoadRules(placesOf(env))
		if rules.DryRun.On != want.on || rules.ReadOnly.On != want.on || (len(c.Warnings) > 0) != want.warns {
			t.Errorf("%q: dry run %t, read-only %t, warnings %q", value, rules.DryRun.On, rules.ReadOnly.On, c.Warnings)
		}
	}
}

// Whatever the order of the sources, the one that says true holds, and the ones that say false are named.
func TestASwitchIsOnIfAnySourceSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		values [3]string
		on     bool
		warns  string
	}{
		"unset":                     {},
		"the environment":           {values: [3]string{"true", "", ""}, on: true},
		"the file":                  {values: [3]string{"", "true", ""}, on: true},
		"what a client hands on":    {values: [3]string{"${CLAUDEOPS_DRY_RUN}", "true", ""}, on: true},
		"false, and the file":       {values: [3]string{"false", "true", ""}, on: true, warns: "of the environment"},
		"true, and false elsewhere": {values: [3]string{"true", "", "no"}, on: true, warns: "of elsewhere"},
		"false twice, and true":     {values: [3]string{"false", "0", "on"}, on: true, warns: "of the file"},
		"false everywhere":          {values: [3]string{"false", "false", "0"}},
		"not a boolean":             {values: [3]string{"false", "ja", ""}, on: true, warns: "of the environment"},
	} {
		for _, variable := range []string{"CLAUDEOPS_DRY_RUN", "CLAUDEOPS_READ_ONLY"} {
			var places []map[string]string
			for _, value := range c.values {
				places = append(places, map[string]string{variable: value})
			}
			got, warnings := placesOf(places...).Switch(variable), config.Load(placesOf(places...), nil).Warnings
			said := strings.Join(warnings, "\n")
			if got.On != c.on || (c.warns != "") != strings.Contains(said, "false has no effect") ||
				!strings.Contains(said, c.warns) || strings.Count(said, "false has no effect") > 1 {
				t.Errorf("%s, %s: %+v, warnings %q", name, variable, got, warnings)
			}
			env := config.Load(placesOf(places...), nil).Sessions.ServerEnv[variable]
			if (env == "true") != c.on || env == "false" {
				t.Errorf("%s: the server of a session gets %s=%q", name, variable, env)
			}
		}
	}
}

func TestEachSettingIsShownWithItsSourceAndNoSecret(t *testing.T) {
	folder := t.TempDir()
	token, empty, missing := filepath.Join(folder, "token"), filepath.Join(folder, "empty"), filepath.Join(folder, "none")
	for file, text := range map[string]string{token: "s3cret-of-github\n", empty: "\n"} {
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
	shown := map[string]config.Setting{}
	for _, s := range config.Show(placesOf(
		map[string]string{"CLAUDEOPS_TIER": "1", "CLAUDEOPS_REPOS": "joe/a", "GITEA_TOKEN": "s3cret-of-gitea",
			"CLAUDEOPS_SIGN_IN": "gitea", "CLAUDEOPS_STATE_DIR": " ", "CLAUDEOPS_WEBHOOK_SECRET_FILE": missing,
			"CLAUDEOPS_ALLOW_WRITE": "ja", "CLAUDEOPS_BOUNDARY": "strong", "CLAUDEOPS_API_TOKENS_FILE": empty},
		map[string]string{"CLAUDEOPS_TIER": "2", "CLAUDEOPS_REPOS": "joe/a", "GITHUB_TOKEN_FILE": token,
			"CLAUDEOPS_SIGN_IN_GITEA_CLIENT_SECRET": "s3cret-of-app", "CLAUDEOPS_STATE_DIR": "/state"},
	), forges.All(), map[string]policy.Switch{"CLAUDEOPS_DRY_RUN": {On: true, By: []string{"dry_run of p.yaml"},
		Against: []string{"the environment"}}}) {
		if strings.Contains(s.Value, "s3cret") {
			t.Errorf("a secret is shown: %+v", s)
		}
		shown[s.Name] = s
	}
	for name, want := range map[string]config.Setting{
		"CLAUDEOPS_TIER": {Value: "1", Source: "the environment",
			Warnings: []string{"the file sets it too, and is passed over"}},
		"CLAUDEOPS_REPOS":     {Value: "joe/a", Source: "the environment"},
		"CLAUDEOPS_STATE_DIR": {Value: "/state", Source: "the file"},
		"CLAUDEOPS_REPOS_DIR": {Value: "/repos", Source: "default"}, "CLAUDEOPS_POLICY": {},
		"GITEA_TOKEN":                           {Value: "set", Source: "the environment"},
		"GITHUB_TOKEN":                          {Value: "set", Source: "GITHUB_TOKEN_FILE of the file"},
		"CLAUDEOPS_SIGN_IN_GITEA_CLIENT_SECRET": {Value: "set", Source: "the file"},
		// A secret that the file does not give is not set.
		"CLAUDEOPS_WEBHOOK_SECRET": {Source: "CLAUDEOPS_WEBHOOK_SECRET_FILE of the environment", Warnings: []string{
			"CLAUDEOPS_WEBHOOK_SECRET_FILE names a file that cannot be read or is larger than 65536 bytes"}},
		"CLAUDEOPS_API_TOKENS": {Source: "CLAUDEOPS_API_TOKENS_FILE of the environment",
			Warnings: []string{"CLAUDEOPS_API_TOKENS_FILE names an empty file"}},
		// Of what is not understood, a warning says what holds.
		"CLAUDEOPS_ALLOW_WRITE": {Value: "ja", Source: "the environment", Warnings: []string{
			`CLAUDEOPS_ALLOW_WRITE is "ja", which is neither true nor false: false holds`}},
		"CLAUDEOPS_BOUNDARY": {Value: "strong", Source: "the environment", Warnings: []string{
			`CLAUDEOPS_BOUNDARY is "strong", which is none of auto, user, landlock and none`}},
		"CLAUDEOPS_DRY_RUN": {Value: "true", Source: "dry_run of p.yaml",
			Warnings: []string{"false has no effect in the environment: dry_run of p.yaml says true"}},
	} {
		want.Name = name
		if !reflect.DeepEqual(shown[name], want) {
			t.Errorf("%s: %+v, want %+v", name, shown[name], want)
		}
	}
}

func TestStateDir(t *testing.T) {
	cases := []struct {
		name      string
		env       map[string]string
		want      string
		isDefault bool
	}{
		{"named", map[string]string{"CLAUDEOPS_STATE_DIR": "/s", "HOME": "/h"}, "/s", false},
		{"XDG", map[string]string{"XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/claudeops", true},
		{"a relative XDG folder is ignored, as its specification says",
			map[string]string{"XDG_STATE_HOME": "x", "HOME": "/h"},
			"/h/.local/state/claudeops", true},
		{"home", map[string]string{"HOME": "/h"}, "/h/.local/state/claudeops", true},
		{"a placeholder counts as unset", map[string]string{"CLAUDEOPS_STATE_DIR": "${CLAUDEOPS_STATE_DIR}", "HOME": "/h"},
			"/h/.local/state/claudeops", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := load(c.env)
			if got.Records.Dir != c.want || got.Records.DirDefault != c.isDefault || got.Records.Problem != "" {
				t.Errorf("got %q, default %t, problem %q", got.Records.Dir, got.Records.DirDefault, got.Records.Problem)
			}
		})
	}
	if c := load(nil); c.Records.Dir != "" || !strings.Contains(c.Records.Problem, "CLAUDEOPS_STATE_DIR") {
		t.Errorf("without any folder: %q, %q", c.Records.Dir, c.Records.Problem)
	}
}

func TestAMalformedAllowlistIsAProblemAndNotAnEmptyList(t *testing.T) {
	three := placesOf(map[string]string{"CLAUDEOPS_REPOS": "joe/a, gitea:joe/b\nann/*"})
	if c := config.LoadRules(three); len(c.Repos) != 3 || c.ReposProblem != "" {
		t.Errorf("got %v, %q", c.Repos, c.ReposProblem)
	}
	for _, bad := range []string{"joe", "joe/a, b", ",", "a/b/c"} {
		if c := config.LoadRules(placesOf(map[string]string{"CLAUDEOPS_REPOS": bad})); c.ReposProblem == "" {
			t.Errorf("%q was taken as %v", bad, c.Repos)
		}
	}
}

func TestSecretsComeFromVariablesAndFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	must.Do(t, os.WriteFile(file, []byte("from-a-file\n"), 0o600))
	stored := filepath.Join(t.TempDir(), "git-credentials")
	must.Do(t, os.WriteFile(stored, []byte("https://bot:stored-1@a.example.org\nhttps://bot:stored-2@b.example.org\n"),
		0o600))
	c := load(map[string]string{
		"GITHUB_TOKEN": "from-a-variable", "GITEA_TOKEN_FILE": file, "CLAUDEOPS_API_TOKENS": "one-token,two-token",
		"CLAUDEOPS_WEBHOOK_URL_FILE": "/does/not/exist", "CLAUDEOPS_APPRISE_URLS": "${CLAUDEOPS_APPRISE_URLS}",
		"CLAUDEOPS_DATABASE_URL":           "postgres://joe:database-password@127.0.0.1/ops",
		"HTTPS_PROXY":                      "http://joe:proxy-password@127.0.0.1:3128",
		"CLAUDEOPS_DEPLOY_GIT_CREDENTIALS": stored,
	})
	for _, want := range []string{
		"from-a-variable", "from-a-file", "one-token", "two-token", "database-password", "proxy-password", "stored-1",
		"stored-2",
	} {
		if !slices.Contains(c.Secrets, want) {
			t.Errorf("%q is not among the secrets %q", want, c.Secrets)
		}
	}
	if slices.Contains(load(map[string]string{"CLAUDEOPS_DATABASE_URL": "postgres://claudeops@db/claudeops"}).Secrets,
		"claudeops") {
		t.Error("the name of a user and of a database is taken for a secret")
	}
	if got := load(
		map[string]string{"CLAUDEOPS_DATABASE_URL": "postgres://db/ops?password=in-the-query"}).Secrets; !slices.Contains(got,
		"in-the-query") {
		t.Errorf("a password is none of the secrets %q", got)
	}
	if len(c.Secrets) != 10 || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "CLAUDEOPS_WEBHOOK_URL_FILE") {
		t.Errorf("secrets %q, warnings %q", c.Secrets, c.Warnings)
	}
}

// A start without a secret that is configured would have another database, another key or other callers.
func TestAFileOfASecretThatCannotBeReadIsNamed(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "\n", "good": "a-value", "large": strings.Repeat("x", 70_000)} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	must.Do(t, os.MkdirAll(filepath.Join(dir, "folder"), 0o700))
	var names []string
	for _, v := range config.Variables(forges.All()) {
		if v.Secret {
			names = append(names, v.Name)
		}
	}
	names = append(names, "CLAUDEOPS_SIGN_IN_KEYCLOAK_CLIENT_SECRET")
	for _, name := range names {
		for file, usable := range map[string]bool{
			"missing": true, "empty": true, "good": true, "folder": false, "large": false, "good/below": false,
		} {
			settings := map[string]string{"CLAUDEOPS_SIGN_IN": "keycloak", name + "_FILE": filepath.Join(dir, file)}
			unreadable := func() []string {
				return config.UnreadableFiles(config.Environment(func(v string) (string, bool) { return settings[v], true }),
					forges.All())
			}
			got := unreadable()
			if len(got) > 1 || usable != (len(got) == 0) ||
				!usable && (!strings.Contains(got[0], name+"_FILE") || !strings.Contains(got[0], filepath.Join(dir, file))) {
				t.Errorf("%s_FILE is %s: %q", name, file, got)
			}
			settings[name] = "a-value-of-the-variable" // the file is not read
			if got := unreadable(); len(got) > 0 {
				t.Errorf("%s is set: %q", name, got)
			}
		}
	}
}

func TestAPermissionThatCannotBeReadIsNotGiven(t *testing.T) {
	for value, want := range map[string]bool{"": false, "true": true, "1": true, "TRUE": true, "false": false,
		"yes please": false, "2": false} {
		if c := load(map[string]string{"CLAUDEOPS_NOTIFY_PLAIN_HTTP": value}); c.Notifications.AllowPlainHTTP != want {
			t.Errorf("%q: %t, want %t", value, c.Notifications.AllowPlainHTTP, want)
		}
	}
}

func TestAWarningNeverRepeatsAWholeValue(t *testing.T) {
	c := load(map[string]string{"CLAUDEOPS_TIER": "misplaced-token-value"})
	if len(c.Warnings) != 1 || strings.Contains(c.Warnings[0], "token") {
		t.Errorf("warnings %q", c.Warnings)
	}
}

func environmentFile(t *testing.T, text string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "environment")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	must.Do(t, os.Chmod(path, mode))
	return path
}

func TestAnEnvironmentFileIsRead(t *testing.T) {
	t.Parallel()
	path := environmentFile(t, "# ours\n\nCLAUDEOPS_TIER=2\r\n GITEA_TOKEN = x=y\nA='it is'\nB=\"\"\nC='\n", 0o600)
	if _, err := config.ReadEnvironmentFile(path); err == nil { // a name ends at the equals sign
		t.Error("a name with a space was taken")
	}
	got, err := config.ReadEnvironmentFile(environmentFile(t,
		"# ours\n\nCLAUDEOPS_TIER=2\r\n GITEA_TOKEN= x=y\nA='it is'\nB=\"\"\nC='\n", 0o600))
	want := map[string]string{"CLAUDEOPS_TIER": "2", "GITEA_TOKEN": "x=y", "A": "it is", "B": "", "C": "'"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestEnvironmentFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"A=1\nnonsense\n":          "line 2 of the environment file",
		"A=1\nA=2\n":               "sets A twice",
		"export A=1\n":             "line 1",
		strings.Repeat("#", 70000): "cannot be read",
	} {
		if _, err := config.ReadEnvironmentFile(environmentFile(t, text, 0o600)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o620} {
		if _, err := config.ReadEnvironmentFile(environmentFile(t, "A=1\n", mode)); err == nil ||
			!strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if _, err := config.ReadEnvironmentFile(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestTheEnvironmentWinsOverItsFile(t *testing.T) {
	t.Parallel()
	environment := map[string]string{"SET": "mine", "EMPTY": " ", "OPEN": "${OPEN}"}
	lookup := placesOf(environment,
		map[string]string{"SET": "file", "EMPTY": "file", "OPEN": "file", "ONLY": "file"}).Lookup
	for name, want := range map[string]string{"SET": "mine", "EMPTY": "file", "OPEN": "file", "ONLY": "file", "NONE": ""} {
		if got, _ := lookup(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestWhereTheEnvironmentFileIs(t *testing.T) {
	t.Parallel()
	for want, env := range map[string]map[string]string{
		"/x/claudeops/environment":         {"XDG_CONFIG_HOME": "/x", "HOME": "/h"},
		"/h/.config/claudeops/environment": {"XDG_CONFIG_HOME": "relative", "HOME": "/h"},
		"":                                 {"HOME": ""},
	} {
		if got := config.EnvironmentFile(func(name string) (string, bool) { v, ok := env[name]; return v, ok }); got != want {
			t.Errorf("%v: %q, want %q", env, got, want)
		}
	}
}

func TestTheFoldersOfAUser(t *testing.T) {
	t.Parallel()
	const unix, windows = "linux", "windows"
	for name, c := range map[string]struct {
		system              string
		env                 map[string]string
		home, state, config string
	}{
		"nothing is set":  {unix, nil, "", "", ""},
		"a home":          {unix, map[string]string{"HOME": "/h"}, "/h", "/h/.local/state", "/h/.config"},
		"a relative home": {unix, map[string]string{"HOME": "h", "XDG_STATE_HOME": "s"}, "", "", ""},
		"folders by name": {unix, map[string]string{"HOME": "/h", "XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c"},
			"/h", "/s", "/c"},
		"variables of Windows elsewhere": {unix,
			map[string]string{"USERPROFILE": "/u", "LOCALAPPDATA": "/l", "APPDATA": "/r"}, "", "", ""},
		"nothing is set on Windows": {windows, nil, "", "", ""},
		"Windows without HOME, as clients start servers there": {windows,
			map[string]string{"USERPROFILE": "/u", "LOCALAPPDATA": "/l", "APPDATA": "/r"}, "/u", "/l", "/r"},
		"a shell on Windows that sets HOME": {windows,
			map[string]string{"HOME": "/h", "USERPROFILE": "/u", "LOCALAPPDATA": "/l", "APPDATA": "/r"}, "/u", "/l", "/r"},
		"Windows with its profile alone": {windows, map[string]string{"USERPROFILE": "/u"},
			"/u", "/u/AppData/Local", "/u/AppData/Roaming"},
		"Windows with HOME alone": {windows, map[string]string{"HOME": "/h"}, "/h", "/h/AppData/Local", "/h/AppData/Roaming"},
		"folders by name on Windows": {windows, map[string]string{"USERPROFILE": "/u", "LOCALAPPDATA": "/l", "APPDATA": "/r",
			"XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c"}, "/u", "/s", "/c"},
	} {
		lookup := func(name string) (string, bool) { value, set := c.env[name]; return value, set }
		f := config.UserFolders{System: c.system, Lookup: lookup}
		got := [3]string{f.Home(), f.State(), f.Config()}
		for i := range got {
			got[i] = filepath.ToSlash(got[i])
		}
		if want := [3]string{c.home, c.state, c.config}; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestRecordsAreKeptUnlessARetentionIsClear(t *testing.T) {
	const day = 24 * time.Hour
	for value, want := range map[string]struct {
		age   time.Duration
		warns string
	}{
		"": {0, ""}, "0": {0, ""}, "90d": {90 * day, ""}, "7d": {7 * day, ""}, "2160h": {90 * day, ""},
		"${CLAUDEOPS_RETENTION}": {0, ""},
		"6d":                     {0, "less than 7d"}, "1h": {0, "less than 7d"}, "0d": {0, "less than 7d"},
		"-90d":   {0, "not an age"},
		"-9000h": {0, "less than 7d"},
		"ninety": {0, "not an age"}, "90": {0, "not an age"}, "d": {0, "not an age"}, "99999999d": {0, "not an age"},
	} {
		c := load(map[string]string{"CLAUDEOPS_RETENTION": value})
		warnings := strings.Join(c.Warnings, " ")
		if c.Records.Retention != want.age || !strings.Contains(warnings, want.warns) ||
			strings.Contains(warnings, "CLAUDEOPS_RETENTION") != (want.warns != "") {
			t.Errorf("%q: %s, warnings %q", value, c.Records.Retention, warnings)
		}
	}
}

func TestTheServerStaysOnLoopbackUnlessToldOtherwise(t *testing.T) {
	w := load(nil).Web
	if w.Addr != config.DefaultAddr || w.Host() != "127.0.0.1" || w.Problem != "" || len(w.Tokens) != 0 ||
		w.BasePath != "" {
		t.Errorf("got %+v", w)
	}
	w = load(map[string]string{
		"CLAUDEOPS_ADDR": ":9", "CLAUDEOPS_HOSTS": "Ops.example, 10.0.0.7, ::1", "CLAUDEOPS_BASE_PATH": "/a/ops/",
		"CLAUDEOPS_API_TOKENS": "one-token,two-token", "CLAUDEOPS_TRUSTED_PROXIES": "10.1.2.3/8 fd00::/8,127.0.0.1 ::1",
		"CLAUDEOPS_PROXY_USER_HEADER": "X-User", "CLAUDEOPS_LOG_FORMAT": "JSON",
	}).Web
	if w.Problem != "" || w.Host() != "" || len(w.Hosts) != 3 || w.Hosts[0] != "ops.example" || w.BasePath != "/a/ops" ||
		len(w.Tokens) != 2 || fmt.Sprint(w.TrustedProxies) != "[10.0.0.0/8 fd00::/8 127.0.0.1/32 ::1/128]" || !w.LogJSON {
		t.Errorf("got %+v", w)
	}
}

func TestAServerDoesNotStartOnAGuessOfWhoMayCallIt(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"CLAUDEOPS_ADDR":              {"CLAUDEOPS_ADDR": "8080"},
		"CLAUDEOPS_BASE_PATH":         {"CLAUDEOPS_BASE_PATH": "/a/../b"},
		"CLAUDEOPS_TRUSTED_PROXIES":   {"CLAUDEOPS_TRUSTED_PROXIES": "10.0.0"},
		"CLAUDEOPS_PROXY_USER_HEADER": {"CLAUDEOPS_PROXY_USER_HEADER": "X-User"},
		"CLAUDEOPS_HOSTS":             {"CLAUDEOPS_HOSTS": "https://ops.example"},
	} {
		if w := load(env).Web; !strings.Contains(w.Problem, name) {
			t.Errorf("%v: problem %q", env, w.Problem)
		}
	}
	for _, path := range []string{"ops", "//evil.example", "/a b", "/a?b", "/a\"", "/.."} {
		if w := load(map[string]string{"CLAUDEOPS_BASE_PATH": path}).Web; w.Problem == "" {
			t.Errorf("the base path %q was taken as %q", path, w.BasePath)
		}
	}
}

func TestThePublicAddressHasTheBasePathOnce(t *testing.T) {
	for _, c := range []struct{ public, base, want, problem string }{
		{"", "", "", ""},
		{"https://Ops.example", "", "https://ops.example", ""},
		{"https://ops.example/", "/ops", "https://ops.example/ops", ""},
		{"https://ops.example:8443/ops/", "/ops", "https://ops.example:8443/ops", ""},
		{"http://[::1]:8080", "", "http://[::1]:8080", ""},
		{"https://ops.example/other", "/ops", "", "CLAUDEOPS_BASE_PATH"},
		{"https://ops.example/ops", "", "", "CLAUDEOPS_BASE_PATH"},
		{"ops.example", "", "", "CLAUDEOPS_PUBLIC_URL"},
		{"ftp://ops.example", "", "", "CLAUDEOPS_PUBLIC_URL"},
		{"https://ann:secret@ops.example", "", "", "CLAUDEOPS_PUBLIC_URL"},
		{"https://ops.example/?a=b", "", "", "CLAUDEOPS_PUBLIC_URL"},
		{"https://ops.example/#x", "", "", "CLAUDEOPS_PUBLIC_URL"},
		{"https://ops example", "", "", "CLAUDEOPS_PUBLIC_URL"},
		{"https:///x", "", "", "CLAUDEOPS_PUBLIC_URL"},
	} {
		got := load(map[string]string{"CLAUDEOPS_PUBLIC_URL": c.public, "CLAUDEOPS_BASE_PATH": c.base}).Web
		if got.PublicURL != c.want || !strings.Contains(got.Problem, c.problem) || (got.Problem == "") != (c.problem == "") {
			t.Errorf("%q below %q: %q, %q", c.public, c.base, got.PublicURL, got.Problem)
		}
		if strings.Contains(got.Problem, "secret") {
			t.Errorf("the problem repeats the address: %s", got.Problem)
		}
	}
}
