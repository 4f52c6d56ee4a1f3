package facts

import (
	"strings"
	"sync"
)

// writesOf says what a command's output or its operands change that stays: profiles, hooks, planned tasks.
func writesOf(c *command) []act {
	targets := c.writes
	switch c.name {
	case "tee", "cp", "mv", "ln", "install", "touch", "sed", "mkdir":
		targets = append(targets, c.operands()...)
	}
	for _, target := range targets {
		switch {
		case isLasting(target):
			return []act{{Persist, "Writes to what is run later"}}
		case strings.HasPrefix(target, "/dev/sd") || strings.HasPrefix(target, "/dev/nvme"):
			return []act{{Destroy, "Overwrites a disk"}}
		case strings.HasPrefix(target, "/dev/tcp/") || strings.HasPrefix(target, "/dev/udp/"):
			return []act{{Outbound, "Sends data out"}}
		case strings.HasPrefix(target, "/var/log/") && len(c.writes) > 0:
			return []act{{Conceal, "Overwrites a log"}}
		case strings.HasPrefix(target, "/etc/sudoers"), target == "/etc/passwd", target == "/etc/shadow",
			target == "/etc/hosts":
			return []act{{Rights, "Changes accounts or rights"}}
		}
	}
	return nil
}

// isLasting says whether what is written to a path runs later by itself.
func isLasting(path string) bool {
	lower := strings.ToLower(strings.Trim(path, `"'`))
	base := lower[strings.LastIndexByte(lower, '/')+1:]
	switch base {
	case ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zprofile", ".zshenv", ".bash_aliases", ".bash_logout",
		"rc.local",
		"authorized_keys", "crontab", "sitecustomize.py", "usercustomize.py", "config.fish", ".vimrc", "bash.bashrc",
		"ld.so.preload", ".gitconfig", "claude.md", "agents.md", "memory.md", ".cursorrules", "soul.md":
		return strings.ContainsAny(lower, "/~.$")
	}
	return lastingParts().anyIn(lower)
}

// lastingParts are parts of the paths of what runs later by itself.
var lastingParts = sync.OnceValue(func() *parts { //nolint:gochecknoglobals // made once, never changed
	return newParts("/etc/cron", "/var/spool/cron", "/etc/systemd", "/systemd/system", "/systemd/user",
		"/etc/init.d",
		"/etc/profile", ".git/hooks", ".husky/", ".github/workflows", ".gitlab-ci.yml", "launchagents", "launchdaemons",
		"/autostart", "start menu", "/etc/rc", ".claude/settings", ".claude/hooks", ".gitea/workflows", "/etc/udev/rules")
})

// riskyOptions reads options that switch a protection off or give more rights, whatever the program.
func riskyOptions(c *command) []act {
	for _, arg := range c.args {
		assigns := strings.IndexByte(arg, '=') >= 0
		if len(arg) < 4 || arg[0] != '-' && !assigns {
			continue
		}
		lower := strings.ToLower(arg)
		if strings.HasPrefix(lower, "--") && riskyPrefixes().begin(lower[2:]) ||
			assigns && (strings.Contains(lower, "stricthostkeychecking=no") ||
				strings.Contains(lower, "userknownhostsfile=/dev/null")) || strings.Contains(lower, "bypasspermissions") {
			return []act{{Rights, "Switches a protection off"}}
		}
	}
	return nil
}

// riskyPrefixes begin the names of such options, behind the two dashes.
var riskyPrefixes = sync.OnceValue(func() *parts { //nolint:gochecknoglobals // made once, never changed
	return newParts("privileged", "no-verify", "dangerously-", "allow-root", "insecure",
		"no-check-certificate", "skip-tls", "unsafe-perm", "no-sandbox", "disable-web-security", "trusted-host",
		"allow-unauthenticated", "no-gpg-check", "nogpgcheck", "force-yes", "allow-downgrades", "security-opt",
		"cap-add", "yolo", "disable-security", "no-audit", "ignore-certificate-errors", "no-check-gpg",
		"accept-invalid", "bypass", "auto-approve", "disable-sandbox", "skip-verify", "skip-verification",
		"no-auth", "allow-all", "unsafe", "no-scripts-check", "break-system-packages")
})

func isPrivateIP(host string) bool {
	ip, err := parseIP(host)
	return err == nil && (ip.IsPrivate() || ip.IsLoopback() || ip.IsUnspecified())
}

