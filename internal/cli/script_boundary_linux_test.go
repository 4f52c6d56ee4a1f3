package cli_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/sandbox"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// scripted is a project with scripts, and what claudeops has of its own beside it.
type scripted struct {
	*testing.T
	project, home, state, root, secret string
	env                                []string
}

const inTheEnvironment = "tok-7f3a9c2e51d84b60-environment"

func newScripted(t *testing.T, settings string, files map[string]string) *scripted {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "claudeops-scripted-") // not in memory: scripts may write in /dev/shm
	must.Do(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &scripted{
		T: t, project: filepath.Join(dir, "project"), home: filepath.Join(dir, "home"),
		state: filepath.Join(dir, "home", ".claudeops"), root: filepath.Join(dir, "root"),
		secret: filepath.Join(dir, "secrets", "token"),
	}
	operationtest.WriteFiles(t, dir, map[string]string{
		"home/.profile": "# mine\n", "home/.claudeops/found": "found the records\n",
		"root/demo/found": "found a repository\n", "secrets/token": "found-a-secret-0123456789\n",
		"policy.yaml": "version: 1\n",
	})
	operationtest.WriteExecutables(t, s.project, files)
	s.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "CLAUDEOPS_STATE_DIR=" + s.state, "CLAUDEOPS_LOCAL_ROOT=" + s.root,
		"CLAUDEOPS_TOOLSETS=pr,scripts", "GITHUB_TOKEN_FILE=" + s.secret,
		"CLAUDEOPS_POLICY=" + filepath.Join(dir, "policy.yaml"), "ANTHROPIC_API_KEY=" + inTheEnvironment,
		"CLAUDEOPS_SCRIPTS=" + settings,
	}
	return s
}

// run runs a command in the project.
func (s *scripted) run(args ...string) (out string, code int) {
	s.Helper()
	cmd := exec.Command("claudeops", args...)
	cmd.Dir, cmd.Env = s.project, s.env
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		s.Fatal(err)
	}
	return both.String(), cmd.ProcessState.ExitCode()
}

// finding returns doctor's finding about scripts.
func (s *scripted) finding() (status, detail string) {
	s.Helper()
	cmd := exec.Command("claudeops", "doctor", "--json")
	cmd.Dir, cmd.Env = s.project, s.env
	text, _ := cmd.Output() // it ends with an error where something is missing
	for _, f := range decode[struct {
		Findings []struct{ Name, Status, Detail string }
	}](s, string(text)).Findings {
		if f.Name == "scripts' boundary" {
			return f.Status, f.Detail
		}
	}
	s.Fatalf("doctor says nothing of scripts: %s", text)
	return "", ""
}

// hasLandlock reports whether this system can keep scripts within a boundary.
func hasLandlock() bool { return sandbox.ThisMachine().ABI > 0 }

// attack is a script that tries to reach what is claudeops' own. It prints a line for each thing that it reached.
func attack(s *scripted) string {
	return strings.NewReplacer("STATE", s.state, "ROOT", s.root, "SECRET", s.secret, "HOME", s.home, "POLICY", filepath.Join(filepath.Dir(s.project), "policy.yaml"), "MARK", inTheEnvironment).Replace(`#!/bin/sh
# @noparams
exec 2>/dev/null
cat STATE/found ROOT/demo/found SECRET
ls STATE ROOT && echo listed
ln -s STATE link; cat link/found; ln STATE/found hard; cat hard
mv STATE/found moved && echo moved; rm -f STATE/found && echo removed the records; echo > STATE/new && echo wrote the records
echo >> POLICY && echo wrote the policy
echo > ROOT/demo/new && echo wrote to a repository
echo >> HOME/.profile && echo wrote the profile
echo > "/tmp/claudeops-test-$$" && { echo wrote into /tmp; rm -f "/tmp/claudeops-test-$$"; }
for f in /proc/[0-9]*/environ; do grep -q -a MARK "$f" && echo "looked into $f"; done
parent=$PPID
while [ "$parent" -gt 1 ]; do
  kill -CONT "$parent" && echo "signalled $parent"
  cat "/proc/$parent/root/etc/hostname" "/proc/$parent/cwd/secret" && echo "through $parent"
  parent=$(awk '/^PPid/ {print $2}' "/proc/$parent/status")
done
echo end
`)
}

