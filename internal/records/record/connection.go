package record

import (
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// Connection is an agent that is connected over MCP to a process that holds tokens and records.
type Connection struct {
	ID         string
	Session    string // the agent's session; "" for none
	Credential string // the name of the token by which it was admitted; "" for a session's ticket
	Tier       gitprovider.Tier
	DryRun     bool
	ReadOnly   bool
	Way        string // how it came in: unix, https
	Peer       string // who is at the other end, as far as it is known: "pid 12, uid 1000", an address
	Since      time.Time
	Calls      int // calls of tools under way when its process last said so, at most a second or two ago
	// when a person cut it off; zero if not. The process that serves it ends it within a second or two.
	CutAt time.Time
	CutBy string // who cut it off; "" if not
}
