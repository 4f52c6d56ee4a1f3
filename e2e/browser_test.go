//go:build e2e && linux

package e2e

import (
	"context"
	"os"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// browserPath is where Debian's package has it; see setup.sh. It is Chromium without a window of its own, which takes a
// third of the processor's time.
const browserPath = "/usr/bin/chromium-headless-shell"

// foreignHost is a name that the browser resolves to this machine. Over plain HTTP it sends no Sec-Fetch-Site to it.
const foreignHost = "ops.test"

// theBrowser is the browser of all tests, which the first of them starts. Each test has a context of the browser for
// itself, with cookies, a cache and a store of its own.
var theBrowser = sync.OnceValues(startBrowser)

// endBrowser ends it, if a test has started it.
var endBrowser = func() {}

func startBrowser() (context.Context, error) {
	profile, err := os.MkdirTemp("", "claudeops-browser-")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browserPath), chromedp.NoSandbox,
		chromedp.UserDataDir(profile), chromedp.WindowSize(1280, 800),
		chromedp.Flag("host-resolver-rules", "MAP "+foreignHost+" 127.0.0.1"))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, close := chromedp.NewContext(allocator)
	endBrowser = func() {
		close()
		end() // waits for the processes
		_ = os.RemoveAll(profile)
	}
	return ctx, chromedp.Do(ctx)
}

// step does something in the browser and has no value.
type step = chromedp.Action[chromedp.Void]

// into runs an action and keeps its value.
func into[T any](action chromedp.Action[T], out *T) step {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) (err error) {
		*out, err = action(ctx, tab)
		return err
	})
}

// evaluated evaluates a script and keeps its value.
func evaluated[T any](script string, out *T, options ...chromedp.EvaluateOption) step {
	return into(chromedp.Evaluate[T](script, options...), out)
}

// protocol sends a command of the DevTools protocol.
func protocol[P, R any](c cdp.Command[P, R], params P) chromedp.Action[R] {
	return func(ctx context.Context, tab *chromedp.Target) (R, error) { return cdp.Call(ctx, tab, c, params) }
}

// commanded sends one whose result does not matter.
func commanded[P, R any](c cdp.Command[P, R], params P) step {
	return into(protocol(c, params), new(R))
}

// sized gives the page a size in pixels; a narrow one is that of a phone.
func sized(width, height int64) step {
	return commanded(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 500,
	})
}

// coloured has the page asked for light or dark colours.
func coloured(scheme string) step {
	return commanded(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

func withoutScripts(off bool) step {
	return commanded(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: off})
}

// withoutCookies leaves the page before, which may ask for something again and again.
func withoutCookies() step {
	return chromedp.Steps(chromedp.Navigate("about:blank"), commanded(network.ClearBrowserCookies, cdp.Empty{}))
}

// executed runs a script whose value does not matter.
func executed(script string, options ...chromedp.EvaluateOption) step {
	return chromedp.Evaluate[chromedp.Void](script, options...)
}
