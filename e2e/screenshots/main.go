// Command screenshots runs the demo, opens each page of its dashboard in Chromium, and writes a picture of each, light
// and dark, 390 and 1280 pixels wide, so that pictures in the documentation show what the pages are. PICTURE is that of
// the README.
//
//	screenshots BINARY FOLDER PICTURE
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// pageBound is how long the four pictures of a page may take.
const pageBound = 2 * time.Minute

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: screenshots BINARY FOLDER PICTURE")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary, folder, picture string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	demo, signIn, err := startDemo(ctx, binary)
	if err != nil {
		return err
	}
	defer func() {
		_ = demo.Process.Signal(syscall.SIGINT)
		_ = demo.Wait() // it was asked to end
	}()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	problem := shootAll(ctx, signIn, folder) // the picture of the README is taken all the same
	base, _, _ := strings.Cut(signIn, "/sign-in")
	return errors.Join(problem, takePicture(ctx, base+"/", picture))
}

// startDemo runs the demo on the port that it likes until all is shown, and returns the address that signs a browser
// in.
func startDemo(ctx context.Context, binary string) (*exec.Cmd, string, error) {
	cmd := exec.CommandContext(ctx, binary, "demo", "--serve")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	var signIn string
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil, "", errors.Join(errors.New("the demo ended before it had shown all"), err, cmd.Wait())
		}
		if found := regexp.MustCompile(`http://\S+/sign-in\?code=\S+`).FindString(line); found != "" {
			signIn = found
		}
		if strings.Contains(line, "Ctrl-C ends the server") {
			go func() { _, _ = io.Copy(io.Discard, lines) }() // what it says later
			return cmd, signIn, nil
		}
	}
}

// shootAll takes the pictures of the pages that the navigation leads to, and of the first proposal, pull request and
// session.
func shootAll(ctx context.Context, signIn, folder string) error {
	base, _, _ := strings.Cut(signIn, "/sign-in")
	if err := chromedp.Run(ctx, chromedp.Navigate(signIn), chromedp.WaitVisible("main", chromedp.ByQuery)); err != nil {
		return err
	}
	var pages []string
	const links = `[...document.querySelectorAll("nav a, main .list a, main table a")].map(a => a.pathname).filter((p, i, all) => all.indexOf(p) === i)`
	if err := chromedp.Run(ctx, chromedp.Navigate(base+"/"),
		chromedp.WaitVisible(`main a[href*="/pulls/"], main .list a`, chromedp.ByQuery),
		chromedp.Evaluate(links, &pages)); err != nil {
		return err
	}
	seen, problems := map[string]bool{}, []error(nil)
	for _, page := range pages {
		name := "overview"
		if parts := strings.Split(strings.Trim(page, "/"), "/"); parts[0] != "" {
			name = parts[0]
			if len(parts) > 1 {
				name += "-one"
			}
		}
		if seen[name] || page == "/docs" {
			continue
		}
		seen[name] = true
		within, cancel := context.WithTimeout(ctx, pageBound)
		if err := shoot(within, base+page, filepath.Join(folder, name)); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", page, err))
		}
		cancel()
	}
	return errors.Join(problems...)
}

// shoot takes the four pictures of a page.
func shoot(ctx context.Context, address, file string) error {
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			var png []byte
			err := chromedp.Run(ctx,
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
				chromedp.EmulateViewport(width, 900), chromedp.Navigate(address), chromedp.WaitVisible("main", chromedp.ByQuery),
				chromedp.FullScreenshot(&png, 100))
			if err != nil {
				return err
			}
			if err := os.WriteFile(fmt.Sprintf("%s-%d-%s.png", file, width, scheme), png, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}
