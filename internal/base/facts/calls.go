package facts

import (
	"strings"
	"sync"
)

// callTable maps what programs call, in lower case, to what that does: the end of a chain such as requests.post.
var callTable = sync.OnceValue(func() map[string]act { //nolint:gochecknoglobals // made once, never changed
	table := map[string]act{}
	add := func(a act, names string) {
		for name := range strings.FieldsSeq(names) {
			table[name] = a
		}
	}
	add(act{Outbound, "Sends data out"},
		"requests.post requests.put requests.patch httpx.post httpx.put session.post axios.post axios.put http.post "+
			"client.post sock.send sock.sendall s.send s.sendall socket.send conn.send sendall sendto sendmail "+
			"send_message smtplib.smtp smtplib.smtp_ssl ftp.storbinary storbinary sftp.put put_object upload_file "+
			"upload_fileobj navigator.sendbeacon sendbeacon paramiko.sshclient http.postform got.post needle.post "+
			"superagent.post urllib3.request ftplib.ftp webhook.send")
	add(act{Outbound, "Connects to another host"},
		"s.connect sock.connect socket.connect remote.connect socket.create_connection create_connection net.connect "+
			"net.dial tcp4clientendpoint asyncio.open_connection open_connection telnetlib.telnet")
	add(act{Destroy, "Deletes files"},
		"shutil.rmtree rmtree os.remove os.unlink os.rmdir os.removedirs fs.unlink fs.unlinksync fs.rm fs.rmsync "+
			"fs.rmdir fs.rmdirsync os.removeall fileutils.rm_rf file.delete path.unlink rimraf")
	add(act{Destroy, "Deletes from a database"},
		"drop_all drop_database dropdatabase drop_table flushall flushdb delete_many deletemany delete_bucket "+
			"terminate_instances delete_objects")
	add(act{Destroy, "Ends processes"}, "os.kill os.killpg process.kill")
	add(act{RunsCode, "Runs code"},
		"eval exec os.system os.popen subprocess.run subprocess.call subprocess.popen subprocess.check_output "+
			"subprocess.check_call subprocess.getoutput child_process.exec execsync spawnsync child_process.spawn "+
			"exec.command runtime.exec kernel.exec system pty.spawn importlib.import_module __import__ runpy.run_path "+
			"function compile vm.runinnewcontext")
	add(act{DownloadRun, "Loads code or a model"},
		"from_pretrained hf_hub_download snapshot_download torch.hub.load urllib.request.urlretrieve urlretrieve "+
			"load_dataset pickle.loads pickle.load torch.load joblib.load cloudpickle.loads marshal.loads "+
			"yaml.unsafe_load")
	add(act{Credential, "Reads a secret"},
		"keyring.get_password get_secret_value getpass.getpass secretmanager.access_secret_version")
	add(act{Opaque, "Decodes what is encoded"},
		"base64.b64decode b64decode atob bytes.fromhex codecs.decode zlib.decompress binascii.unhexlify "+
			"string.fromcharcode base64.decodestring")
	add(act{Conceal, "Watches what people do"},
		"pyautogui.screenshot imagegrab.grab keyboard.listener keyboard.on_press pyperclip.paste keyboard.record "+
			"mss.mss clipboard.paste")
	return table
})

// callsOf gives what a line of a program calls, and the texts of the commands that it runs.
func callsOf(line string) (acts []act, commands []string) {
	if strings.IndexByte(line, '(') < 0 {
		return nil, nil
	}
	table := callTable()
	runs := false
	for at := 0; at < len(line); at++ {
		if line[at] != '(' {
			continue
		}
		name := strings.ToLower(line[callStart(line, at):at])
		if name == "" {
			continue
		}
		a, ok := lookUpCall(table, name)
		if !ok {
			continue
		}
		if a.class == RunsCode {
			runs = true
		}
		acts = append(acts, a)
	}
	if runs {
		commands = commandTexts(stringLiterals(line))
	}
	return acts, commands
}

// callStart returns where the name that ends at an offset begins.
func callStart(line string, end int) int {
	start := end
	for start > 0 && (isAlphanumeric(line[start-1]) || line[start-1] == '_' || line[start-1] == '.') && end-start < 80 {
		start--
	}
	return start
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// lookUpCall looks for a name, for its last two parts, and for the last.
func lookUpCall(table map[string]act, name string) (act, bool) {
	for {
		if a, ok := table[name]; ok {
			return a, true
		}
		_, rest, ok := strings.Cut(name, ".")
		if !ok {
			return act{}, false
		}
		name = rest
	}
}

// stringLiterals gives the texts in quotes of a line.
func stringLiterals(line string) []string {
	var texts []string
	for at := 0; at < len(line); {
		switch line[at] {
		case '"', '\'', '`':
			inner, end := quotedText(line, at)
			if inner != "" {
				texts = append(texts, inner)
			}
			at = end
		default:
			at++
		}
	}
	return texts
}

// commandTexts gives the commands that texts in quotes make: each, if the first is a whole command, or all together.
func commandTexts(texts []string) []string {
	if len(texts) == 0 || strings.ContainsAny(texts[0], " \t") {
		return texts
	}
	return []string{strings.Join(texts, " ")}
}
