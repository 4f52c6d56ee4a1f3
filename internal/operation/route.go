package operation

import (
	"net/http"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/records/access"
)

// MaxArguments bounds the arguments of a call over REST, in bytes.
const MaxArguments = 1 << 20

// route returns the place of a tool in REST: its arguments are the body. What does more than read needs the scope for
// starting and stopping agents, since it changes the machine that the server runs on.
func route(o Operation, takes time.Duration) (Route, access.Scope) {
	scope := access.Read
	if o.Effect != Read {
		scope = access.Operate
	}
	return Route{
		Method: http.MethodPost, Path: ToolPath + o.Name, ID: "call" + camel(o.Name),
		Notes: "The body has the arguments of the tool. In an error, failure is what MCP clients get: the error in the " +
			"form of the tool's contract.",
		MaxBody: MaxArguments, TooLarge: "give less at once", Takes: takes + lockWait,
	}, scope
}

// camel returns a name such as agent_list as AgentList.
func camel(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
