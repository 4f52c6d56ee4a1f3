package app

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/ops/doctor"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/web/dashboard"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// The socket by which a server gives sign-in addresses to the user who runs it. It is in the state folder, or below
// /tmp where its path would be too long for a socket. Agents within a boundary may run as that user, and can connect to
// it. They cannot read the state folder, which holds the key that a client shows.
const (
	deskFolder    = "desk"
	deskParent    = "/tmp"
	deskPrefix    = "claudeops-desk-"
	maxDeskPath   = 100 // bytes; the systems' limits are 104 and 108
	deskBound     = 5 * time.Second
	deskSettled   = time.Minute // from which a socket without a server is one of a server that was killed
	maxDeskAnswer = 4 << 10     // bytes
	maxDeskKey    = 64          // bytes, with the end of the line
)

// SignInAddress signs a browser in once, until its time is over.
type SignInAddress struct {
	URL   string    `json:"url"`
	Until time.Time `json:"until"`
}

// deskAnswer is what a server says to one that connects.
type deskAnswer struct {
	SignInAddress
	Code    fault.Code `json:"code,omitempty"`
	Message string     `json:"message,omitempty"`
}

// desk gives sign-in addresses.
type desk struct {
	parts    *Parts
	in       signIn
	peer     func(net.Conn) (gateway.Peer, error) // who connects
	at       net.Addr
	key      string // that clients show
	listener net.Listener
	folder   string // is removed with the socket
}

// openDesk makes the socket. Where that fails the server goes without: the error is one to log.
func openDesk(ctx context.Context, p *Parts, in signIn, at net.Addr, name string) (*desk, error) {
	d := &desk{parts: p, in: in, at: at, key: rand.Text(), peer: gateway.PeerOf}
	removeDeadFolders(ctx, deskParent)
	path := filepath.Join(p.Cfg.Records.Dir, deskFolder, name)
	if len(path) <= maxDeskPath {
		if err := files.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		removeDeadSockets(ctx, filepath.Dir(path))
	} else {
		made, err := files.MakeTemporary(deskParent, deskPrefix)
		if err != nil {
			return nil, err
		}
		d.folder = made.Path
		path = filepath.Join(d.folder, "socket")
	}
	var err error
	if d.listener, err = new(net.ListenConfig).Listen(ctx, "unix", path); err != nil {
		return nil, errors.Join(err, d.removeFolder())
	}
	return d, nil // nobody else can enter the folder
}

// removeDeadFolders removes the folders that killed servers of this user have left in parent.
func removeDeadFolders(ctx context.Context, parent string) {
	for _, folder := range files.Glob(parent, deskPrefix+"*") {
		info, err := files.Lstat(folder)
		if err != nil || !info.IsDir() || !files.IsOwn(info) || time.Since(info.ModTime()) < deskSettled {
			continue
		}
		removeDeadSockets(ctx, folder)
		_ = files.Remove(folder) // fails while there is anything in it
	}
}

// removeDeadSockets removes the sockets of servers that were killed.
func removeDeadSockets(ctx context.Context, folder string) {
	for _, path := range files.Glob(folder, "*") {
		info, err := files.Lstat(path)
		if err != nil || info.Mode().Type() != fs.ModeSocket || time.Since(info.ModTime()) < deskSettled {
			continue // a server may be about to listen at it
		}
		conn, err := (&net.Dialer{Timeout: deskBound}).DialContext(ctx, "unix", path)
		if err == nil {
			_ = conn.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			_ = files.Remove(path)
		}
	}
}

func (d *desk) removeFolder() error {
	if d.folder == "" {
		return nil
	}
	return files.RemoveAll(d.folder)
}

// way returns how clients reach the socket; zero where there is none.
func (d *desk) way() deskWay {
	if d == nil {
		return deskWay{}
	}
	return deskWay{d.listener.Addr().String(), d.key}
}

// serve answers until ctx is done, one after the other.
func (d *desk) serve(ctx context.Context) {
	if d == nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = d.listener.Close() })
	defer stop()
	defer func() { _ = d.removeFolder() }()
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			return // it was closed
		}
		d.serveConn(ctx, conn)
	}
}

// serveConn answers one client that asks. One that only looks whether the server lives gets no address.
func (d *desk) serveConn(ctx context.Context, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(deskBound))
	key, err := bufio.NewReaderSize(conn, maxDeskKey).ReadSlice('\n')
	if err != nil {
		return
	}
	answer, err := d.signInAddress(ctx, conn, string(bytes.TrimSpace(key)))
	if e := fault.From(err); e != nil {
		answer = deskAnswer{Code: e.Code, Message: e.Message}
	}
	_ = json.NewEncoder(conn).Encode(answer)
}

