// Package e2e drives the built claudeops binary with real MCP clients: the MCP Inspector in both protocol eras, the
// Claude CLI with a stub of the Messages API in place of the model, and the conformance suite.
//
// The tests carry the build tag e2e, since they need the npm packages that e2e/setup.sh installs, and run on Linux. All
// they contact is on the loopback interface.
package e2e
