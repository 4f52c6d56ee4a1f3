package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/claudeops/claudeops/internal/agents/connect"
	"github.com/claudeops/claudeops/internal/agents/connect/remote"
)

func others() map[string]func(ctx context.Context, at, token string) (agent, error) {
	return map[string]func(ctx context.Context, at, token string) (agent, error){"own": func(ctx context.Context, at, token string) (agent, error) {
		conn, err := connect.Dial(ctx, at, connect.Hello{Ticket: token}, remote.Transports(remote.Limits{}))
		return &own{conn, bufio.NewReader(conn)}, err
	}}
}

type own struct {
	connect.Conn
	in *bufio.Reader
}

func (o *own) call(_ context.Context, id int, method, params string) error {
	if _, err := io.WriteString(o, message(id, method, params)+"\n"); err != nil {
		return err
	}
	line, err := o.in.ReadString('\n')
	if err != nil || !strings.Contains(line, `"result"`) {
		return fmt.Errorf("%.200s: %w", line, err)
	}
	return nil
}
