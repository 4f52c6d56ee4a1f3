package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/system/files"
)

// CheckCommand is the argument by which this program is called as a hook of the CLI, with the folder of the handoff
// behind it: when the agent has written there, and when it is about to end. See CheckHandoff.
const CheckCommand = "session-handoff"

// hookCall is the CLI's call of a hook (2.1.329), as far as it is read.
type hookCall struct {
	Event string `json:"hook_event_name"`
	Again bool   `json:"stop_hook_active"` // the agent goes on because a hook kept it from ending
	Input struct {
		Path string `json:"file_path"`
	} `json:"tool_input"`
}

// CheckHandoff runs as a hook of the CLI. It tells the agent what is wrong with the handoff that it left in the folder,
// if anything, and keeps it from ending once. It returns the exit code of its process, which is 0: what it finds is in
// its answer.
func CheckHandoff(folder string, in io.Reader, out io.Writer) int {
	const mostCall = 1 << 20
	var call hookCall
	if raw, err := io.ReadAll(io.LimitReader(in, mostCall)); err != nil || json.Unmarshal(raw, &call) != nil {
		call = hookCall{}
	}
	ends := call.Event == "Stop"
	if ends && call.Again || !ends && call.Input.Path != "" && filepath.Base(call.Input.Path) != handoffName {
		return 0
	}
	root, err := files.OpenDir(folder)
	if err != nil {
		return 0 // what is read after the session decides
	}
	defer root.Close()
	_, notes, err := takeHandoff(root, func(text string) string { return text })
	reason := ""
	switch {
	case err != nil:
		reason = fmt.Sprintf("%s cannot be used as a handoff: %s. Write the whole file again, as your prompt shows it.",
			handoffName, err)
		if ends {
			reason += " Then end with your final report once more."
		}
	case len(notes) > 0 && !ends:
		reason = fmt.Sprintf("%s can be used, but not all of it: %s. Write it again only if what is missing matters.",
			handoffName, strings.Join(notes, "; "))
	}
	if reason == "" {
		return 0
	}
	answer, err := json.Marshal(map[string]string{"decision": "block", "reason": reason})
	if err == nil {
		_, _ = out.Write(append(answer, '\n'))
	}
	return 0
}

// takeHandoff reads the handoff in the folder. given is nil if there is none.
func takeHandoff(folder *files.Dir, redact func(string) string) (given *sessions.Handoff, notes []string, err error) {
	raw, err := readHandoff(folder)
	if err != nil || raw == nil {
		return nil, nil, err
	}
	h, notes, err := parseHandoff(raw, redact)
	if err != nil {
		return nil, nil, err
	}
	return &h, notes, nil
}

// hooks returns the hooks by which the CLI has the handoff checked while the agent can still correct it.
func (s Settings) hooks(f *folder) map[string]any {
	const seconds = 30
	run := map[string]any{
		"type": "command", "command": shellWord(s.Server.Command[0]) + " " + CheckCommand + " " + shellWord(f.handoffDir()),
		"timeout": seconds,
	}
	return map[string]any{
		"PostToolUse": []any{map[string]any{"matcher": "Write", "hooks": []any{run}}},
		"Stop":        []any{map[string]any{"hooks": []any{run}}},
	}
}

// shellWord quotes a text as one word for the shell by which the CLI starts hooks.
func shellWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// readHandoff returns the bytes of the handoff in the folder; nil if there is none.
func readHandoff(folder *files.Dir) ([]byte, error) {
	f, err := openLeft(folder, handoffName)
	if err != nil || f == nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxHandoff+1))
	if err != nil {
		return nil, errors.New("the handoff cannot be read")
	}
	if len(raw) > maxHandoff {
		return nil, fmt.Errorf("the handoff is larger than %d bytes", maxHandoff)
	}
	return raw, nil
}

// openLeft opens a file that an agent left in the folder; nil if there is none. Whatever the agent put there: only a
// regular file is opened, links are not followed, and nothing blocks.
func openLeft(folder *files.Dir, name string) (*os.File, error) {
	named, err := folder.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be looked at", name)
	}
	if !named.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	if files.HardLinked(named) { // to a file that the agent may not read, perhaps
		return nil, fmt.Errorf("%s is a file that has another name as well", name)
	}
	f, opened, err := folder.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be opened", name)
	}
	if !os.SameFile(named, opened) {
		return nil, errors.Join(fmt.Errorf("%s was exchanged while it was read", name), f.Close())
	}
	return f, nil
}