// Unless the operator says otherwise a script is kept from the records, from secrets and from the environment of
// claudeops, as root too. Where the system cannot keep that, the script runs as it did, and doctor says so.
func TestByDefaultAScriptDoesNotReachWhatIsOurs(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{"{}", "{boundary: landlock}", "{boundary: none}"} {
		s := newScripted(t, settings, nil)
		operationtest.WriteExecutables(t, s.project, map[string]string{"scripts/Agent/attack.sh": attack(s)})
		status, detail := s.finding()
		out, code := s.run("scripts", "run", "attack")
		text, err := os.ReadFile(filepath.Join(s.state, "found"))
		kept := err == nil && string(text) == "found the records\n"
		switch {
		case settings == "{boundary: none}":
			if !strings.Contains(out, "found the records") || !strings.Contains(out, "found a repository") ||
				!strings.Contains(out, "wrote to a repository") || kept {
				t.Errorf("%s: the attack does not work, so that the test shows nothing: %s", settings, out)
			}
			if status != "warning" || !strings.Contains(detail, "none, as the settings of scripts say") {
				t.Errorf("%s: doctor says %s: %s", settings, status, detail)
			}
		case hasLandlock():
			if out != "end\n" || code != 0 || !kept {
				t.Errorf("%s: exit %d, the script reached:\n%s", settings, code, out)
			}
			if !strings.HasPrefix(detail, "landlock (ABI ") || !strings.Contains(detail, s.project) {
				t.Errorf("%s: doctor says %s: %s", settings, status, detail)
			}
		case settings == "{}":
			if !strings.Contains(out, "end\n") || status != "warning" || !strings.Contains(detail, "no Landlock") {
				t.Errorf("%s: %s; doctor says %s: %s", settings, out, status, detail)
			}
		default:
			if code == 0 || status != "warning" {
				t.Errorf("%s: exit %d, %s; doctor says %s: %s", settings, code, out, status, detail)
			}
		}
	}
}

// What an ordinary build does works within the boundary.
func TestAnOrdinaryScriptWorksWithinTheBoundary(t *testing.T) {
	t.Parallel()
	s := newScripted(t, "{write: [~/cache, ../out]}", map[string]string{
		"src/main.sh": "#!/bin/sh\necho built\n", "src/mod.py": "def say():\n    return 'built'\n",
		"scripts/Agent/build.sh": `#!/bin/sh
# @noparams
set -e
umask
rm -rf build && mkdir -p build/bin build/lib
install -m 755 src/main.sh build/bin/main
cp -p src/mod.py build/lib/ && chmod 640 build/lib/mod.py && touch -d '2020-01-01' build/lib/mod.py
ln -s bin/main build/link && mv build/link build/main && test "$(build/main)" = built
temporary=$(mktemp) && mktemp -d >/dev/null && echo text > "$temporary" && mv "$temporary" build/moved
mkdir -p "$XDG_CACHE_HOME/x" && echo cached > "$XDG_CACHE_HOME/x/y"
tar -C build -czf build.tar.gz bin lib && mkdir unpacked && tar -C unpacked -xzpf build.tar.gz
seq 1 50000 | sort -R | sort -n | tail -1 > build/sorted
cat <<END > build/here
here $(cat build/sorted)
END
echo note > /dev/stderr; echo gone > /dev/null
git init -q repo && cd repo && echo x > x && git add x && git -c user.name=a -c user.email=a@example.org commit -qm x && git clone -q . ../copy && cd ..
(sleep 0.1; echo later > build/later) & wait
echo > ../out/made
mkdir -p "$HOME/cache/deep" && echo > "$HOME/cache/deep/made"
python3 scripts/build.py
stat -c %a build/bin/main build/lib/mod.py
echo done in "$TMPDIR"
`,
		"scripts/build.py": `import os, shutil, subprocess, sys, tempfile, zipfile, multiprocessing, py_compile, sqlite3, socket
sys.path.insert(0, "src")
import mod
with tempfile.TemporaryDirectory() as d:
    shutil.copy("src/main.sh", d); shutil.copytree("src", d + "/tree"); os.chmod(d + "/main.sh", 0o700)
    assert subprocess.run([d + "/main.sh"], capture_output=True, check=True).stdout == b"built\n"
py_compile.compile("src/mod.py", doraise=True)
with zipfile.ZipFile("build/all.zip", "w") as z: z.write("src/mod.py")
db = sqlite3.connect("build/db"); db.execute("create table t(x)"); db.commit()
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
with multiprocessing.get_context("fork").Pool(2) as p: assert p.map(len, ["a", "bb"]) == [1, 2]
with open("/etc/hostname") as f: f.read()
print("python", mod.say())
`,
	})
	for _, dir := range []string{filepath.Join(s.home, "cache"), filepath.Join(filepath.Dir(s.project), "out")} {
		must.Do(t, os.Mkdir(dir, 0o700))
	}
	out, code := s.run("scripts", "run", "build")
	if want := "python built\n755\n640\ndone in "; code != 0 || !strings.Contains(out, want) ||
		!strings.Contains(out, "note\n") {
		t.Errorf("exit %d: %s", code, out)
	}
	for _, name := range []string{"build/later", "unpacked/bin/main", "copy/x"} {
		if _, err := os.Stat(filepath.Join(s.project, name)); err != nil {
			t.Error(err)
		}
	}
	own := regexp.MustCompile(`/tmp/claudeops-script-\d+`).FindString(out)
	if _, err := os.Stat(own); hasLandlock() && (own == "" || !os.IsNotExist(err)) {
		t.Errorf("%q is left: %v", own, err)
	}
}