// namesSecretVariable says whether a text names a variable that by its name holds a secret.
func namesSecretVariable(text string) bool {
	upper := text
	for _, part := range []string{"_TOKEN", "_SECRET", "DATABASE_URL", "CONNECTION_STRING", "_KEY", "PASSWORD", "PASSWD",
		"_PASS", "AWS_", "CREDENTIAL",
		"API_KEY", "APIKEY",
		"PRIVATE_KEY", "SECRET_"} {
		if i := strings.Index(upper, part); i >= 0 {
			return true
		}
	}
	return false
}

// isSecretPlace says whether a word is a place where secrets are kept.
func isSecretPlace(text string) bool {
	if strings.IndexByte(text, '.') < 0 && strings.IndexByte(text, '/') < 0 && strings.IndexByte(text, '_') < 0 ||
		len(text) < 4 {
		return false
	}
	lower := strings.ToLower(text)
	base := lower[max(strings.LastIndexByte(lower, '/'), strings.LastIndexByte(lower, '\\'))+1:]
	switch base {
	case ".env", ".npmrc", ".netrc", "_netrc", ".git-credentials", ".pgpass", ".pypirc", ".htpasswd", "id_rsa", "id_dsa",
		"id_ecdsa", "id_ed25519",
		"shadow", "credentials.json", "master.key", "wallet.dat", "logins.json", "key4.db", "cookies.sqlite",
		"login.keychain-db",
		".env.local", ".env.production", "service-account.json", "secrets.json", "secrets.yaml", "secrets.yml",
		".vault-token":
		return base != "shadow" || strings.HasSuffix(lower, "/etc/shadow")
	}
	if len(base) == len(lower) {
		return strings.HasSuffix(base, ".pem") && strings.Contains(base, "key") || base == "metadata.google.internal" ||
			base == "169.254.169.254"
	}
	return secretParts().anyIn(lower) || strings.Contains(lower, "/.") && namesSecretFile(base) ||
		strings.HasPrefix(lower, ".ssh/") || strings.HasPrefix(lower, ".aws/") ||
		strings.HasSuffix(base, ".pem") && strings.Contains(base, "key")
}

// namesSecretFile says whether a file of a hidden folder, such as ~/.config/app, holds a secret by its name.
func namesSecretFile(base string) bool {
	name, _, _ := strings.Cut(base, ".")
	switch name {
	case "token", "tokens", "access_token", "secret", "secrets", "password", "passwords", "credentials", "credential",
		"api_key", "apikey", "api-key", "auth":
		return true
	}
	return false
}

// secretParts are parts of the paths of secrets.
var secretParts = sync.OnceValue(func() *parts { //nolint:gochecknoglobals // made once, never changed
	return newParts("/.ssh", "/.aws", "/.gnupg", "/.kube/config", "/.docker/config", "/.config/gcloud",
		"/.azure", "/.config/gh",
		"/var/run/secrets", "/proc/self/environ", "/keychains", "/login data", "/.mozilla/", "/.password-store",
		"169.254.169.254",
		"/etc/kubernetes/admin.conf", "/.npmrc", "metadata.google.internal", "/run/secrets")
})

// statements are those of databases that delete, or give rights.
var statements = sync.OnceValue(func() *wordings[act] { //nolint:gochecknoglobals // made once, never changed
	w := &wordings[act]{}
	w.add(act{Destroy, "Deletes from a database"},
		"drop table|drop database|drop schema|drop index|drop keyspace|drop user|truncate table|"+
			"delete from|dropdatabase(")
	w.add(act{Rights, "Gives rights in a database"},
		"grant all|alter user|create user|with superuser|with grant option|alter role")
	return w
})

// sqlActs reads statements of databases.
func sqlActs(text string) []act {
	var acts []act
	statements().findAt(text, func(a act, at int) {
		if beginsStatement(text, at) {
			acts = append(acts, a)
		}
	})
	return acts
}

// beginsStatement says whether a statement of a database begins at an offset: it is written in capitals, or nothing but
// what parts statements stands before it. "It should create user x" is none.
func beginsStatement(text string, at int) bool {
	if text[at] >= 'A' && text[at] <= 'Z' && at+1 < len(text) && text[at+1] >= 'A' && text[at+1] <= 'Z' {
		return true
	}
	before := strings.TrimRight(text[:at], " \t")
	return before == "" || strings.ContainsAny(before[len(before)-1:], "\"'`;()>.=:") || strings.HasSuffix(before, "*/")
}
