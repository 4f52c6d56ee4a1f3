package mcpconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/claudeops/claudeops/internal/system/transport"
)

// TokenVariable holds an agent's token where its client starts. Configurations refer to it, so that none holds the
// token.
const TokenVariable = "CLAUDEOPS_AGENT_TOKEN"

// AddressForm says how to configure a client for a server that it reaches by an address.
type AddressForm struct {
	Client, File string
	Name         string                              // of the client, as its makers call it
	entry        func(address string) map[string]any // of a JSON file; nil where the file is TOML
	key          string                              // of the servers in it
	add          func(address string, entry map[string]any) []string
}

// AddressForms returns the forms of the known clients.
func AddressForms() []AddressForm {
	return []AddressForm{
		{
			Client: "claude", Name: "Claude Code", File: ".mcp.json of a project", key: "mcpServers",
			entry: func(at string) map[string]any {
				return map[string]any{"type": "http", "url": at, "headers": bearer("${" + TokenVariable + "}"), "alwaysLoad": true}
			},
			add: func(_ string, entry map[string]any) []string {
				return []string{"claude", "mcp", "add-json", "--scope", "user", "claudeops", compact(entry)}
			},
		},
		{
			Client: "codex", Name: "Codex", File: "~/.codex/config.toml",
			add: func(at string, _ map[string]any) []string {
				return []string{"codex", "mcp", "add", "claudeops", "--url", at, "--bearer-token-env-var", TokenVariable}
			},
		},
		{
			Client: "gemini", Name: "Gemini", File: "~/.gemini/settings.json", key: "mcpServers",
			entry: func(at string) map[string]any {
				return map[string]any{"httpUrl": at, "headers": bearer("${" + TokenVariable + "}")}
			},
			add: func(at string, _ map[string]any) []string {
				return []string{"gemini", "mcp", "add", "--scope", "user", "--transport", "http", "--header",
					"Authorization: Bearer ${" + TokenVariable + "}", "claudeops", at}
			},
		},
		{
			Client: "cursor", Name: "Cursor", File: "~/.cursor/mcp.json", key: "mcpServers",
			entry: func(at string) map[string]any {
				return map[string]any{"url": at, "headers": bearer("${env:" + TokenVariable + "}")}
			},
		},
		{
			Client: "vscode", Name: "VS Code", File: ".vscode/mcp.json, or mcp.json of the user's profile", key: "servers",
			entry: func(at string) map[string]any {
				return map[string]any{"type": "http", "url": at, "headers": bearer("${env:" + TokenVariable + "}")}
			},
			add: func(_ string, entry map[string]any) []string {
				entry["name"] = "claudeops"
				return []string{"code", "--add-mcp", compact(entry)}
			},
		},
	}
}

func bearer(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}

// Text returns the content of the client's file. It holds no secret. at is the result of Address.
func (f AddressForm) Text(at string) string {
	if f.entry == nil {
		return fmt.Sprintf("[mcp_servers.claudeops]\nurl = %s\nbearer_token_env_var = %s\n"+
			"# What is permitted is for the server to decide. Without this a session that nobody attends is refused each call "+
			"that writes.\n"+
			"default_tools_approval_mode = \"approve\"\n", compact(at), compact(TokenVariable))
	}
	return encodeJSON(map[string]any{f.key: map[string]any{"claudeops": f.entry(at)}}, "  ")
}

// Add returns the words of the command that adds the server to the client; nil where it has none.
func (f AddressForm) Add(at string) []string {
	if f.add == nil {
		return nil
	}
	var entry map[string]any
	if f.entry != nil {
		entry = f.entry(at)
	}
	return f.add(at, entry)
}

// ShellLine returns a command for a POSIX shell. The words are left as they are.
func ShellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		if quoted[i] = word; strings.Trim(word, unquoted) != "" || word == "" {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// unquoted are the characters that mean themselves in a shell.
const unquoted = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,@%+"

func compact(v any) string { return strings.TrimSpace(encodeJSON(v, "")) }

func encodeJSON(v any, indent string) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	_ = encoder.Encode(v) // maps of texts always encode
	return b.String()
}

// Address returns the address of MCP at a server, which may be given without the /mcp at its end. An error says what is
// wrong with it, and repeats nothing of it, since it may hold a password.
func Address(given string) (string, error) {
	u, err := url.Parse(given)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("it is such as https://ops.example.org")
	case u.Hostname() == "":
		return "", errors.New("it names no host: https://HOST[/PATH]")
	case u.User != nil:
		return "", errors.New("it has a user or a password; the token is in the variable " + TokenVariable)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", errors.New("it has more than host, port and path")
	case !transport.IsConfidential(u):
		return "", errors.New("http:// sends the token readable for everybody on the way, so that it is for this machine " +
			"alone; use https://")
	}
	if strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/mcp") {
		return strings.TrimSuffix(u.String(), "/"), nil
	}
	return u.JoinPath("mcp").String(), nil
}