// A file of ours in the folder that scripts may change stays out of their reach, and doctor says what that costs.
func TestSettingsInTheWorkingFolderAreOutOfReach(t *testing.T) {
	t.Parallel()
	s := newScripted(t, "scripts.yaml", map[string]string{
		"scripts.yaml": "scripts: {change: {read_only: true}}\n", "src/x": "",
		"scripts/Agent/change.sh": "#!/bin/sh\n# @noparams\nexec 2>/dev/null\necho 'boundary: none' > scripts.yaml && echo " +
			"changed\nmv src/x scripts.yaml && echo replaced\nrm scripts.yaml && echo removed\necho > src/y && echo elsewhere\n",
	})
	status, detail := s.finding()
	out, _ := s.run("scripts", "run", "change")
	if !hasLandlock() {
		if status != "warning" {
			t.Errorf("doctor says %s: %s", status, detail)
		}
		return
	}
	if out != "elsewhere\n" || status != "warning" || !strings.Contains(detail, "scripts.yaml") {
		t.Errorf("the script says %q, doctor says %s: %s", out, status, detail)
	}
}

// accessList returns an access list that gives a user permissions beside the owner, and others none, in the kernel's
// form.
func accessList(user uint32, perm uint16) []byte {
	const version, unnamed, all = 2, ^uint32(0), 7
	out := binary.LittleEndian.AppendUint32(nil, version)
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{0x01, all, unnamed}, {0x02, perm, user}, {0x04, 5, unnamed}, {0x10, all, unnamed}, {0x20, 5, unnamed}} {
		out = binary.LittleEndian.AppendUint16(out, e.tag)
		out = binary.LittleEndian.AppendUint16(out, e.perm)
		out = binary.LittleEndian.AppendUint32(out, e.id)
	}
	return out
}

