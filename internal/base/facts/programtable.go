package facts

import (
	"strings"
	"sync"
)

// programTable maps the names of programs to what reads their commands. It is made once, when first needed.
var programTable = sync.OnceValue(func() map[string]func(*command) []act { //nolint:gochecknoglobals // never changed
	table := map[string]func(*command) []act{}
	add := func(read func(*command) []act, names string) {
		for name := range strings.FieldsSeq(names) {
			table[name] = read
		}
	}
	add(removesFiles, "rm unlink rmdir del rd remove-item")
	add(alwaysDestroys, "shred wipe srm wipefs blkdiscard sgdisk dropdb userdel deluser lvremove vgremove pvremove "+
		"truncate format diskpart")
	add(overwritesDevice, "dd")
	add(movesFiles, "mv")
	add(findsFiles, "find fd")
	add(endsProcesses, "kill pkill killall taskkill")
	add(stopsMachine, "reboot shutdown halt poweroff")
	add(controlsCluster, "kubectl oc k")
	add(handlesContainers, "docker podman nerdctl docker-compose")
	add(controlsServices, "systemctl rc-service")
	add(startsService, "service")
	add(changesRepository, "git")
	add(requestsAddress, "curl wget http https xh fetch iwr invoke-webrequest irm invoke-restmethod aria2c")
	add(copiesElsewhere, "scp rsync pscp")
	add(connects, "nc ncat netcat socat telnet ftp sftp tftp lftp")
	add(asksNames, "dig nslookup host ping")
	add(handlesStorage, "aws gsutil gcloud az rclone s3cmd mc azcopy oci")
	add(sendsMail, "mail mailx sendmail mutt msmtp swaks")
	add(handlesForge, "gh glab tea")
	add(takesRights, "sudo doas su pkexec runas")
	add(setsModes, "chmod")
	add(changesAccounts, "visudo passwd chpasswd useradd adduser setcap")
	add(changesGroups, "usermod gpasswd")
	add(switchesSecurity, "setenforce ufw iptables ip6tables nft csrutil set-mppreference spctl netsh firewall-cmd "+
		"aa-teardown aa-disable")
	add(plansTasks, "crontab at")
	add(plansWindowsTasks, "schtasks launchctl reg")
	add(installs, "pip pip3 npm pnpm yarn bun gem cargo go brew choco winget scoop conda mamba uv pipx poetry "+
		"composer luarocks krew")
	add(removesPackages, "apt apt-get yum dnf apk zypper pacman snap microdnf")
	add(fetchesAndRuns, "npx bunx uvx pnpx")
	add(startsModel, "ollama huggingface-cli hf")
	add(interprets, "bash sh zsh dash ksh python python3 python2 node deno ruby perl php powershell pwsh iex "+
		"invoke-expression lua tsx ts-node")
	add(runsFile, "source .")
	add(printsSecrets, "echo printf cat printenv env set base64 xxd tee strings")
	add(unsetsHistory, "history unset export")
	add(clearsJournal, "journalctl wevtutil auditctl")
	add(readsKeychain, "security vault op pass gpg bw secret-tool keyring")
	add(runsSQL, "psql mysql sqlite3 mongo mongosh sqlcmd clickhouse-client cqlsh mariadb")
	add(opensTunnel, "ssh")
	add(exposesPort, "ngrok cloudflared localtunnel bore")
	add(linksKey, "ssh-copy-id")
	return table
})
