package cli_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

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
