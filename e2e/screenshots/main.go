//go:build linux

// Command screenshots draws commands at a terminal, runs the demo, opens its dashboard in Chromium, and writes the
// pictures of both into the folder of the documentation, and the page that shows the pictures of all pages, which tests
// have taken.
//
//	screenshots BINARY DOCS
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/emulation"
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
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox,
		chromedp.ExecPath("/usr/bin/chromium-headless-shell")) // as the tests do
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(signIn), chromedp.WaitVisible(chromedp.CSS("#live"))); err != nil {
		return err
	}
	base, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.origin`)) // the browser's own
	if err != nil {
		return err
	}
	for scheme, name := range map[string]string{"light": "dashboard.png", "dark": "dashboard-dark.png"} {
		if err := takePicture(ctx, base+"/", scheme, filepath.Join(docs, "images", name)); err != nil {
			return err
		}
	}
	return writeIndex(docs)
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

// designed are the pictures of the design, by the page that they are about.
var designed = map[string]string{ //nolint:gochecknoglobals // a table, never written
	"overview": "01-overview-light", "changes": "03-changes-light", "change": "04-change-light",
	"refused": "05-refused-dark", "sessions": "06-agents-light", "session-runs": "07-session-dark",
	"packages-none": "08-procedures-empty-light", "records": "09-records-light", "sign-in": "12-states-signin-404",
}

// writeIndex writes the page that shows the pictures in docs/images/pages, those of the design beside them.
func writeIndex(docs string) error {
	pictures, err := filepath.Glob(filepath.Join(docs, "images/pages/*-light-1280.webp"))
	if err != nil || len(pictures) == 0 {
		return fmt.Errorf("no picture of a page in %s: %w", docs, err)
	}
	var names []string
	for _, p := range pictures {
		names = append(names, strings.TrimSuffix(filepath.Base(p), "-light-1280.webp"))
	}
	slices.Sort(names)
	page := bytes.NewBufferString("<!-- made by make screenshots -->\n# Pictures of the dashboard\n\n" +
		"Each page at a desk (1280 pixels) and on a phone (390), light and dark. Above them is the design, where it has " +
		"the page.\nThe design's [phone, light](../images/design/10-phone-light.png), " +
		"[phone, dark](../images/design/11-phone-dark.png) and\n" +
		"[overview, dark](../images/design/02-overview-dark-whole.png) are pictures of their own.\n")
	for _, name := range names {
		fmt.Fprintf(page, "\n## %s\n\n", strings.ToUpper(name[:1])+strings.ReplaceAll(name[1:], "-", " "))
		if d, ok := designed[name]; ok {
			fmt.Fprintf(page, "<img alt=\"%s in the design\" src=\"../images/design/%s.png\" width=\"800\">\n\n", name, d)
		}
		for _, look := range []struct {
			is    string
			width int
		}{{"light-1280", 800}, {"dark-1280", 800}, {"light-390", 240}, {"dark-390", 240}} {
			fmt.Fprintf(page, "<img alt=\"%s, %s\" src=\"../images/pages/%s-%s.webp\" width=\"%d\">\n", name, look.is, name,
				look.is, look.width)
		}
	}
	page.WriteString("\n## At a terminal\n\n" +
		"<img alt=\"claudeops init asks\" src=\"../images/terminal/init.svg\" width=\"800\">\n" +
		"<img alt=\"claudeops init asks about a Gitea\" src=\"../images/terminal/init-gitea.svg\" width=\"800\">\n" +
		"<img alt=\"claudeops serve says how to sign in\" src=\"../images/terminal/serve.svg\" width=\"800\">\n")
	// #nosec G306: part of the sources
	return os.WriteFile(filepath.Join(docs, "reference/pictures.md"), page.Bytes(), 0o644)
}

// maxPicture is how many bytes a picture of the README may have: it is part of every clone.
const maxPicture = 150_000

// takePicture writes a picture of the README: the upper part of the overview, with at most 256 colours so that
// it stays small.
func takePicture(ctx context.Context, address, scheme, file string) error {
	media := emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
		return err
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(address),
		chromedp.WaitVisible(chromedp.CSS("main"))); err != nil {
		return err
	}
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return err
	}
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, paletted(full)); err != nil {
		return err
	}
	if small.Len() > maxPicture {
		return fmt.Errorf("%s would have %d bytes, more than %d", file, small.Len(), maxPicture)
	}
	return os.WriteFile(file, small.Bytes(), 0o644) // #nosec G306: part of the sources
}

// paletted draws a picture with the 256 colours that it has most of, each other one as the nearest of them.
func paletted(full image.Image) *image.Paletted {
	bounds, counts := full.Bounds(), map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	var colours color.Palette
	most := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	for _, c := range most[:min(len(most), 256)] {
		colours = append(colours, c)
	}
	out, nearest := image.NewPaletted(bounds, colours), map[color.RGBA]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := at(x, y)
			index, known := nearest[c]
			if !known {
				index = uint8(colours.Index(c)) //nolint:gosec // at most 256 colours
				nearest[c] = index
			}
			out.SetColorIndex(x, y, index)
		}
	}
	return out
}
