package toolset

import (
	"net/http"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/operation"
)

// MaxArguments bounds the arguments of a call over REST, in bytes.
const MaxArguments = 1 << 20

// route is the place of a tool in REST: its arguments are the body. What does more than read needs the scope for starting and
// stopping agents, since it changes the machine that the server runs on.
func route(o operation.Operation, takes time.Duration) operation.Route {
	scope := access.Read
	if o.Effect != operation.Read {
		scope = access.Operate
	}
	return operation.Route{
		Method: http.MethodPost, Path: operation.ToolPath + o.Name, Scope: scope, ID: "call" + camel(o.Name),
		Notes:   "The body has the arguments of the tool. In an error, failure is what MCP clients get: the error in the form of the tool's contract.",
		MaxBody: MaxArguments, TooLarge: "give less at once", Takes: takes + lockWait,
	}
}

// camel is a name such as agent_list as AgentList.
func camel(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