// TestNoSessionStartsWhileAccessListsOpenWhatIsOurs gives a user rights that no mode shows: the bits of the group are
// those of the list's mask.
func TestNoSessionStartsWhileAccessListsOpenWhatIsOurs(t *testing.T) {
	t.Parallel()
	gives := func(name, kind string, perm uint16) func(*peopleWorld) {
		return func(w *peopleWorld) {
			if err := unix.Setxattr(filepath.Join(w.dir, name), "system.posix_acl_"+kind, accessList(agent, perm),
				0); err != nil {
				w.Fatalf("%v; the file system of TMPDIR has to have access lists", err)
			}
		}
	}
	const write, read = 6, 4
	scripts := map[string]string{"CLAUDEOPS_SESSION_TOOLSETS": "pr,scripts", "CLAUDEOPS_SCRIPTS": "$DIR/scripts.yaml"}
	all := []exposure{
		{"the policy", map[string]string{"CLAUDEOPS_POLICY": "$DIR/narrow.yaml"}, gives("narrow.yaml", "access", write),
			[]string{"the policy file: $DIR/narrow.yaml can be written by user 54321", "setfacl -x u:54321 '$DIR/narrow.yaml'",
				"by their modes, owners or access lists"}},
		{"the state folder", nil, gives("state", "access", write),
			[]string{"the state folder: $DIR/state can be written by user 54321"}},
		{"the local root", nil, gives("root", "access", write), []string{"the folder of local repositories: $DIR/root can"}},
		{"what will be a prompt", map[string]string{"CLAUDEOPS_PROMPTS_DIR": "$DIR/prompts"},
			gives("prompts", "default", write),
			[]string{"the prompts: $DIR/prompts gives what is made in it to user 54321 to write", "setfacl -x d:u:54321"}},
		{"a script", scripts, gives("agent-scripts/up.sh", "access", write),
			[]string{"the scripts: $DIR/agent-scripts/up.sh can be written by user 54321"}},
		{"the file of a secret", map[string]string{"CLAUDEOPS_WEBHOOK_SECRET_FILE": "$DIR/hook"},
			gives("hook", "access", write), []string{"the file of a secret: $DIR/hook"}},
	}
	if os.Getuid() == 0 { // only root can start agents as another user
		user := map[string]string{"CLAUDEOPS_BOUNDARY": "user", "CLAUDEOPS_AGENT_USER": "54321:54321"}
		all = append(all, exposure{"refs of a local repository", user, func(w *peopleWorld) {
			found, err := filepath.Glob(filepath.Join(w.dir, "root/*/*.git/refs/heads"))
			if err != nil || len(found) == 0 {
				w.Fatal("no repository", err)
			}
			for _, at := range append(found, filepath.Dir(filepath.Dir(found[0]))) {
				gives(at[len(w.dir):], "access", read|1)(w)
			}
			gives(found[0][len(w.dir):], "access", write|1)(w)
		}, []string{"a local repository: $DIR/root/", "refs/heads can be written by user 54321"}})
	}
	if os.Getuid() == 0 {
		several := map[string]string{"CLAUDEOPS_BOUNDARY": "user", "CLAUDEOPS_AGENT_USER": "54320+3",
			"CLAUDEOPS_POLICY": "$DIR/narrow.yaml"}
		all = append(all, exposure{"the policy, to one of several users", several, gives("narrow.yaml", "access", write),
			[]string{
				"agents, which run as 54320 to 54322,", "the policy file: $DIR/narrow.yaml can be written by user 54321",
			}})
	}
	for _, e := range all {
		t.Run(e.name, e.keepsSessionsFromStarting)
	}
}

// Every command keeps the tokens in its environment from other processes of its user: the kernel gives the file to root
// (proc_pid_environ(5)).
func TestACommandConcealsItsEnvironment(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"pr", "create", "--from", "-"}, {"mcp-server"},
		{"policy", "check", "--paths-from", "-"}} {
		cmd := ordinary(t, t.TempDir(), args...)
		cmd.Env = append(cmd.Env, "GITHUB_TOKEN=tok-7f3a9c2e51d84b60")
		user := uint32(os.Getuid()) //nolint:gosec // an id
		if user == 0 {
			user = nobody
		}
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		must.Do(t, cmd.Start())
		var info syscall.Stat_t
		concealed := false
		for end := time.Now().Add(time.Minute); !concealed && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if err := syscall.Stat(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "environ"), &info); err != nil {
				t.Fatalf("%v: %v", args, err)
			}
			stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "stat"))
			if err != nil || strings.Contains(string(stat), ") Z ") {
				t.Fatalf("%v ended instead of reading its input: %s, %v", args, stat, err)
			}
			concealed = info.Uid != user
		}
		if !concealed {
			t.Errorf("%v: the environment belongs to user %d, who runs it", args, info.Uid)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
