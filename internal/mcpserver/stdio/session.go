package stdio

import (
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// sessionID is the id of the one session of a stdio server.
const sessionID = "stdio"

// noteBuffer is how many notifications may wait for the writer. mcp-go does not wait for room: beyond it, sending
// fails with server.ErrNotificationChannelBlocked and the notification is lost, which progress can bear.
const noteBuffer = 128

// session is the client on the other side. It is registered with the server and gets what is sent to all clients.
type session struct {
	notes       chan mcp.JSONRPCNotification
	initialized atomic.Bool

	mu           sync.Mutex
	info         mcp.Implementation
	capabilities mcp.ClientCapabilities
	level        mcp.LoggingLevel
	version      string
}

var (
	_ server.SessionWithClientInfo      = (*session)(nil)
	_ server.SessionWithLogging         = (*session)(nil)
	_ server.SessionWithProtocolVersion = (*session)(nil)
)

func newSession() *session {
	return &session{notes: make(chan mcp.JSONRPCNotification, noteBuffer), level: mcp.LoggingLevelError}
}

// SessionID implements server.ClientSession.
func (s *session) SessionID() string { return sessionID }

// Initialize implements server.ClientSession.
func (s *session) Initialize() { s.initialized.Store(true) }

// Initialized implements server.ClientSession.
func (s *session) Initialized() bool { return s.initialized.Load() }

// NotificationChannel implements server.ClientSession.
func (s *session) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.notes }

// GetClientInfo implements server.SessionWithClientInfo.
func (s *session) GetClientInfo() mcp.Implementation { return locked(s, &s.info) }

// SetClientInfo implements server.SessionWithClientInfo.
func (s *session) SetClientInfo(info mcp.Implementation) { store(s, &s.info, info) }

// GetClientCapabilities implements server.SessionWithClientInfo.
func (s *session) GetClientCapabilities() mcp.ClientCapabilities { return locked(s, &s.capabilities) }

// SetClientCapabilities implements server.SessionWithClientInfo.
func (s *session) SetClientCapabilities(c mcp.ClientCapabilities) { store(s, &s.capabilities, c) }

// GetLogLevel implements server.SessionWithLogging.
func (s *session) GetLogLevel() mcp.LoggingLevel { return locked(s, &s.level) }

// SetLogLevel implements server.SessionWithLogging.
func (s *session) SetLogLevel(level mcp.LoggingLevel) { store(s, &s.level, level) }

// ProtocolVersion implements server.SessionWithProtocolVersion.
func (s *session) ProtocolVersion() string { return locked(s, &s.version) }

// SetProtocolVersion records what initialize negotiated; mcp-go finds it by its name.
func (s *session) SetProtocolVersion(version string) { store(s, &s.version, version) }

func locked[T any](s *session, field *T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *field
}

func store[T any](s *session, field *T, value T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*field = value
}

// callSession is the session as one call sees it: notifications that its handler sends stay apart from those of other
// calls, so that they can be written before its answer and dropped after it.
type callSession struct {
	*session
	notes chan mcp.JSONRPCNotification
}

func newCallSession(s *session) *callSession {
	return &callSession{session: s, notes: make(chan mcp.JSONRPCNotification, noteBuffer)}
}

// NotificationChannel implements server.ClientSession.
func (c *callSession) NotificationChannel() chan<- mcp.JSONRPCNotification { return c.notes }
