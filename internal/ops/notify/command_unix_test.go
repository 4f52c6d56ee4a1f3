//go:build unix

package notify

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// fakeApprise writes a program that does what the script says, with $OUT as the folder for what it records.
func fakeApprise(t *testing.T, script string) (o SenderOptions, out string) {
	t.Helper()
	out = t.TempDir()
	path := filepath.Join(out, "apprise")
	writeProgram(t, path, "#!/bin/sh\n"+script+"\n")
	temp := filepath.Join(out, "temp folder")
	must.Do(t, os.Mkdir(temp, 0o700))
	return SenderOptions{Command: CommandOptions{Path: path, Env: []string{"OUT=" + out}, TempDir: temp}}, out
}

// writeProgram writes a program. No other test may start a process meanwhile: the child would inherit the file opened
// for writing, and the system would refuse to run it (ETXTBSY, golang.org/issue/22315).
func writeProgram(t *testing.T, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	must.Do(t, os.WriteFile(path, []byte(text), 0o700))
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(filepath.Join(parts...)))(t))
}

// wantNothingLeft holds that the sender left nothing in the folder for temporary files.
func wantNothingLeft(t *testing.T, out string) {
	t.Helper()
	if entries := must.Get(os.ReadDir(filepath.Join(out, "temp folder")))(t); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

const notifyURL = "discord://id/" + sentinel

func TestCommandIsGivenTheURLInPrivate(t *testing.T) {
	t.Setenv("CLAUDEOPS_TEST_TOKEN", sentinel)
	o, out := fakeApprise(t, `
printf '%s\n' "$@" >"$OUT/args"
env >"$OUT/env"
cat >"$OUT/stdin"
f=${1#--config=}
cp "$f" "$OUT/config"
ls -l "$f" >"$OUT/file"
ls -ld "${f%/*}" >"$OUT/folder"`)
	s := only(t, Settings{AppriseURLs: notifyURL}, o)
	must.Do(t, s.Send(t.Context(), delivery(t)))
	args := strings.Split(strings.TrimSpace(read(t, out, "args")), "\n")
	if len(args) != 4 || !strings.HasPrefix(args[0], "--config="+out) || args[1] != "--title="+Title(openedMessage()) ||
		args[2] != "--notification-type=info" || args[3] != "--input-format=text" {
		t.Errorf("arguments are %q", args)
	}
	must.Equal(t, read(t, out, "stdin"), Text(openedMessage()))
	must.Equal(t, read(t, out, "config"), notifyURL+"\n")
	if got := read(t, out, "file"); !strings.HasPrefix(got, "-rw------- ") {
		t.Errorf("the configuration file is %s", got)
	}
	if got := read(t, out, "folder"); !strings.HasPrefix(got, "drwx------ ") {
		t.Errorf("its folder is %s", got)
	}
	if got := read(t, out, "env") + strings.Join(args, " "); strings.Contains(got, sentinel) {
		t.Errorf("the environment or the arguments hold a secret: %s", got)
	}
	wantNothingLeft(t, out)
}

func TestExitCodesOfTheCommand(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, script string
		permanent    bool
		want         string
	}{
		{"1 may pass", `cat >/dev/null; cat "${1#--config=}"; cat "${1#--config=}" >&2; exit 1`, false, "exit code 1"},
		{"2 is for ever", "exit 2", true, "exit code 2"},
		{"3 is for ever", "exit 3", true, "exit code 3"},
		{"a crash may pass", "kill -9 $$", false, "failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o, out := fakeApprise(t, tt.script)
			f := failureFrom(t, t.Context(), only(t, Settings{AppriseURLs: notifyURL}, o))
			if f.Permanent != tt.permanent || !strings.Contains(f.Text, tt.want) {
				t.Errorf("failure is %+v", f)
			}
			if !strings.HasPrefix(f.Text, "apprise-discord: ") {
				t.Errorf("the error does not name the target: %s", f.Text)
			}
			wantNothingLeft(t, out)
		})
	}
}

func TestCommandThatIsNotThereOrCannotBeServed(t *testing.T) {
	t.Parallel()
	o, _ := fakeApprise(t, "exit 0")
	missing, full, broken := o, o, o
	missing.Command.Path = filepath.Join(t.TempDir(), "apprise")
	full.Command.TempDir = filepath.Join(t.TempDir(), "missing")
	broken.Command.Path = filepath.Join(t.TempDir(), "apprise")
	writeProgram(t, broken.Command.Path, "#!/does/not/exist\n")
	for want, options := range map[string]SenderOptions{
		"was not found": missing, "could not be written": full, "could not be started": broken,
	} {
		f := failureFrom(t, t.Context(), only(t, Settings{AppriseURLs: notifyURL}, options))
		if f.Permanent || !strings.Contains(f.Text, want) {
			t.Errorf("failure is %+v, want %q", f, want)
		}
	}
}

func TestACommandThatStallsIsEndedWithItsChildren(t *testing.T) {
	t.Parallel()
	o, out := fakeApprise(t, `
exec 3>"$OUT/alive"
( sleep 30; echo survived >&3 ) &
echo started >&3
wait`)
	pipe := filepath.Join(out, "alive")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	rest := make(chan string)
	go func() {
		alive, err := os.Open(pipe)
		if err != nil {
			t.Error(err)
		}
		defer alive.Close()
		in := bufio.NewReader(alive)
		_, _ = in.ReadString('\n') // it has started a child
		cancel()
		more, _ := io.ReadAll(in) // ends when no process holds the pipe any more
		rest <- string(more)
	}()
	f := failureFrom(t, ctx, only(t, Settings{AppriseURLs: notifyURL}, o))
	if f.Permanent || !strings.Contains(f.Text, "did not finish in time") {
		t.Errorf("failure is %+v", f)
	}
	if more := <-rest; more != "" {
		t.Errorf("a child lived on: %q", more)
	}
	wantNothingLeft(t, out)
}

func TestACommandThatFloodsIsNotListenedTo(t *testing.T) {
	t.Parallel()
	o, _ := fakeApprise(t, "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2")
	must.Do(t, only(t, Settings{AppriseURLs: notifyURL}, o).Send(t.Context(), delivery(t)))
}

func TestCommandEnvironmentPassesNoTokens(t *testing.T) {
	t.Parallel()
	values := map[string]string{"HOME": "/home/joe", "HTTPS_PROXY": "http://proxy:3128", "GITHUB_TOKEN": sentinel,
		"LANG": ""}
	got := strings.Join(CommandEnvironment(func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}), " ")
	if got != "HOME=/home/joe LANG= HTTPS_PROXY=http://proxy:3128" {
		t.Errorf("environment is %q", got)
	}
}
