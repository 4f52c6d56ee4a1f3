// Package connector lets agents in over HTTP that run elsewhere and have a token for it (claudeops token create --agent). The wire is that of
// internal/agents/connect/remote; who may come in, with which rights, and how many, is decided by door.Tokens, as for
// those who come through a socket. No other token opens these routes, nor does a login, a proxy's user or an address.
package connector

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/agents/connect"
	"github.com/claudeops/claudeops/internal/agents/connect/remote"
	"github.com/claudeops/claudeops/internal/agents/door"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/web/guard"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// Options are what a Connector is made of. All are required, but Limits.
type Options struct {
	Tokens *door.Tokens // nil: nobody is let in
	Guard  *guard.Guard
	Now    func() time.Time
	Limits Limits
}

// Limits bound what a connection takes. A value of zero is the default.
type Limits struct {
	Heartbeat time.Duration // how long an answer says nothing; 15 s
	Write     time.Duration // how long a client may take to read 64 KiB; 30 s
	Wait      time.Duration // for what was sent before to be read; 20 s
}

func (l Limits) withDefaults() Limits {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&l.Heartbeat, 15*time.Second)
	set(&l.Write, 30*time.Second)
	set(&l.Wait, 20*time.Second)
	return l
}

// Wrong tokens a minute, from one address and from all of them.
const (
	wrongEach = 10
	wrongAll  = 200
)

// Connector answers connectors. It is safe for concurrent use.
type Connector struct {
	options Options
	wrong   *guard.Failures
	ctx     context.Context // ends with the server
	end     context.CancelFunc

	mu   sync.Mutex
	open map[string]*connection // by id
}

// New makes a Connector.
func New(o Options) *Connector {
	o.Limits = o.Limits.withDefaults()
	c := &Connector{options: o, open: map[string]*connection{}}
	c.wrong = guard.NewFailures(o.Now, wrongEach, wrongAll, "too many connections without a good token came from this address; wait a minute")
	c.ctx, c.end = context.WithCancel(context.Background())
	return c
}

// End ends all connections, for good: calls that have written nothing end, others are finished as Host.Serve says. It does not wait.
func (c *Connector) End() { c.end() }

// sendParams are the parts of the address and the query of a request that sends.
type sendParams struct {
	Connection string `json:"connection" path:"connection" required:"true" maxLength:"64"`
	Seq        int    `json:"seq" required:"true" minimum:"1" doc:"The number of this request among those of the connection, from 1 on. One that was taken already is answered as it was"`
	Last       bool   `json:"last,omitempty" doc:"Nothing follows"`
}

// ConnectRequest is connect.Hello, as the description of the API has it.
type ConnectRequest struct {
	Claudeops int  `json:"claudeops" required:"true" minimum:"1" maximum:"1" doc:"The version of the handshake"`
	Tier      int  `json:"tier,omitempty" minimum:"1" maximum:"3" doc:"The highest tier of this connection. It lowers that of the token, and never raises it"`
	DryRun    bool `json:"dry_run,omitempty" doc:"Check everything, write nothing"`
	ReadOnly  bool `json:"read_only,omitempty" doc:"Refuse every proposal"`
}

// Routes are those of the connector.
func (c *Connector) Routes() []handler.Route {
	return []handler.Route{
		{
			Method: http.MethodPost, Pattern: remote.Path, Agents: true, Handle: c.begin,
			Body: &handler.BodyLimit{Bytes: connect.MaxHello, Advice: "a handshake is shorter", Within: handler.OpenBodyTime},
			Doc: handler.Doc{
				ID: "openConnection", Summary: "Connect an agent that runs elsewhere (claudeops mcp-server --connect)", Body: ConnectRequest{},
				Description: "For the token of an agent alone, and not for browsers. The answer has no end: server-sent events. The first says " +
					"`{\"claudeops\":1,\"ok\":true,\"connection\":\"ID\"}`, and each other one is a message of MCP. When the answer ends, so has the connection. " +
					"What is refused is recorded, at most 20 times an hour.",
				Answers: handler.OK(""), ContentType: remote.EventsType,
			},
		},
		{
			Method: http.MethodPost, Pattern: remote.Path + "/{connection}", Agents: true, Handle: c.send,
			Body: &handler.BodyLimit{Bytes: remote.MaxChunk, Advice: "send it in several requests", Within: 30 * time.Second},
			Doc: handler.Doc{
				ID: "sendToConnection", Summary: "Send what an agent's client says", Params: sendParams{},
				BodyType: remote.ChunkType, Body: `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n",
				Description: "The next bytes of the messages of MCP, a line each; a message may go over several requests. They are taken once and in " +
					"the order of their numbers, and answered on the connection, so that a request without an answer can be made again. limit_reached: what was sent " +
					"before is not read yet. not_found: the connection is over, or another token's.",
				Answers: map[int]any{http.StatusNoContent: nil},
			},
		},
	}
}

// way is what a connection that comes through these routes is called.
const way = "https"

// credential is the token that a request shows. Browsers are refused, whatever they show: no page has any business here.
func (c *Connector) credential(req *handler.Request) (string, *fault.Error) {
	for name := range req.Header {
		if name == "Origin" || strings.HasPrefix(name, "Sec-Fetch-") {
			return "", fault.New(fault.Forbidden, "this address is for `claudeops mcp-server --connect`, and not for browsers")
		}
	}
	given := req.Header.Values("Authorization")
	if len(given) == 0 {
		return "", fault.New(fault.Unauthenticated, "an agent's token is needed, as `Authorization: Bearer` (claudeops token create --agent); nothing else lets in here")
	}
	scheme, secret, _ := strings.Cut(given[0], " ")
	if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return "", fault.New(fault.Unauthenticated, "Authorization must be `Bearer` and a token, once")
	}
	return strings.TrimSpace(secret), nil
}

// refuse records what was refused before a token was looked at.
func (c *Connector) refuse(req *handler.Request, why *fault.Error) error {
	from := c.options.Guard.Client(req.Request)
	c.options.Tokens.Refused(req.Context(), way, from, why)
	return c.count(req, why)
}

// count counts wrong tokens, and is the error to answer with.
func (c *Connector) count(req *handler.Request, why *fault.Error) error {
	if why.Code != fault.Unauthenticated {
		return why
	}
	return c.wrong.Count(c.options.Guard.Client(req.Request), why)
}

// find is the connection with an id, if the token is that with which it was opened.
func (c *Connector) find(id, secret string) (conn *connection, foreign bool) {
	c.mu.Lock()
	conn = c.open[id]
	c.mu.Unlock()
	if conn == nil {
		return nil, false
	}
	given := sha256.Sum256([]byte(secret))
	if subtle.ConstantTimeCompare(given[:], conn.token[:]) != 1 {
		return nil, true
	}
	return conn, false
}

func (c *Connector) add(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn.id] = conn
}

func (c *Connector) remove(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn.id)
}
