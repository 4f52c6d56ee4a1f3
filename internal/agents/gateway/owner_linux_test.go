package gateway_test

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/claudeops/claudeops/internal/system/sandbox"
)

// The folder, the socket and the ticket keep every user out but the owner, who can use them; only root can be anybody
// here.
func TestOnlyTheOwnerComesIn(t *testing.T) {
	if uid() != 0 {
		t.Log("this needs root: other users cannot be played")
		return
	}
	const agent, other = 54321, 54322
	w := open(t, settings{account: &sandbox.Account{Name: "agent", UID: agent, GID: agent}})
	for user, want := range map[uint32]string{agent: "<nil>", other: "permission denied"} {
		// another user may not look into its folder
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", w.door.Address(), w.door.TicketFile())
		cmd.Args[0] = asOther
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("user %d: %v, %s; want %s", user, err, out, want)
		}
	}
	if rows := w.audit(); len(rows) > 0 {
		t.Errorf("rows %+v", rows)
	}
}
