package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/claudeops/claudeops/internal/operation"
)

// known is a tool as clients were last told of it.
type known struct {
	set    operation.Toolset
	op     operation.Operation
	hidden bool // tools/list does not show it
	found  bool // it is one of Toolset.Found
	listed []byte
}

// changes reports whether there are tools that come and go.
func changes(toolsets []operation.Toolset) bool {
	return slices.ContainsFunc(toolsets, func(set operation.Toolset) bool { return set.Found != nil })
}

// look reads the dynamic tools of the toolsets, and notifies the client if the list has changed. A tool that is gone is
// no longer listed, but a client that knows it can still call it, and its operation answers why it is gone.
func (s *Server) look(ctx context.Context) {
	if !s.changes {
		return
	}
	s.looking.Lock()
	defer s.looking.Unlock()
	added, changed := s.compare(ctx)
	switch { // one notification for all; AddTools sends it by itself
	case len(added) > 0:
		s.mcp.AddTools(added...)
	case changed:
		s.mcp.SendNotificationToAllClients(mcp.MethodNotificationToolsListChanged, nil)
	}
}

// compare notes what there is now, and returns the tools that are new or have another schema, and whether others have
// come back or gone.
func (s *Server) compare(ctx context.Context) (added []server.ServerTool, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := map[string]bool{}
	for name, k := range s.known {
		gone[name] = k.found && !k.hidden
	}
	for _, set := range s.toolsets {
		if set.Found == nil {
			continue
		}
		for _, o := range set.Found(ctx) {
			before, has := s.known[o.Name]
			t, err := tool(set, o)
			listed, encodeErr := json.Marshal(t)
			if err != nil || encodeErr != nil || has && (!before.found || before.set.Name != set.Name) {
				s.opts.Log.Warn("a tool that was found is not offered: its schema is malformed, or another tool has its name",
					"tool", o.Name, "error", err)
				continue
			}
			now := known{set: set, op: o, hidden: !s.shown(set, o), found: true, listed: listed}
			s.known[o.Name], gone[o.Name] = now, false
			switch {
			case !has || !bytes.Equal(before.listed, listed):
				added = append(added, server.ServerTool{Tool: t, Handler: s.handler(o.Name)})
			case before.hidden != now.hidden:
				changed = true
			}
		}
	}
	for name, isGone := range gone {
		if isGone {
			k := s.known[name]
			k.hidden, changed = true, true
			s.known[name] = k
		}
	}
	return added, changed
}

// watch looks again at each tick, so that a client is notified of a change without asking.
func (s *Server) watch(ctx context.Context, ticks <-chan time.Time) {
	for {
		select {
		case <-ticks:
			s.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// knownTool returns the known definition of a tool by its name.
func (s *Server) knownTool(name string) (known, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, has := s.known[name]
	return k, has
}
