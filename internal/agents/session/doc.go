// Package session runs the Claude CLI at a tier, reads what it says as it comes, and records how it ended. A Runner
// runs one session; a Supervisor allows one at a time for each state folder and goes on with the next tier where a
// session hands over and the operator permits it.
//
// The tier is the operator's: it comes with a Spec, is written into the MCP server's own environment, and nothing that
// the agent writes can raise it beyond Settings.MaxTier. What a session achieved is counted from the attempts that the
// MCP server recorded, never from what the agent says.
package session
