//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// scene is a program at a terminal, and what a person types there.
type scene struct {
	name    string
	args    []string
	answers []answer
}

// answer is typed when the terminal shows a text that no answer before was for. An empty one ends the program, as
// Ctrl-C does.
type answer struct{ after, keys string }

// takeScenes runs the program at a terminal in a fresh home with one local repository, and writes a picture of each
// scene into the folder.
func takeScenes(ctx context.Context, binary, folder string) error {
	home, err := os.MkdirTemp("", "claudeops-scenes-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(home) }()
	prepare := `git init -q -b main work && cd work && echo '# Home' > README.md && git add .
git -c user.name=joe -c user.email=joe@example.org commit -q -m first
cd .. && mkdir -p git/me && git clone -q --bare work git/me/home-cluster.git`
	cmd := exec.CommandContext(ctx, "sh", "-ec", prepare)
	cmd.Dir = home
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, s := range []scene{
		{"init", []string{"init"}, []answer{
			{"Choose 1 to 3 ", "gitlab"}, {"Choose 1 to 3 ", "3"}, {"owner/name.git? ", "~/repos"},
			{"owner/name.git? ", "~/git"}, {"as owner/name? ", "me/home"}, {"[2] ", "2"}, {"Choose 1 to 5 ", "1"},
			{"[me/home] ", "me/home-cluster"},
			{"[y] ", "y"},
		}},
		{"serve", []string{"serve"}, []answer{{"use the token in", ""}}},
	} {
		text, err := s.play(ctx, binary, home)
		if err != nil {
			return err
		}
		if err := s.draw(text, home, folder); err != nil {
			return err
		}
	}
	return takeSceneOfGitea(ctx, binary, folder)
}

// takeSceneOfGitea does the same against the server of GITEA_URL, where there is one: GITEA_TOKEN may propose to
// GITEA_REPO. The picture has another address. A token that was typed before the program has switched the echo off is
// taken out.
func takeSceneOfGitea(ctx context.Context, binary, folder string) error {
	url, token, repo := os.Getenv("GITEA_URL"), os.Getenv("GITEA_TOKEN"), os.Getenv("GITEA_REPO")
	if url == "" {
		return nil
	}
	home, err := os.MkdirTemp("", "claudeops-scenes-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(home) }()
	const asksToken, oldToken = "(it is not shown): ", "an-old-token"
	s := scene{"init-gitea", []string{"init"}, []answer{
		{"Choose 1 to 3 ", "forgejo"}, {"git.example.org? ", url}, {"as owner/name? ", repo}, {asksToken, oldToken},
		{"[2] ", "2"}, {"Choose 1 to 6 ", "2"}, {asksToken, token}, {"[y] ", "y"},
	}}
	text, err := s.play(ctx, binary, home)
	if err != nil {
		return err
	}
	host := strings.TrimPrefix(url, "http://")
	text = strings.NewReplacer(url, "https://git.example.org", host, "git.example.org", token, "", oldToken, "").
		Replace(text)
	return s.draw(text, home, folder)
}

// draw writes the picture of what the terminal has shown.
func (s scene) draw(text, home, folder string) error {
	text = strings.ReplaceAll(text, home, "/home/me")
	drawn := picture("claudeops "+strings.Join(s.args, " "), text)
	return os.WriteFile(filepath.Join(folder, s.name+".svg"), drawn, 0o644) // #nosec G306: part of the sources
}

// play runs a scene to its end and returns what the terminal has shown.
func (s scene) play(ctx context.Context, binary, home string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	keyboard, screen, err := openTerminal()
	if err != nil {
		return "", err
	}
	defer func() { _ = keyboard.Close() }()
	cmd := exec.CommandContext(ctx, binary, s.args...)
	cmd.Args[0] = "claudeops"
	cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"),
		"TERM=dumb", "CLAUDEOPS_ADDR=127.0.0.1:0"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	if err := errors.Join(cmd.Start(), screen.Close()); err != nil {
		return "", err
	}
	shown, seen, left := "", 0, s.answers
	buffer := make([]byte, 4096)
	for {
		n, err := keyboard.Read(buffer)
		shown += string(buffer[:n])
		for len(left) > 0 && strings.Contains(shown[seen:], left[0].after) {
			seen = len(shown)
			if left[0].keys == "" {
				_ = cmd.Process.Signal(syscall.SIGINT)
			} else if _, err := keyboard.WriteString(left[0].keys + "\n"); err != nil {
				return "", err
			}
			left = left[1:]
		}
		if err != nil { // EIO: the program has ended
			break
		}
	}
	if err := cmd.Wait(); err != nil || len(left) > 0 {
		return "", fmt.Errorf("%s ended with %w before it asked %v:\n%s", s.name, err, left, shown)
	}
	return strings.ReplaceAll(shown, "\r", ""), nil
}

// openTerminal makes a terminal whose lines fit the picture: what is written to screen is read from keyboard.
func openTerminal() (keyboard, screen *os.File, err error) {
	if keyboard, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	fd := int(keyboard.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = errors.Join(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
			unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: width - longer}))
	}
	if err == nil {
		screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, keyboard.Close())
	}
	return keyboard, screen, nil
}

// width is that of the picture, in characters. longer is by how much a line grows at most when it gets another address.
const width, longer = 132, 4

// picture draws a terminal with what it has shown. Codes and times, which differ each time, are left out.
func picture(command, text string) []byte {
	text = regexp.MustCompile(`code=\S+`).ReplaceAllString(text, "code=...")
	text = regexp.MustCompile(`time=\S+ `).ReplaceAllString(text, "")
	text = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(text, "127.0.0.1:8080")
	text = regexp.MustCompile(`(hash=[0-9a-f]{8})\S+ row_time=\S+`).ReplaceAllString(text, "$1...")
	text, _, _ = strings.Cut(text, "level=INFO msg=\"ending") // which Ctrl-C has caused
	lines := []string{"$ " + command}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		for r := []rune(line); ; r = r[width:] {
			if len(r) <= width {
				lines = append(lines, string(r))
				break
			}
			lines = append(lines, string(r[:width]))
		}
	}
	const high, wide, edge = 18, 8, 16
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"
font-family="ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="13">
<title>%s at a terminal</title><style>text{white-space:pre}</style>
<rect width="100%%" height="100%%" rx="8" fill="#1b1f24"/><g fill="#e6edf3">
`, width*wide+2*edge, len(lines)*high+2*edge, html.EscapeString(command))
	for i, line := range lines {
		if line != "" {
			fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">%s</text>\n", edge, edge+(i+1)*high-4, html.EscapeString(line))
		}
	}
	b.WriteString("</g></svg>\n")
	return []byte(b.String())
}
