package facts

import (
	"strings"
	"sync"
)

// programTable maps the names of programs to what reads their commands. It is made once.
var programTable = sync.OnceValue(func() map[string]func(command) []act { //nolint:gochecknoglobals // never changed
	table := map[string]func(command) []act{}
	for names, read := range map[string]func(command) []act{
		"rm unlink rmdir del rd remove-item": removesFiles,
		"shred wipe srm wipefs blkdiscard sgdisk dropdb userdel deluser lvremove vgremove pvremove truncate format diskpart": alwaysDestroys,
		"dd":                                   overwritesDevice,
		"mv":                                   movesFiles,
		"find fd":                              findsFiles,
		"kill pkill killall taskkill":          endsProcesses,
		"reboot shutdown halt poweroff":        stopsMachine,
		"kubectl oc k":                         controlsCluster,
		"docker podman nerdctl docker-compose": handlesContainers,
		"systemctl rc-service":                 controlsServices,
		"service":                              startsService,
		"git":                                  changesRepository,
		"curl wget http https xh fetch iwr invoke-webrequest irm invoke-restmethod aria2c": requestsAddress,
		"scp rsync pscp": copiesElsewhere,
		"nc ncat netcat socat telnet ftp sftp tftp lftp":  connects,
		"dig nslookup host ping":                          asksNames,
		"aws gsutil gcloud az rclone s3cmd mc azcopy oci": handlesStorage,
		"mail mailx sendmail mutt msmtp swaks":            sendsMail,
		"gh glab tea":                                     handlesForge,
		"sudo doas su pkexec runas":                       takesRights,
		"chmod":                                           setsModes,
		"visudo passwd chpasswd useradd adduser setcap":   changesAccounts,
		"usermod gpasswd":                                 changesGroups,
		"setenforce ufw iptables ip6tables nft csrutil set-mppreference spctl netsh firewall-cmd aa-teardown aa-disable": switchesSecurity,
		"crontab at":             plansTasks,
		"schtasks launchctl reg": plansWindowsTasks,
		"pip pip3 npm pnpm yarn bun gem cargo go brew choco winget scoop conda mamba uv pipx poetry composer luarocks krew": installs,
		"apt apt-get yum dnf apk zypper pacman snap microdnf":                                                               removesPackages,
		"npx bunx uvx pnpx":         fetchesAndRuns,
		"ollama huggingface-cli hf": startsModel,
		"bash sh zsh dash ksh python python3 python2 node deno ruby perl php powershell pwsh iex invoke-expression lua tsx ts-node": interprets,
		"source .": runsFile,
		"echo printf cat printenv env set base64 xxd tee strings": printsSecrets,
		"history unset export":                                                    unsetsHistory,
		"journalctl wevtutil auditctl":                                            clearsJournal,
		"security vault op pass gpg bw secret-tool keyring":                       readsKeychain,
		"psql mysql sqlite3 mongo mongosh sqlcmd clickhouse-client cqlsh mariadb": runsSQL,
		"ssh":                                opensTunnel,
		"ngrok cloudflared localtunnel bore": exposesPort,
		"ssh-copy-id":                        linksKey,
	} {
		for name := range strings.FieldsSeq(names) {
			table[name] = read
		}
	}
	return table
})
