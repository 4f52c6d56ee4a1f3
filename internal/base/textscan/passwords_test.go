package textscan

import (
	"strings"
	"testing"
)

// passwordForms are ways in which documents and manifests give a password, $ in its place.
func passwordForms() map[string][]string {
	return map[string][]string{
		"curl-auth-user": {
			"curl -u joe:$ https://example.com/x\n", "curl -ujoe:$ https://example.com/x\n", "curl -sSfu joe:$ https://x\n",
			"curl --user joe:$ https://example.com\n", "curl --user=joe:$ https://example.com\n", "curl -k https://x -u joe:$\n",
			"curl https://x \\\n  -u joe:$ \\\n  -d x\n", "curl --proxy-user joe:$ https://x\n", "curl -U \"joe:$\" https://x\n",
			"Run `curl -u joe:$`.\n",
		},
		"login-password": {"http -a joe:$ https://x\n", "xh --auth joe:$ https://x\n", "smbclient //x/y -U joe%$\n",
			"skopeo copy --creds joe:$ a b\n"},
		"flag-password": {
			"tool --password $\n", "tool --password=$ more\n", "tool --password '$'\n", "tool --password=\"$\"\n",
			"tool --pass $\n", "tool --passwd $\n", "tool --passphrase $\n", "tool --admin-password $\n", "java -password $ x\n",
			"keytool -storepass $ x\n", "wget --user joe --http-password=$ https://x\n", "args: [\"--password\", \"$\"]\n",
			"args:\n- --password\n- $\n", "args:\n  - \"--password=$\"\n", "tool --password \\\n  $\n",
			"Run `tool --password $`.\n",
		},
		"command-password": {
			"mysql -u root -p$ db\n", "mysqldump -p'$'\n", "redis-cli -h x -a $ ping\n", "redis-cli --pass $\n",
			"sshpass -p $ ssh x\n", "sshpass -p'$' ssh x\n", "docker login -u joe -p $ registry\n", "podman login -p=$ x\n",
			"helm registry login -u x -p $ y\n", "oc login -u x -p $\n", "ipmitool -I lanplus -U a -P $ chassis\n",
			"requirepass $\n", "mongosh -u x -p $\n", "mosquit" + "to_pub -u x -P $ -t y\n", "ldapsearch -D x -w $ y\n",
			"sqlcmd -U sa -P $\n", "rabbitmqctl add_user joe $\n", "rabbitmqctl change_password joe $\n",
			"echo $ | sudo -S apt-get update\n", "echo '$' | sudo -kS id\n", "echo -n $ | sudo --stdin id\n",
			"printf '%s\\n' '$' | sudo -S id\n", "echo joe:$ | chpasswd\n", "echo 'joe:$' | sudo chpasswd\n",
			"printf 'joe:" + "$\\n' | chpasswd -e\n", "echo $ | passwd --stdin joe\n", "echo '$' | cryptsetup open /dev/sdb1 x\n",
			"echo $ | docker login -u joe --password-stdin\n", "sudo -S id <<< '$'\n", "chpasswd <<< joe:$\n",
			"chpasswd <<EOF\njoe:$\nEOF\n", "htpasswd -nb joe $\n", "htpasswd -bnBC 10 joe '$'\n",
			"htpasswd -cb /etc/htpasswd joe $\n", "Run `htpasswd -nb joe $`.\n", "openssl enc -aes-256-cbc -k $ -in a\n",
			"CREATE USER joe IDENTIFIED BY '$';\n", "alter user joe identified with caching_sha2_password by '$'\n",
		},
		"named-password": {
			"password: $\n", "secret: $\n", "client_secret: '$'\n", "\"secret\": \"$\"\n", "SECRET=$\n", "Secret: `$`\n",
			"token: $\n", "api_key: $\n", "credentials: $\n", "pass: $\n", "pw: $\n", "psk=\"$\"\n", "passcode: $\n",
			"the password is $.\n", "ALTER USER x PASSWORD '$';\n", "ENV ADMIN_PASSWORD $\n", "bindpw $\n", "auth_pass $\n",
		},
		"assigned-password": {
			"password: |\n  $\n", "password: >-\n  $\n", "password: |2-\n    $\nuser: x\n", "password: >\n\n  $\n",
			"password: | # a comment\r\n  $\r\n", "secret: |\n  $\n", "token: |+\n  $\n", "\"password\": |\n  $\n",
			"- adminPassword: >-\n    $\n", "DB_PASSWORD: >-\n  $\n", "password: !!str |\n  $\n", "password: &p $\n",
			"- name: DB_PASSWORD\n  value: $\n", "{\"name\": \"DB_PASSWORD\", \"value\": \"$\"}\n",
		},
	}
}

