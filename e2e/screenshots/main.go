// Command screenshots draws commands at a terminal, runs the demo, opens its dashboard in Chromium, and writes the
// pictures of both into the folder of the documentation, and the page that shows the pictures of all pages, which tests have taken.
//
//	screenshots BINARY DOCS
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

	"github.com/chromedp/chromedp"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: screenshots BINARY DOCS")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary, docs string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	absolute, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	if err := takeScenes(ctx, absolute, filepath.Join(docs, "images/terminal")); err != nil {
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
	var base string // the browser's own
	if err := chromedp.Run(ctx, chromedp.Navigate(signIn), chromedp.WaitVisible("#live", chromedp.ByQuery),
		chromedp.Evaluate(`location.origin`, &base)); err != nil {
		return err
	}
	return errors.Join(takePicture(ctx, base+"/", filepath.Join(docs, "images/dashboard.png")), writeIndex(docs))
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
