package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/sandbox"
)

// folderPrefix begins the name of each session's private folder; the session's id follows.
const folderPrefix = "claudeops-session-"

// folder is one session's folder on disk, readable by this user alone, and by the agent's where that is another. It
// holds our files with which the CLI is started, and the agent's own: an empty working folder, a home, a folder for
// temporary files, and that of the handoff.
type folder struct {
	path    string
	account *sandbox.Account // the agent's user; nil for ours
	handoff *files.Dir       // opened before the agent ran, so that it cannot be exchanged
	offers  Offering
	door    *gateway.Door // nil where sessions have none, and when it is closed
}

func (f *folder) config() string       { return filepath.Join(f.private(), "mcp.json") }
func (f *folder) settingsFile() string { return filepath.Join(f.private(), "settings.json") }
func (f *folder) prompt() string       { return filepath.Join(f.private(), "prompt.md") }
func (f *folder) work() string         { return filepath.Join(f.path, "work") }
func (f *folder) temp() string         { return filepath.Join(f.path, "tmp") }
func (f *folder) home() string         { return filepath.Join(f.path, "home") }
func (f *folder) handoffDir() string   { return filepath.Join(f.path, "handoff") }
func (f *folder) handoffFile() string  { return filepath.Join(f.handoffDir(), handoffName) }
func (f *folder) journalFile() string  { return filepath.Join(f.handoffDir(), journalName) }

// private returns the folder of what the CLI is started with. Where the agent has a user of its own, it is beside the
// agent's folder: the CLI writes only where every folder on the way belongs to its user or to root.
func (f *folder) private() string {
	if f.account != nil {
		return f.path + "-private"
	}
	return filepath.Join(f.path, "private")
}

// sessionFolder returns the folder of the session with the id.
func (f Folders) sessionFolder(id string) string {
	dir := f.Temp
	if dir == "" {
		dir = os.TempDir()
	}
	return filepath.Join(dir, folderPrefix+id)
}

// makeFolder makes the folder and its files. On an error nothing is left.
func (s Settings) makeFolder(id string, tier gitprovider.Tier, prompt []byte, account *sandbox.Account) (*folder,
	error) {
	path, err := filepath.Abs(s.Folders.sessionFolder(id))
	if err != nil {
		return nil, err
	}
	f := &folder{path: path, account: account, offers: s.offering()}
	if err := f.account.As(func() error { return files.Mkdir(path, 0o700) }); err != nil {
		if f.account != nil && errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w: the agents' user %s makes it; set TMPDIR to a folder that it may write, such as /tmp", err,
				f.account.Name)
		}
		return nil, err
	}
	if err := s.fill(f, id, tier, prompt); err != nil {
		return nil, errors.Join(err, f.remove())
	}
	return f, nil
}

// fill makes what is in the folder.
func (s Settings) fill(f *folder, id string, tier gitprovider.Tier, prompt []byte) (err error) {
	f.path = files.Resolve(f.path) // the CLI compares resolved paths with its rules
	if err := errors.Join(f.makeOurs(f.private()), f.makeOwn()); err != nil {
		return err
	}
	if f.door, err = s.openDoor(id, tier, f.account); err != nil {
		return fmt.Errorf("the socket for its MCP server cannot be made: %w", err)
	}
	config, err := s.mcpConfig(id, tier, f)
	if err != nil {
		return err
	}
	settings, err := s.settingsFile(tier, f)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{f.config(): config, f.settingsFile(): settings, f.prompt(): prompt} {
		if err := f.writeOurs(name, data); err != nil {
			return err
		}
	}
	return nil
}

// removeConfig removes the MCP configuration, which holds tokens where there is no door. The CLI has read it by the
// time it reports that the server is connected, and can restart the server from memory.
func (f *folder) removeConfig() error { return files.Remove(f.config()) }

func (f *folder) remove() error {
	var err error
	if f.handoff != nil {
		err = f.handoff.Close()
	}
	return errors.Join(err, f.closeDoor(), removeFolder(f.path, f.account))
}