// One password at one place is one problem, however many rules find it.
func TestPasswordsAreFoundOnceHoweverTheyAreGiven(t *testing.T) {
	t.Parallel()
	s := NewScanner(nil)
	for rule, forms := range passwordForms() {
		for _, form := range forms {
			for _, password := range []string{"Xk29dKqP0z" + "!Rt", "hX7" + "#kq2Lw", "kq7#vw" + "2l!x9"} {
				text := strings.ReplaceAll(form, "$", password)
				if found := secretsOf(t, s, "docs/a.md", text); len(found) != 1 || found[0].Rule != rule {
					t.Errorf("%s: found %v in %q", rule, found, text)
				}
			}
		}
	}
	text := strings.ReplaceAll("tool --password $ --secret=$\n", "$", "hX7"+"#kq2Lw")
	if found := secretsOf(t, s, "docs/a.md", text); len(found) != 2 {
		t.Errorf("found %v in two credentials", found)
	}
}

func TestPasswordsOfLettersAndDigitsAreFoundBehindNamesThatGitleaksLacks(t *testing.T) {
	t.Parallel()
	s := NewScanner(nil)
	for _, name := range []string{"MYSQL_PWD=", "Passwort: ", "SMTP_PASS=", "pass: ", "wpa_passphrase=", "| passcode | "} {
		text := name + "Xk29dK" + "qP0zRt\n"
		if found := secretsOf(t, s, "docs/a.md", text); !hasRule(found, "assigned-password") {
			t.Errorf("found %v in %q", found, text)
		}
	}
	for _, text := range []string{"PWD=/home/joe/src2/Repository1\n", "_pass: my_service_account_2\n",
		"pass: ${SMTP_PASSWORD}\n", "| pass | TestSomething2 |\n", "first pass: 2024-10-01T12\n"} {
		if found := secretsOf(t, s, "docs/a.md", text); len(found) > 0 {
			t.Errorf("found %v in %q", found, text)
		}
	}
}

// onlyPasswords says whether nothing but a password stands where a rule looks, so that names are passwords too.
func onlyPasswords(rule string) bool { return rule == "command-password" || rule == "curl-auth-user" }

// What stands in the place of a password is none, in each of these forms.
func TestPlaceholdersOfPasswordsPass(t *testing.T) {
	t.Parallel()
	s := NewScanner(nil)
	for rule, forms := range passwordForms() {
		for _, form := range forms {
			for _, value := range []string{"$PASSWORD", "${PASSWORD}", "$(DB_PASSWORD)", "<password>", "<your-password>",
				"{{ password }}", "{{ .Values.password }}", "changeme", "password", "your-password", "********", "xxxxxxxx",
				"mypassword", "P@ssw0rd", "PASSWORD", "grafana-admin-credentials", "etcd-client-2f8c91d0",
				"builder-dockercfg-6wl6b"} {
				if named := strings.ContainsAny(value, "0123456789-"); named && onlyPasswords(rule) {
					continue
				}
				text := strings.ReplaceAll(form, "$", value)
				if found := secretsOf(t, s, "docs/a.md", text); len(found) > 0 {
					t.Errorf("%s: found %v in %q", rule, found, text)
				}
			}
		}
	}
	for _, text := range []string{
		"docker login -u joe --password-stdin < token\n", "restic backup --password-file /etc/restic/passw0rd.txt /srv\n",
		"tool --password-file=s3cr3t.txt\n", "Use `--password` or `--pass-through=2`.\n", "secretName: tls-secret-v20240511\n",
		"Image pull secrets: builder-dockercfg-6wl6b\n", "- secret: etcd-client-2f8c91d0\n", "docker run -u 1000:1000 image\n",
		"password: ENC[AES256_GCM,data:x]\n", "password: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6238343363663\n",
		"token: |-\n  bWVzc2FnZSA9IEhlbGxvIGZyb20gY29uZmlnIDEK\n", "?token=abc1234&type=vector\n",
		"the password of admin1@example.com\n", "HARBOR_PASSWORD:Harbor12345\n", "curl -u elastic:$(cat password) https://x\n",
		"chown --user nginx:nginx\n", "Create a user identified by an address; rows are identified by 'id-42-name'.\n",
		"echo net.core.somaxconn=4096 | sudo tee -a /etc/sysctl.conf\n", "openssl x509 -in cert-2024.pem -noout\n",
		"htpasswd -B /etc/htpasswd joe-admin-2\n", "echo YES | cryptsetup luksFormat /dev/sdb1\n",
		"chpasswd <<EOF\njoe:$PASSWORD\nEOF\n", "the password is SHA-256!\n", "secret: |\n  # a comment!\n",
	} {
		if found := secretsOf(t, s, "docs/a.md", text); len(found) > 0 {
			t.Errorf("found %v in %q", found, text)
		}
	}
}

// A short word of a caller's text is hidden, too, if it is a password with its name.
func TestAShortPasswordIsHidden(t *testing.T) {
	t.Parallel()
	if got := NewScanner(nil).Hide("see pw=hX7" + "#kq2L now"); got != "see "+Withheld+" now" {
		t.Errorf("%q", got)
	}
}