// signInAddress gives an address to the user who runs this server, and to root, if they show the key. unauthenticated
// for everybody else.
func (d *desk) signInAddress(ctx context.Context, conn net.Conn, key string) (deskAnswer, error) {
	peer, err := d.peer(conn)
	if peer.Release != nil {
		defer peer.Release()
	}
	right := subtle.ConstantTimeCompare([]byte(key), []byte(d.key)) == 1
	if err != nil || !right || !peer.Known || peer.UID != os.Getuid() && peer.UID != 0 {
		return deskAnswer{}, fault.New(fault.Unauthenticated, "only the user who runs the server gets an address to sign in")
	}
	secret, err := d.in.first.Make(ctx)
	if err != nil {
		return deskAnswer{}, err
	}
	if secret == "" {
		return deskAnswer{}, fault.New(fault.NotFound, "the operator's token was revoked: sign in with another one at %s%s",
			d.dashboardAddress(), httpx.SignInPath)
	}
	until := d.parts.Store.Now().Add(access.CodeLife)
	code, err := d.parts.access.OneTimeCode(ctx, secret)
	if err != nil {
		return deskAnswer{}, err
	}
	d.parts.Log.Info("gave an address to sign in once", "uid", peer.UID, "pid", peer.PID)
	address := d.dashboardAddress() + httpx.SignInPath + "?code=" + code
	return deskAnswer{SignInAddress: SignInAddress{address, until.UTC()}}, nil
}

// dashboardAddress returns the address of the dashboard.
func (d *desk) dashboardAddress() string { return dashboardURL(d.parts, d.at) }

// dashboardURL returns the address at which a browser of this machine finds the dashboard, without a slash at its end.
func dashboardURL(p *Parts, at net.Addr) string {
	return "http://" + reachable(at) + p.Cfg.Web.BasePath
}

// RunningServer is a server that runs on this machine with the same state folder.
type RunningServer struct {
	PID  int    `json:"pid"`
	URL  string `json:"url"`
	desk deskWay
}

// RunningServers lists the servers on this machine that have this state folder.
func RunningServers(p *Parts) []RunningServer {
	out := []RunningServer{}
	for _, text := range servingTexts(p.Cfg.Records.Dir) {
		var s servingText
		if json.Unmarshal(text, &s) == nil && s.URL != "" {
			out = append(out, RunningServer{PID: s.PID, URL: s.URL, desk: s.Desk})
		}
	}
	return out
}

// servingText is what a server tells other processes on this machine.
type servingText struct {
	doctor.Server
	URL  string  `json:"url"`
	Desk deskWay `json:"desk,omitzero"`
}

// deskWay is how a client reaches the socket of a server.
type deskWay struct {
	Path string `json:"path"`
	Key  string `json:"key"`
}

// NewSignInAddress asks a running server for an address. Its error is one of the server's.
func NewSignInAddress(ctx context.Context, s RunningServer) (SignInAddress, error) {
	if s.desk.Path == "" {
		return SignInAddress{}, fault.New(fault.NotFound, "the server at %s gives no addresses; see its log", s.URL)
	}
	conn, err := (&net.Dialer{Timeout: deskBound}).DialContext(ctx, "unix", s.desk.Path)
	if err != nil {
		return SignInAddress{}, fault.Wrap(err, fault.NotFound, "the server at %s does not answer: %s", s.URL, err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(deskBound))
	_, err = conn.Write([]byte(s.desk.Key + "\n"))
	var line []byte
	if err == nil {
		line, err = bufio.NewReaderSize(conn, maxDeskAnswer).ReadSlice('\n')
	}
	var answer deskAnswer
	if err == nil {
		err = json.Unmarshal(bytes.TrimSpace(line), &answer)
	}
	switch {
	case err != nil:
		return SignInAddress{}, fault.Wrap(err, fault.NotFound, "the server at %s does not answer: %s", s.URL, err)
	case answer.Code != "":
		return SignInAddress{}, fault.New(answer.Code, "%s", answer.Message)
	}
	return answer.SignInAddress, nil
}

// Front reads what the overview of a server with these records shows first. It listens nowhere and asks no forge.
func Front(ctx context.Context, a *App, p *Parts) (dashboard.Front, error) {
	agents, err := NewAgentSessions(p)
	if err != nil {
		return dashboard.Front{}, err
	}
	server, err := NewWebServer(p, WebToolsets(a), NewFollower(p), agents, AgentTokens(p), &net.TCPAddr{}, httpx.Own{})
	if err != nil {
		return dashboard.Front{}, err
	}
	return server.Front(ctx)
}
