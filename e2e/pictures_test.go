//go:build e2e && linux

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// looks are the sizes of windows that a page is looked at in: of a desk and of a phone.
var looks = []struct{ width, height int64 }{{1280, 800}, {390, 844}}

// picture keeps what a person sees of the page without scrolling, light and dark, at a desk and on a phone, in the
// folder that CLAUDEOPS_PICTURES names, if it is set: `make screenshots` sets it. The window is at the desk's size
// afterwards.
func (d *dashboard) picture(name string) {
	d.Helper()
	folder := os.Getenv("CLAUDEOPS_PICTURES")
	if folder == "" {
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, look := range looks {
			var shot []byte
			d.run(lookedAt(scheme, look.width, look.height), chromedp.ActionFunc(func(ctx context.Context) (err error) {
				shot, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatWebp).WithQuality(70).Do(ctx)
				return err
			}))
			file := filepath.Join(folder, fmt.Sprintf("%s-%s-%d.webp", name, scheme, look.width))
			if err := os.WriteFile(file, shot, 0o644); err != nil { // #nosec G306: part of the sources
				d.Fatal(err)
			}
		}
	}
	d.run(lookedAt("light", 1280, 800))
}

// pictures keeps one of each page that needs no world of its own.
func (d *dashboard) pictures() {
	d.Helper()
	for name, address := range map[string]string{
		"overview": "/", "changes": "/changes", "waiting": "/changes?tab=waiting", "forges": "/changes/forges",
		"change": "/pulls/local/demo/home-cluster/1", "refused": "/proposals/" + d.idOf("refused"),
		"dry-run": "/proposals/" + d.idOf("dry_run"), "schedule": "/sessions/schedule", "agent-tokens": "/tokens",
		"scripts": "/scripts", "script": "/scripts/git_search", "records": "/audit", "record": "/audit/1",
		"policy": "/policy?tier=2&path=Dockerfile", "health": "/doctor", "tokens": "/tokens/people", "browsers": "/logins",
		"sign-in": "/sign-in", "not-found": "/nothing", "api": "/docs",
	} {
		d.run(chromedp.Navigate(d.url + address))
		d.picture(name)
	}
	d.run(chromedp.Navigate(d.url + "/"))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.problems = nil // the browser complains of the page that does not exist
}

// lookedAt is a window of a size, where people like a scheme of colours.
func lookedAt(scheme string, width, height int64) chromedp.Tasks {
	return chromedp.Tasks{
		emulation.SetDeviceMetricsOverride(width, height, 1, width < 500),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
	}
}