// serverEntry is an entry of the MCP configuration.
type serverEntry struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// mcpConfig returns the MCP configuration of one session.
func (s Settings) mcpConfig(id string, tier gitprovider.Tier, f *folder) ([]byte, error) {
	servers := map[string]any{}
	for name, entry := range f.offers.Servers {
		servers[name] = entry
	}
	if f.door != nil {
		servers[serverName] = s.Server.connector(f.door) // ours replaces any other of this name
		return json.Marshal(map[string]any{"mcpServers": servers})
	}
	own, err := s.ownServer(id, tier)
	if err != nil {
		return nil, err
	}
	servers[serverName] = own
	return json.Marshal(map[string]any{"mcpServers": servers})
}

// ownServer returns the entry of a server that the CLI starts by itself, where there are no doors. Tier, session and
// tokens stand in it as values: the server takes nothing from the agent's environment.
func (s Settings) ownServer(id string, tier gitprovider.Tier) (serverEntry, error) {
	env := maps.Clone(s.Server.Env)
	if env == nil {
		env = map[string]string{}
	}
	env["CLAUDEOPS_TIER"], env["CLAUDEOPS_SESSION"] = tier.String(), id
	env["CLAUDEOPS_DRY_RUN"] = "" // unset, so that the server's own environment file may say it
	if s.isDryRun() {
		env["CLAUDEOPS_DRY_RUN"] = "true"
	}
	for name, value := range env {
		if strings.Contains(value, "${") {
			return serverEntry{}, fmt.Errorf("the value of %s holds ${, which claude would replace; write it otherwise", name)
		}
	}
	return serverEntry{Type: "stdio", Command: s.Server.Command[0], Args: s.Server.Command[1:], Env: env}, nil
}

// Modes of what the agent's user may read, where that is another: by its group.
const (
	sharedFolder = 0o750
	sharedFile   = 0o640
)

// mode returns the mode of our files: shared where the agent's user is another.
func (f *folder) mode(private, shared fs.FileMode) fs.FileMode {
	if f.account != nil {
		return shared
	}
	return private
}

// makeOurs makes a folder that is ours, and that the agent may look into.
func (f *folder) makeOurs(path string) error {
	return f.account.WithGroup(func() error { return files.Mkdir(path, f.mode(0o700, sharedFolder)) })
}

// makeOwn makes the agent's own folders, and opens that of the handoff.
func (f *folder) makeOwn() error {
	return f.account.As(func() (err error) {
		for _, dir := range []string{f.work(), f.temp(), f.handoffDir(), f.home()} {
			if err := files.Mkdir(dir, 0o700); err != nil {
				return err
			}
		}
		f.handoff, err = files.OpenDir(f.handoffDir())
		return err
	})
}

// writeOurs writes a file that is ours, and that the agent may read.
func (f *folder) writeOurs(name string, data []byte) error {
	return f.account.WithGroup(func() error { return files.Create(name, data, f.mode(0o600, sharedFile)) })
}

// removeFolder removes a session's folder. What is the account's is removed with the account's rights, so that no link
// leads elsewhere.
func removeFolder(path string, account *sandbox.Account) error {
	f := folder{path: path, account: account}
	err := account.As(func() error { return sandbox.RemoveAll(path) })
	return errors.Join(err, files.Temporary{Path: f.private()}.Remove())
}

// openDoor opens the door of a session; nil, and no error, where sessions have none.
func (s Settings) openDoor(id string, tier gitprovider.Tier, account *sandbox.Account) (*gateway.Door, error) {
	if s.Server.Doors == nil {
		return nil, nil
	}
	rights := s.Server.Rights
	rights.Session, rights.Tier, rights.DryRun = id, tier, s.isDryRun()
	return s.Server.Doors.Open(
		gateway.Spec{Rights: rights, Actor: s.Server.actor, Dir: s.Folders.Temp, Account: account, Still: s.Server.still},
	)
}

// doorFolder returns the folder of a session's door, below that of temporary files; "" where sessions have no doors.
func (s Server) doorFolder(temp, id string) string {
	if s.Doors == nil {
		return ""
	}
	return gateway.Folder(temp, id)
}

// connector returns the entry of the MCP configuration that reaches a door. It holds no secret.
func (s Server) connector(d *gateway.Door) serverEntry {
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
