package session

import (
	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/system/confine"
)

// openDoor opens the door of a session; nil, and no error, where sessions have none.
func (s Settings) openDoor(id string, tier gitprovider.Tier, account *confine.Account) (*door.Door, error) {
	if s.Server.Doors == nil {
		return nil, nil
	}
	rights := s.Server.Rights
	rights.Session, rights.Tier, rights.DryRun = id, tier, s.isDryRun()
	return s.Server.Doors.Open(
		door.Spec{Rights: rights, Actor: s.Server.actor, Dir: s.Folders.Temp, Account: account, Still: s.Server.still},
	)
}

// doorFolder returns the folder of a session's door, below that of temporary files; "" where sessions have no doors.
func (s Server) doorFolder(temp, id string) string {
	if s.Doors == nil {
		return ""
	}
	return door.Folder(temp, id)
}

// connector returns the entry of the MCP configuration that reaches a door. It holds no secret.
func (s Server) connector(d *door.Door) serverEntry {
	command := s.Connector
	args := append(append([]string{}, command[1:]...), "--connect", d.Address(), "--ticket-file", d.TicketFile())
	return serverEntry{Type: "stdio", Command: command[0], Args: args, Env: map[string]string{}}
}

// closeDoor ends the session's connections: calls that write are finished and recorded first, for a bounded time. It
// may be called again.
func (f *folder) closeDoor() error {
	if f.door == nil {
		return nil
	}
	d := f.door
	f.door = nil
	return d.Close()
}
