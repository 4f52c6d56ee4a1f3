package stdio

import (
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// Notifications that may wait for the writer. mcp-go does not wait for room: beyond it, sending fails with
// server.ErrNotificationChannelBlocked and the notification is lost, which is acceptable for progress, and for a list
// that has changed once more before the client was told of it.
const (
	callNotes       = 128
	connectionNotes = 8
)

// connection is the client on the other side. It is registered with the server and gets what is sent to all clients.
type connection struct {
	id          string
	notes       chan mcp.JSONRPCNotification
	initialized atomic.Bool

	mu           sync.Mutex
	info         mcp.Implementation
	capabilities mcp.ClientCapabilities
	level        mcp.LoggingLevel
	version      string
}

var (
	_ server.SessionWithClientInfo      = (*connection)(nil)
	_ server.SessionWithLogging         = (*connection)(nil)
	_ server.SessionWithProtocolVersion = (*connection)(nil)
)

func newConnection(id string) *connection {
	return &connection{id: id, notes: make(chan mcp.JSONRPCNotification, connectionNotes), level: mcp.LoggingLevelError}
}

// SessionID implements server.ClientSession.
func (c *connection) SessionID() string { return c.id }

// Initialize implements server.ClientSession.
func (c *connection) Initialize() { c.initialized.Store(true) }

// Initialized implements server.ClientSession.
func (c *connection) Initialized() bool { return c.initialized.Load() }

// NotificationChannel implements server.ClientSession.
func (c *connection) NotificationChannel() chan<- mcp.JSONRPCNotification { return c.notes }

// GetClientInfo implements server.SessionWithClientInfo.
func (c *connection) GetClientInfo() mcp.Implementation { return locked(c, &c.info) }

// SetClientInfo implements server.SessionWithClientInfo.
func (c *connection) SetClientInfo(info mcp.Implementation) { store(c, &c.info, info) }

// GetClientCapabilities implements server.SessionWithClientInfo.
func (c *connection) GetClientCapabilities() mcp.ClientCapabilities {
	return locked(c, &c.capabilities)
}

// SetClientCapabilities implements server.SessionWithClientInfo.
func (c *connection) SetClientCapabilities(all mcp.ClientCapabilities) {
	store(c, &c.capabilities, all)
}

// GetLogLevel implements server.SessionWithLogging.
func (c *connection) GetLogLevel() mcp.LoggingLevel { return locked(c, &c.level) }

// SetLogLevel implements server.SessionWithLogging.
func (c *connection) SetLogLevel(level mcp.LoggingLevel) { store(c, &c.level, level) }

// ProtocolVersion implements server.SessionWithProtocolVersion.
func (c *connection) ProtocolVersion() string { return locked(c, &c.version) }

// SetProtocolVersion records what initialize negotiated; mcp-go finds it by its name.
func (c *connection) SetProtocolVersion(version string) { store(c, &c.version, version) }

func locked[T any](c *connection, field *T) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *field
}

func store[T any](c *connection, field *T, value T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*field = value
}

// callConnection is the connection as one call sees it: notifications that its handler sends stay apart from those of
// other calls, so that they can be written before its answer and dropped after it.
type callConnection struct {
	*connection
	notes chan mcp.JSONRPCNotification

	filtering sync.Mutex
	filter    *mcp.SubscriptionFilter // what the client of a subscriptions/listen asked for; nil before and after
}

var _ server.SessionWithSubscriptionFilter = (*callConnection)(nil)

// SetSubscriptionFilter implements server.SessionWithSubscriptionFilter.
func (c *callConnection) SetSubscriptionFilter(filter mcp.SubscriptionFilter) {
	c.filtering.Lock()
	defer c.filtering.Unlock()
	c.filter = &filter
}

// SubscriptionFilter implements server.SessionWithSubscriptionFilter.
func (c *callConnection) SubscriptionFilter() (mcp.SubscriptionFilter, bool) {
	c.filtering.Lock()
	defer c.filtering.Unlock()
	if c.filter == nil {
		return mcp.SubscriptionFilter{}, false
	}
	return *c.filter, true
}

func newCallConnection(c *connection) *callConnection {
	return &callConnection{connection: c, notes: make(chan mcp.JSONRPCNotification, callNotes)}
}

// NotificationChannel implements server.ClientSession.
func (c *callConnection) NotificationChannel() chan<- mcp.JSONRPCNotification { return c.notes }
